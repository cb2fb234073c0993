package executor

import (
	"sync"
	"time"
)

// storeContact is when the store answered this process last.
//
// A store that was away for longer than a lease, or a machine that slept, leaves leases behind that are over although those who have them live: they could not
// renew them. Whoever comes back first would take everything over, and all of it would be done twice. So who has heard nothing for so long gives the others
// the time in which each of them renews.
type storeContact struct {
	mu         sync.Mutex
	lastReply  time.Time // zero: never
	graceUntil time.Time // emptyIndex is taken over before
}

// answered notes an answer. If there was none for longer than silence, others are given time.
func (c *storeContact) noteReply(now time.Time, silence, grace time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.lastReply.IsZero() && elapsed(c.lastReply, now) > silence {
		c.graceUntil = now.Add(grace)
	}
	c.lastReply = now
}

// lost reports whether there was no answer for longer than silence.
func (c *storeContact) isLost(now time.Time, silence time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.lastReply.IsZero() && elapsed(c.lastReply, now) > silence
}

// waits reports whether others are given time.
func (c *storeContact) inGrace(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Before(c.graceUntil)
}

// silence is after how long without an answer leases may be over: they are renewed after a third of their time, and an idle process asks once in Config.Poll.
func (e *Executor) leaseGap() time.Duration {
	return max(e.config.Lease/3*2, e.config.Poll+e.config.Lease/3)
}

// heard notes that the store has answered one of those who ask all the time.
func (e *Executor) noteStoreReply() {
	e.storeContact.noteReply(time.Now(), e.leaseGap(), e.config.Lease/3)
}

// givesTime reports whether others are given time to renew their leases.
func (e *Executor) inGracePeriod() (bool, error) {
	if e.storeContact.isLost(time.Now(), e.leaseGap()) {
		if _, err := e.store.Now(e.ctx); err != nil {
			return false, err
		}
		e.noteStoreReply()
	}
	return e.storeContact.inGrace(time.Now()), nil
}
