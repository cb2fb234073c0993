package store

import (
	"context"
	"time"
)

// Events is what happened to runs, written in the transactions in which it happened.
type Events interface {
	// Events returns the events of a run behind a number, in order; limit is 1000 at most, and 0 is 1000.
	Events(ctx context.Context, account, run string, after int64, limit int) ([]Event, error)

	// Feed returns events of all runs of an account behind a cursor, and the cursor for the next call; "" is the beginning. Whoever keeps
	// following it sees every event once, however many write at the same time; those of one run in their order.
	// A cursor that it did not return is ErrInvalid.
	Feed(ctx context.Context, account, after string, limit int) ([]Event, string, error)

	// Watch returns hints that something has happened to a run, here or in another process, until ctx ends. A hint may be lost or come
	// for nothing; a zero Key says that it may have been any run. So what hints save is waiting, never looking.
	Watch(ctx context.Context) <-chan Key
}

// Event is something that happened to a run.
type Event struct {
	Account, Run string
	// Number counts the events of a run, from 1 and without a gap.
	Seq  int64
	Kind EventKind
	// Interrupt is the one that it is about, if any.
	Interrupt string
	At        time.Time
}

// EventKind is what happened.
type EventKind string

// What can happen to a run.
const (
	EventCreated     EventKind = "created"
	EventAsked       EventKind = "asked"     // an interrupt became visible, or is asked again after it was withdrawn
	EventDecided     EventKind = "decided"   // by a person, or a policy
	EventExpired     EventKind = "expired"   // an interrupt, by the clock
	EventWithdrawn   EventKind = "withdrawn" // an interrupt
	EventEffectBegun EventKind = "effect_begun"
	EventEffectEnded EventKind = "effect_ended"

	// The run came to rest, or was ended. Each is the Status that it has then, or had for a moment.
	EventWaiting    EventKind = "waiting"
	EventParked     EventKind = "parked"
	EventCompleted  EventKind = "completed"
	EventFailed     EventKind = "failed"
	EventCancelled  EventKind = "cancelled"
	EventSuperseded EventKind = "superseded"
)

// Final reports whether nothing more happens to the run, but that an effect that was begun may still end.
func (k EventKind) Final() bool {
	switch k {
	case EventCompleted, EventFailed, EventCancelled, EventSuperseded:
		return true
	}
	return false
}
