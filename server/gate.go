package server

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// gate lets so many requests be worked on at the same time, and the others wait for a moment: so many as the machine and its store can do at once. More
// of them would do no more, only later, and each would cost more.
//
// A gate is calm or crowded. While it is calm, some of those who find no place wait for one, behind the others: a disk may hold everybody up, and they
// get in when it goes on. While it is crowded more come than get done, and to wait would only make all of them late: most are refused at once, and
// a few wait for what becomes free, but not for long. The newest of these comes first: it is the one whose caller is still there.
//
//	         a part of the places became free, one after the other, and somebody waits all the same
//	calm ──────────────────────────────────────────────────────────────────────────────────────▶ crowded
//	     ◀──────────────────────────────────────────────────────────────────────────────────────
//	                          nobody was without a place for calmAfter
//
// A place is lent for some time only. Whoever works for longer waits for somebody else: for a model mostly, or for the store. If the store answers at once it
// is not the store, and the place goes to the next; else it would only make the others there wait longer.
type gate struct {
	places int
	// quick reports whether the store answers at once.
	quick func() bool

	mu      sync.Mutex
	taken   int
	waiting []*waiter // the oldest first; none while a place is free
	crowded bool
	since   time.Time // since when there was always somebody who waits
	done    int       // how many were done since then
	lacked  time.Time // when somebody came last for whom there was no place
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
	// calmPatience and crowdedPatience are how long somebody waits.
	calmPatience    = 250 * time.Millisecond
	crowdedPatience = 10 * time.Millisecond
	// calmLease and crowdedLease are how long a place is lent: longer than any work of our own takes, when there is not too much of it and when there is.
	calmLease    = 250 * time.Millisecond
	crowdedLease = time.Second
	// crowdedShare is the part of the places that became free, while somebody waits, before there are too many.
	crowdedShare = 8
	// calmQueue and crowdedQueue are as how large a part of the places may wait.
	calmQueue    = 2
	crowdedQueue = 8
)

// enter takes a place, or says that there is none. Who is gone before there is one gets none.
func (g *gate) enter(ctx context.Context) (leave func(), ok bool) {
	w, patience, ok := g.arrive(time.Now())
	if w != nil {
		ok = g.wait(ctx, w, patience)
	}
	if !ok {
		return nil, false
	}
	l := &lease{gate: g, lasts: g.lasts()}
	timer := time.AfterFunc(l.lasts, l.expire)
	return func() {
		timer.Stop()
		l.end(true)
	}, true
}

// arrive takes a place for somebody who comes, or lets them wait for so long, or does neither.
func (g *gate) arrive(now time.Time) (w *waiter, patience time.Duration, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.crowded && now.Sub(g.lacked) >= calmAfter {
		g.crowded = false
	}
	if g.taken < g.places {
		g.taken++
		return nil, 0, true
	}
	g.lacked = now
	patience, part := calmPatience, calmQueue
	if g.crowded {
		patience, part = crowdedPatience, crowdedQueue
	}
	if len(g.waiting) >= max(1, g.places/part) {
		return nil, 0, false
	}
	if len(g.waiting) == 0 {
		g.since, g.done = now, 0
	}
	w = &waiter{came: now, told: make(chan bool, 1)}
	g.waiting = append(g.waiting, w)
	return w, patience, false
}

// wait returns when it is known whether a waiter gets in.
func (g *gate) wait(ctx context.Context, w *waiter, patience time.Duration) (in bool) {
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
	if i := slices.Index(g.waiting, w); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		return false
	}
	return <-w.told // it was told at the same moment
}

// lasts is how long a place is lent.
func (g *gate) lasts() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.crowded {
		return crowdedLease
	}
	return calmLease
}

// leave gives a place to the next, or back: of a request that is done, or of one that waits for somebody else.
func (g *gate) leave(done bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if done {
		g.done++
	}
	if len(g.waiting) > 0 && g.done >= max(1, g.places/crowdedShare) && now.Sub(g.since) >= crowdedAfter {
		g.crowded = true
	}
	next := 0
	if g.crowded {
		g.sendAway(now)
		next = len(g.waiting) - 1
	}
	if len(g.waiting) == 0 {
		g.taken--
		return
	}
	g.waiting[next].told <- true
	g.waiting = slices.Delete(g.waiting, next, next+1)
}

// sendAway refuses those who have waited for too long: they came when it was calm.
func (g *gate) sendAway(now time.Time) {
	late := 0
	for late < len(g.waiting) && now.Sub(g.waiting[late].came) >= crowdedPatience {
		g.waiting[late].told <- false
		late++
	}
	g.waiting = slices.Delete(g.waiting, 0, late)
}

// lease is a place that is lent to a request.
type lease struct {
	gate  *gate
	lasts time.Duration
	over  atomic.Bool
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
		l.gate.leave(done)
	}
}

// load is how many work, and how many wait.
func (g *gate) load() (working, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.taken, len(g.waiting)
}
