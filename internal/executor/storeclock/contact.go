package storeclock

import (
	"context"
	"sync"
	"time"
)

// Contact tracks when the store replied to this process last.
//
// A store outage that is longer than a lease, or a suspended machine, leaves expired leases of
// processes that are alive: they could not renew them. The first process to come back would take
// everything over, and everything would be done twice. So a process without a reply for that long
// gives the others time to renew.
type Contact struct {
	store interface {
		Now(context.Context) (time.Time, error)
	}
	lease, poll time.Duration

	mu         sync.Mutex
	lastReply  time.Time // zero: never
	graceUntil time.Time // nothing is taken over before
}

// NewContact returns the contact of a process that holds leases of this length and asks for work
// once in poll.
func NewContact(store interface {
	Now(context.Context) (time.Time, error)
}, lease, poll time.Duration) *Contact {
	return &Contact{store: store, lease: lease, poll: poll}
}

// gap is after how long without a reply leases may be over: they are renewed after a third of their
// time, and an idle process asks once in poll.
func (c *Contact) gap() time.Duration { return max(c.lease/3*2, c.poll+c.lease/3) }

// NoteReply records that the store has replied. If it had not for longer than the gap, other
// processes are given a third of a lease to renew theirs.
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

// Elapsed returns how much time has passed at the store, as far as this process can know: the
// monotonic clock does not advance while the machine is suspended, and the wall clock may be set.
func Elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}
