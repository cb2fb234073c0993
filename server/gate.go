package server

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// gate lets so many requests be worked on at the same time, and the others wait for a moment: so many as the machine and its store can do at once. More
// of them would do no more, only later, and each would cost more. It knows which account a request is from, or that nobody knows, and sees to it that none
// makes the others late; gate_share.go says how.
//
// For each account a gate is calm or crowded. While it is calm, some of those who find no place wait for one, behind the others: a disk may hold everybody
// up, and they get in when it goes on. While it is crowded more come than get done, and to wait would only make all of them late: most are refused at once,
// and a few wait for what becomes free, but not for long. The newest of these comes first: it is the one whose caller is still there.
//
//	         a part of the places became free, one after the other, and somebody of the account waits all the same
//	calm ──────────────────────────────────────────────────────────────────────────────────────▶ crowded
//	     ◀──────────────────────────────────────────────────────────────────────────────────────
//	                          nobody of the account was without a place for calmAfter, or it is a trial
//
// A place is lent for some time only. Whoever works for longer waits for somebody else: for a model mostly, or for the store. If the store answers at once it
// is not the store, and the place goes to the next; else it would only make the others there wait longer.
type gate struct {
	places int
	// narrow is how many requests keep the machine busy.
	narrow int
	// quick reports whether the store answers at once.
	quick func() bool

	mu       sync.Mutex
	taken    int
	crowding int       // how many of them by accounts that crowd
	working  int       // how many accounts have taken any
	fed      time.Time // when one of those took one last
	waiting  int
	queue    []*class // those of which somebody waits
	classes  map[string]*class
	swept    time.Time
	seen     company
}

// waiter is a request without a place.
type waiter struct {
	came time.Time
	told chan bool // whether it gets in
}

const (
	// crowdedAfter is how long there may be somebody who waits, while others get in, before there are too many.
	crowdedAfter = 30 * time.Millisecond
	// calmAfter is how long nobody may be without a place before it is calm again.
	calmAfter = 500 * time.Millisecond
	// trialAfter is how long an account crowds before it is tried out whether it still does: with few places somebody is always without one, also when there
	// were too many for a moment only. Each trial that shows that it does doubles the time until the next, mostTrials times.
	trialAfter = 5 * time.Second
	mostTrials = 4
	// calmPatience and crowdedPatience are how long somebody waits.
	calmPatience    = 250 * time.Millisecond
	crowdedPatience = 10 * time.Millisecond
	// calmLease and crowdedLease are how long a place is lent: longer than any work of our own takes, when there is not too much of it and when there is.
	// narrowLease is for one of the few places that those who crowd have beside others: with so few, work takes as long as it does alone.
	calmLease    = 250 * time.Millisecond
	crowdedLease = time.Second
	narrowLease  = 100 * time.Millisecond
	// crowdedShare is the part of the places that became free, while somebody waits, before there are too many.
	crowdedShare = 8
	// calmQueue and crowdedQueue are as how large a part of the places may wait.
	calmQueue    = 2
	crowdedQueue = 8
)

// enter takes a place for a request of an account, or says that there is none. Who is gone before there is one gets none.
func (g *gate) enter(ctx context.Context, account string) (*lease, bool) {
	c, w, patience := g.arrive(account, time.Now())
	if w != nil && !g.wait(ctx, c, w, patience) || c == nil {
		return nil, false
	}
	l := &lease{gate: g, class: c, lasts: g.lasts(c)}
	l.timer = time.AfterFunc(l.lasts, l.expire)
	return l, true
}

// arrive takes a place for somebody who comes, or lets them wait for so long, or does neither: then there is no class.
func (g *gate) arrive(account string, now time.Time) (c *class, w *waiter, patience time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c = g.classOf(account, now)
	switch {
	case !c.crowded:
	case now.Sub(c.lacked) >= calmAfter:
		g.calms(c)
		c.trials = 0
	case now.Sub(c.began) >= c.trial():
		g.calms(c)
		c.trials = min(c.trials+1, mostTrials)
	}
	g.letIn(now) // time alone may have made room, and those who wait were here before
	if g.admits(c, now) {
		g.take(c, now)
		return c, nil, 0
	}
	c.lacked = now
	patience, part := calmPatience, calmQueue
	if c.crowded {
		patience, part = crowdedPatience, crowdedQueue
	}
	if len(c.waiting) >= max(1, g.places/part) || !g.mayWait(c) {
		return nil, nil, 0
	}
	if len(c.waiting) == 0 {
		c.since, c.done = now, 0
		g.queue = append(g.queue, c)
	}
	w = &waiter{came: now, told: make(chan bool, 1)}
	c.waiting = append(c.waiting, w)
	g.waiting++
	return c, w, patience
}

// wait returns when it is known whether a waiter gets in.
func (g *gate) wait(ctx context.Context, c *class, w *waiter, patience time.Duration) (in bool) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case in := <-w.told:
		return in
	case <-timer.C:
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(c.waiting, w); i >= 0 {
		g.tell(c, i, false)
	}
	return <-w.told // else it was told at the same moment
}

// lasts is how long a place is lent.
func (g *gate) lasts(c *class) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !c.crowded:
		return calmLease
	case g.seen.beside(c.account, time.Now()):
		return narrowLease
	}
	return crowdedLease
}

// leave gives a place to the next, or back: of a request that is done, or of one that waits for somebody else.
func (g *gate) leave(l *lease, done bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, now := l.class, time.Now()
	if done {
		c.done++
	}
	if !c.crowded && len(c.waiting) > 0 && c.done >= max(1, g.places/crowdedShare) && now.Sub(c.since) >= crowdedAfter {
		g.crowds(c, now)
		g.sendAway(c, now)
	}
	g.give(c)
	g.letIn(now)
}

// sendAway refuses those who have waited for too long: they came when it was calm.
func (g *gate) sendAway(c *class, now time.Time) {
	for len(c.waiting) > 0 && now.Sub(c.waiting[0].came) >= crowdedPatience {
		g.tell(c, 0, false)
	}
}

// tell says to somebody who waits whether they get in.
func (g *gate) tell(c *class, waiter int, in bool) {
	c.waiting[waiter].told <- in
	c.waiting = slices.Delete(c.waiting, waiter, waiter+1)
	g.waiting--
	if len(c.waiting) == 0 {
		g.queue = slices.DeleteFunc(g.queue, func(q *class) bool { return q == c })
	}
}

// lease is a place that is lent to a request.
type lease struct {
	gate  *gate
	class *class // changes under the lock of the gate
	lasts time.Duration
	timer *time.Timer
	over  atomic.Bool
}

// leave gives the place back.
func (l *lease) leave() {
	l.timer.Stop()
	l.end(true)
}

// expire takes the place back, unless it is the store that the request waits for: then it is lent again.
func (l *lease) expire() {
	switch {
	case l.over.Load():
	case l.gate.quick():
		l.end(false)
	default:
		time.AfterFunc(l.lasts, l.expire)
	}
}

// end gives the place back, once.
func (l *lease) end(done bool) {
	if l.over.CompareAndSwap(false, true) {
		l.gate.leave(l, done)
	}
}

// load is how many work, and how many wait.
func (g *gate) load() (working, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.taken, g.waiting
}
