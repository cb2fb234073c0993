package executor

import (
	"sync"
	"time"
)

// contact is when the store answered this process last.
//
// A store that was away for longer than a lease, or a machine that slept, leaves leases behind that are over although those who have them live: they could not
// renew them. Whoever comes back first would take everything over, and all of it would be done twice. So who has heard nothing for so long gives the others
// the time in which each of them renews.
type contact struct {
	mu    sync.Mutex
	last  time.Time // zero: never
	until time.Time // nothing is taken over before
}

// answered notes an answer. If there was none for longer than silence, others are given time.
func (c *contact) answered(now time.Time, silence, grace time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.last.IsZero() && passed(c.last, now) > silence {
		c.until = now.Add(grace)
	}
	c.last = now
}

// lost reports whether there was no answer for longer than silence.
func (c *contact) lost(now time.Time, silence time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.last.IsZero() && passed(c.last, now) > silence
}

// waits reports whether others are given time.
func (c *contact) waits(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Before(c.until)
}

// silence is after how long without an answer leases may be over: they are renewed after a third of their time, and an idle process asks once in Config.Poll.
func (e *Executor) silence() time.Duration {
	return max(e.config.Lease/3*2, e.config.Poll+e.config.Lease/3)
}

// heard notes that the store has answered one of those who ask all the time.
func (e *Executor) heard() { e.contact.answered(time.Now(), e.silence(), e.config.Lease/3) }

// givesTime reports whether others are given time to renew their leases.
func (e *Executor) givesTime() (bool, error) {
	if e.contact.lost(time.Now(), e.silence()) {
		if _, err := e.store.Now(e.life); err != nil {
			return false, err
		}
		e.heard()
	}
	return e.contact.waits(time.Now()), nil
}
