package server

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// fairScheduler limits how many requests are worked on at the same time to what the machine and its store can do at once: with more, none would be done sooner, and
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
//	                          no request of the account was without a place for normalAfter, or it is a trial
//
// A place is lent for a limited time. A request that takes longer is waiting for something else: mostly for a model, or for the store. If the store is quick,
// it is not the store, and the place goes to the next request. If the store is slow the request keeps its place: another one would only make it slower.
type fairScheduler struct {
	capacity int
	// narrow is how many requests are enough to keep the machine busy.
	overloadedCapacity int
	// quick reports whether the store is quick at the moment.
	storeIsFast func() bool

	mu                  sync.Mutex
	inUse               int
	inUseOverloaded     int       // how many of them by crowded accounts
	activeAccounts      int       // how many accounts have a place
	lastOverloadedGrant time.Time // when a crowded account took a place last
	waiting             int
	queue               []*accountQueue // accounts with requests that wait
	accounts            map[string]*accountQueue
	lastSweep           time.Time
	recent              recentAccounts
}

// queuedRequest is a request without a place.
type queuedRequest struct {
	arrived  time.Time
	admitted chan bool // whether it gets in
}

const (
	// overloadedAfter is how long a queue may last, although places are released, before its account is crowded.
	overloadedAfter = 30 * time.Millisecond
	// normalAfter is how long each request of a crowded account must have found a place before it is calm again.
	normalAfter = 500 * time.Millisecond
	// trialAfter is how long an account is crowded before it is made calm on trial: a crowded account has so few places that some of its requests never find
	// one, even if there were too many for a moment only. Each trial that fails doubles the time until the next, maxTrials times.
	trialAfter = 5 * time.Second
	maxTrials  = 4
	// normalWait and overloadedWait are how long a request waits.
	normalWait     = 250 * time.Millisecond
	overloadedWait = 10 * time.Millisecond
	// normalPermit and overloadedPermit are how long a place is lent: longer than our own work on a request takes, without and with overload. restrictedPermit is for a
	// crowded account beside others: it has so few places that its requests take no longer than alone.
	normalPermit     = 250 * time.Millisecond
	overloadedPermit = time.Second
	restrictedPermit = 100 * time.Millisecond
	// overloadedShare says how many requests of an account must have been done during its queue before it is crowded: an 8th of the places.
	overloadedShare = 8
	// normalQueue and overloadedQueue say how long a queue may be: a half of the places, and an 8th.
	normalQueue     = 2
	overloadedQueue = 8
)

// enter takes a place for a request of an account, perhaps after waiting for it. It returns false if there is none, or ctx has ended.
func (g *fairScheduler) acquire(ctx context.Context, account string) (*permit, bool) {
	c, w, patience := g.tryAcquire(account, time.Now())
	if w != nil && !g.wait(ctx, c, w, patience) || c == nil {
		return nil, false
	}
	l := &permit{scheduler: g, account: c, duration: g.permitDuration(c)}
	l.timer = time.AfterFunc(l.duration, l.expire)
	return l, true
}

// arrive takes a place, or puts the request into the queue, or refuses it: then it returns no class.
func (g *fairScheduler) tryAcquire(account string, now time.Time) (c *accountQueue, w *queuedRequest, patience time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c = g.accountOf(account, now)
	switch {
	case !c.overloaded:
	case now.Sub(c.lastShortage) >= normalAfter:
		g.markNormal(c)
		c.trials = 0
	case now.Sub(c.overloadedSince) >= c.trialInterval():
		g.markNormal(c)
		c.trials = min(c.trials+1, maxTrials)
	}
	g.admitQueued(now) // passing time may have made room, and those in the queue come first
	if g.mayAdmit(c, now) {
		g.take(c, now)
		return c, nil, 0
	}
	c.lastShortage = now
	patience, part := normalWait, normalQueue
	if c.overloaded {
		patience, part = overloadedWait, overloadedQueue
	}
	if len(c.waiting) >= max(1, g.capacity/part) || !g.mayQueue(c) {
		return nil, nil, 0
	}
	if len(c.waiting) == 0 {
		c.queuedSince, c.completed = now, 0
		g.queue = append(g.queue, c)
	}
	w = &queuedRequest{arrived: now, admitted: make(chan bool, 1)}
	c.waiting = append(c.waiting, w)
	g.waiting++
	return c, w, patience
}

// wait waits until a request in the queue gets in, is refused, or gives up.
func (g *fairScheduler) wait(ctx context.Context, c *accountQueue, w *queuedRequest, patience time.Duration) (in bool) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case in := <-w.admitted:
		return in
	case <-timer.C:
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(c.waiting, w); i >= 0 {
		g.dequeue(c, i, false)
	}
	return <-w.admitted // its answer may have come at the same moment
}

// lasts is how long a place is lent.
func (g *fairScheduler) permitDuration(c *accountQueue) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !c.overloaded:
		return normalPermit
	case g.recent.othersActive(c.account, time.Now()):
		return restrictedPermit
	}
	return overloadedPermit
}

// leave releases a place: of a request that is done, or of one that has used up its lease.
func (g *fairScheduler) release(l *permit, done bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, now := l.account, time.Now()
	if done {
		c.completed++
	}
	if !c.overloaded && len(c.waiting) > 0 && c.completed >= max(1, g.capacity/overloadedShare) && now.Sub(c.queuedSince) >= overloadedAfter {
		g.markOverloaded(c, now)
		g.rejectOverdue(c, now)
	}
	g.giveBack(c)
	g.admitQueued(now)
}

// sendAway refuses those in the queue who have waited longer than a crowded account lets them.
func (g *fairScheduler) rejectOverdue(c *accountQueue, now time.Time) {
	for len(c.waiting) > 0 && now.Sub(c.waiting[0].arrived) >= overloadedWait {
		g.dequeue(c, 0, false)
	}
}

// tell takes a request out of the queue: it gets in, or is refused.
func (g *fairScheduler) dequeue(c *accountQueue, waiter int, in bool) {
	c.waiting[waiter].admitted <- in
	c.waiting = slices.Delete(c.waiting, waiter, waiter+1)
	g.waiting--
	if len(c.waiting) == 0 {
		g.queue = slices.DeleteFunc(g.queue, func(q *accountQueue) bool { return q == c })
	}
}

// permit is a place that is lent to a request.
type permit struct {
	scheduler *fairScheduler
	account   *accountQueue // changes under the lock of the gate
	duration  time.Duration
	timer     *time.Timer
	released  atomic.Bool
}

// leave gives the place back.
func (l *permit) release() {
	l.timer.Stop()
	l.end(true)
}

// expire takes the place back, unless the request waits for a slow store: then it is lent again.
func (l *permit) expire() {
	switch {
	case l.released.Load():
	case l.scheduler.storeIsFast():
		l.end(false)
	default:
		time.AfterFunc(l.duration, l.expire)
	}
}

// end gives the place back, once.
func (l *permit) end(done bool) {
	if l.released.CompareAndSwap(false, true) {
		l.scheduler.release(l, done)
	}
}

// load is how many requests have a place, and how many wait for one.
func (g *fairScheduler) load() (working, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inUse, g.waiting
}
