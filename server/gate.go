package server

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// gate limits how many requests are worked on at the same time to what the machine and its store can do at once: with more, none would be done sooner, and
// each would cost more. Requests without a place wait for a moment, or are refused. The places are shared by accounts so that no account makes the others
// slow; gate_share.go says how.
//
// Each account is calm or crowded. A calm account has a queue, first in, first out: perhaps a slow disk held everybody up, and they get in when it
// recovers. Of a crowded account more requests come than get done. Queueing would only make all of them late, so most are refused at once, and a few wait
// for a very short time; of these the newest gets in first, because its caller is most likely still there.
//
//	         enough requests of the account were done since its queue began, and others still wait
//	calm ──────────────────────────────────────────────────────────────────────────────────────▶ crowded
//	     ◀──────────────────────────────────────────────────────────────────────────────────────
//	                          no request of the account was without a place for calmAfter, or it is a trial
//
// A place is lent for a limited time. A request that takes longer is waiting for something else: mostly for a model, or for the store. If the store is quick,
// it is not the store, and the place goes to the next request. If the store is slow the request keeps its place: another one would only make it slower.
type gate struct {
	places int
	// narrow is how many requests are enough to keep the machine busy.
	narrow int
	// quick reports whether the store is quick at the moment.
	quick func() bool

	mu       sync.Mutex
	taken    int
	crowding int       // how many of them by crowded accounts
	working  int       // how many accounts have a place
	fed      time.Time // when a crowded account took a place last
	waiting  int
	queue    []*class // accounts with requests that wait
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
	// crowdedAfter is how long a queue may last, although places are released, before its account is crowded.
	crowdedAfter = 30 * time.Millisecond
	// calmAfter is how long each request of a crowded account must have found a place before it is calm again.
	calmAfter = 500 * time.Millisecond
	// trialAfter is how long an account is crowded before it is made calm on trial: a crowded account has so few places that some of its requests never find
	// one, even if there were too many for a moment only. Each trial that fails doubles the time until the next, mostTrials times.
	trialAfter = 5 * time.Second
	mostTrials = 4
	// calmPatience and crowdedPatience are how long a request waits.
	calmPatience    = 250 * time.Millisecond
	crowdedPatience = 10 * time.Millisecond
	// calmLease and crowdedLease are how long a place is lent: longer than our own work on a request takes, without and with overload. narrowLease is for a
	// crowded account beside others: it has so few places that its requests take no longer than alone.
	calmLease    = 250 * time.Millisecond
	crowdedLease = time.Second
	narrowLease  = 100 * time.Millisecond
	// crowdedShare says how many requests of an account must have been done during its queue before it is crowded: an 8th of the places.
	crowdedShare = 8
	// calmQueue and crowdedQueue say how long a queue may be: a half of the places, and an 8th.
	calmQueue    = 2
	crowdedQueue = 8
)

// enter takes a place for a request of an account, perhaps after waiting for it. It returns false if there is none, or ctx has ended.
func (g *gate) enter(ctx context.Context, account string) (*lease, bool) {
	c, w, patience := g.arrive(account, time.Now())
	if w != nil && !g.wait(ctx, c, w, patience) || c == nil {
		return nil, false
	}
	l := &lease{gate: g, class: c, lasts: g.lasts(c)}
	l.timer = time.AfterFunc(l.lasts, l.expire)
	return l, true
}

// arrive takes a place, or puts the request into the queue, or refuses it: then it returns no class.
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
	g.letIn(now) // passing time may have made room, and those in the queue come first
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

// wait waits until a request in the queue gets in, is refused, or gives up.
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
	return <-w.told // its answer may have come at the same moment
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

// leave releases a place: of a request that is done, or of one that has used up its lease.
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

// sendAway refuses those in the queue who have waited longer than a crowded account lets them.
func (g *gate) sendAway(c *class, now time.Time) {
	for len(c.waiting) > 0 && now.Sub(c.waiting[0].came) >= crowdedPatience {
		g.tell(c, 0, false)
	}
}

// tell takes a request out of the queue: it gets in, or is refused.
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

// expire takes the place back, unless the request waits for a slow store: then it is lent again.
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

// load is how many requests have a place, and how many wait for one.
func (g *gate) load() (working, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.taken, g.waiting
}
