package admission

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// FairScheduler limits how many requests execute at the same time to what the machine and its store
// can handle. More would not finish sooner and would cost more each. Requests without a permit wait
// briefly or are rejected. Permits are shared between accounts so that no account slows down
// others; see fairshare.go.
//
// Each account is normal or overloaded. A normal account has a first-in, first-out queue: after a
// short stall, for example of the disk, its requests are admitted. An overloaded account sends more
// requests than are completed. Queueing would only delay all of them, so most are rejected at once
// and a few wait for a very short time. Of these the newest is admitted first, because its client
// is most likely still connected.
//
//	         enough requests of the account completed since its queue began, and others still wait
//	normal ──────────────────────────────────────────────────────────────────────────▶ overloaded
//	       ◀──────────────────────────────────────────────────────────────────────────
//	           no request of the account lacked a permit for normalAfter, or it is a trial
//
// A permit has a limited duration. A request that takes longer is waiting for something else:
// mostly a model, or the store. If the store is fast, the permit goes to the next request. If the
// store is slow, the request keeps its permit, because another request would only make the store
// slower.
type FairScheduler struct {
	capacity int
	// overloadedCapacity is how many requests are enough to keep the machine busy.
	overloadedCapacity int
	// storeIsFast reports whether the store currently answers quickly.
	storeIsFast func() bool

	mu                  sync.Mutex
	inUse               int
	inUseOverloaded     int       // permits of overloaded accounts
	activeAccounts      int       // number of accounts with a permit
	lastOverloadedGrant time.Time // when an overloaded account last got a permit
	waiting             int
	queue               []*accountQueue // accounts with queued requests
	accounts            map[string]*accountQueue
	lastSweep           time.Time
	recent              recentAccounts
}

// queuedRequest is a request that waits for a permit.
type queuedRequest struct {
	arrived  time.Time
	admitted chan bool // true if admitted, false if rejected
}

const (
	// overloadedAfter is how long a queue may last, although permits are released, before its
	// account becomes overloaded.
	overloadedAfter = 30 * time.Millisecond
	// normalAfter is how long every request of an overloaded account must have got a permit before
	// the account is normal again.
	normalAfter = 500 * time.Millisecond
	// trialAfter is how long an account is overloaded before it is treated as normal on trial. An
	// overloaded account has so few permits that some of its requests never get one, even after a
	// short burst.
	trialAfter = 30 * time.Second
	// normalWait and overloadedWait are how long a request waits in the queue.
	normalWait     = 250 * time.Millisecond
	overloadedWait = 10 * time.Millisecond
	// normalPermit and overloadedPermit are permit durations: longer than the server's own work on
	// a request, without and with overload. restrictedPermit is for an overloaded account while
	// others are active: it has so few permits that its requests are as fast as alone.
	normalPermit     = 250 * time.Millisecond
	overloadedPermit = time.Second
	restrictedPermit = 100 * time.Millisecond
	// overloadedShare sets how many requests of an account must complete during its queue before it
	// becomes overloaded: an eighth of the capacity.
	overloadedShare = 8
	// normalQueue and overloadedQueue set the maximum queue length: a half and an eighth of the
	// capacity.
	normalQueue     = 2
	overloadedQueue = 8
)

// Acquire returns a permit for a request of an account, perhaps after waiting. It returns false if
// there is none, or if ctx ends.
func (g *FairScheduler) Acquire(ctx context.Context, account string) (*Permit, bool) {
	c, w, maxWait := g.tryAcquire(account, time.Now())
	if w != nil && !g.wait(ctx, c, w, maxWait) || c == nil {
		return nil, false
	}
	l := &Permit{scheduler: g, account: c, duration: g.permitDuration(c)}
	l.timer = time.AfterFunc(l.duration, l.expire)
	return l, true
}

// tryAcquire takes a permit, or queues the request, or rejects it: then it returns no account.
func (g *FairScheduler) tryAcquire(account string, now time.Time) (c *accountQueue, w *queuedRequest, maxWait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c = g.accountOf(account, now)
	if c.overloaded && (now.Sub(c.lastShortage) >= normalAfter || now.Sub(c.overloadedSince) >= trialAfter) {
		g.markNormal(c)
	}
	g.admitQueued(now) // permits may have become free over time, and queued requests come first
	if g.mayAdmit(c, now) {
		g.take(c, now)
		return c, nil, 0
	}
	c.lastShortage = now
	maxWait, part := normalWait, normalQueue
	if c.overloaded {
		maxWait, part = overloadedWait, overloadedQueue
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
	return c, w, maxWait
}

// wait blocks until a queued request is admitted, rejected or cancelled.
func (g *FairScheduler) wait(ctx context.Context, c *accountQueue, w *queuedRequest, maxWait time.Duration) (in bool) {
	timer := time.NewTimer(maxWait)
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
	return <-w.admitted // the result may have been sent at the same moment
}

// permitDuration returns how long a permit is valid.
func (g *FairScheduler) permitDuration(c *accountQueue) time.Duration {
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

// release frees the permit of a request that is done, or whose permit has expired.
func (g *FairScheduler) release(l *Permit, done bool) {
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

// rejectOverdue rejects queued requests that have waited longer than an overloaded account allows.
func (g *FairScheduler) rejectOverdue(c *accountQueue, now time.Time) {
	for len(c.waiting) > 0 && now.Sub(c.waiting[0].arrived) >= overloadedWait {
		g.dequeue(c, 0, false)
	}
}

// dequeue removes a request from the queue: it is admitted or rejected.
func (g *FairScheduler) dequeue(c *accountQueue, waiter int, in bool) {
	c.waiting[waiter].admitted <- in
	c.waiting = slices.Delete(c.waiting, waiter, waiter+1)
	g.waiting--
	if len(c.waiting) == 0 {
		g.queue = slices.DeleteFunc(g.queue, func(q *accountQueue) bool { return q == c })
	}
}

// Permit allows one request to execute.
type Permit struct {
	scheduler *FairScheduler
	account   *accountQueue // guarded by the scheduler's lock
	duration  time.Duration
	timer     *time.Timer
	released  atomic.Bool
}

// Release frees the permit.
func (l *Permit) Release() {
	l.timer.Stop()
	l.end(true)
}

// expire frees the permit, unless the store is slow: then it is extended.
func (l *Permit) expire() {
	switch {
	case l.released.Load():
	case l.scheduler.storeIsFast():
		l.end(false)
	default:
		time.AfterFunc(l.duration, l.expire)
	}
}

// end frees the permit, once.
func (l *Permit) end(done bool) {
	if l.released.CompareAndSwap(false, true) {
		l.scheduler.release(l, done)
	}
}

// Load returns how many requests have a permit, and how many wait for one.
func (g *FairScheduler) Load() (executing, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inUse, g.waiting
}
