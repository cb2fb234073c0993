package storeclock

import (
	"context"
	"sync"
	"time"
)

// Contact is when the store answered this process last.
//
// A store that was away for longer than a lease, or a machine that slept, leaves leases behind that are over although those who have them live: they could not
// renew them. Whoever comes back first would take everything over, and all of it would be done twice. So who has heard nothing for so long gives the others
// the time in which each of them renews.
type Contact struct {
	store interface {
		Now(context.Context) (time.Time, error)
	}
	lease, poll time.Duration

	mu         sync.Mutex
	lastReply  time.Time // zero: never
	graceUntil time.Time // emptyIndex is taken over before
}

// NewContact returns the contact of a process that holds leases of this length and asks for work once in poll.
func NewContact(store interface {
	Now(context.Context) (time.Time, error)
}, lease, poll time.Duration) *Contact {
	return &Contact{store: store, lease: lease, poll: poll}
}

// gap is after how long without a reply leases may be over: they are renewed after a third of their time, and an idle process asks once in poll.
func (c *Contact) gap() time.Duration { return max(c.lease/3*2, c.poll+c.lease/3) }

// NoteReply records that the store has replied. If it had not for longer than the gap, other processes are given a third of a lease to renew theirs.
func (c *Contact) NoteReply() {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.lastReply.IsZero() && Elapsed(c.lastReply, now) > c.gap() {
		c.graceUntil = now.Add(c.lease / 3)
	}
	c.lastReply = now
}

// InGracePeriod reports whether other processes are given time to renew their leases.
func (c *Contact) InGracePeriod(ctx context.Context) (bool, error) {
	if c.isLost(time.Now()) {
		if _, err := c.store.Now(ctx); err != nil {
			return false, err
		}
		c.NoteReply()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.graceUntil), nil
}

// isLost reports whether there was no reply for longer than the gap.
func (c *Contact) isLost(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.lastReply.IsZero() && Elapsed(c.lastReply, now) > c.gap()
}

// Elapsed is how much time has passed at the store, as far as it can be known here: the monotonic clock stands still while the machine sleeps, and the other
// one may be set.
func Elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}
