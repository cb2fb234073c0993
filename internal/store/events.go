package store

import (
	"context"
	"time"
)

// Events is the event log of runs. Each event is written in the transaction that causes it.
type Events interface {
	// Events returns the events of a run with a sequence number above after, in order. limit is at
	// most 1000; 0 means 1000.
	Events(ctx context.Context, account, run string, after int64, limit int) ([]Event, error)

	// Feed returns the events of all runs of an account after a cursor, and the cursor for the next
	// call; "" is the beginning. A caller that follows the feed sees every event once, also with
	// concurrent writers, and the events of one run in order. Feed returns ErrInvalid for a cursor
	// that it did not return.
	Feed(ctx context.Context, account, after string, limit int) ([]Event, string, error)

	// Watch returns hints that a run may have changed, in this or another process, until ctx ends.
	// Hints may be lost or be spurious. A zero Key means that any run may have changed, a Key
	// without a run that CommitWrites wrote to the account. Callers use hints to poll earlier,
	// never instead of polling.
	Watch(ctx context.Context) <-chan Key
}

// Event records a change of a run.
type Event struct {
	Account, Run string
	// Seq numbers the events of a run from 1 without gaps.
	Seq  int64
	Kind EventKind
	// Interrupt is the id of the interrupt that the event is about, if any.
	Interrupt string
	At        time.Time
}

// EventKind is the type of an event.
type EventKind string

// The types of events.
const (
	EventCreated EventKind = "created"
	// an interrupt became visible, or is open again after it was withdrawn
	EventAsked       EventKind = "asked"
	EventDecided     EventKind = "decided"   // by a person or a policy
	EventExpired     EventKind = "expired"   // an interrupt reached its deadline
	EventWithdrawn   EventKind = "withdrawn" // an interrupt was withdrawn
	EventEffectBegun EventKind = "effect_begun"
	EventEffectEnded EventKind = "effect_ended"

	// An execution or the run ended. Each equals the Status that the run has, or had briefly.
	EventWaiting    EventKind = "waiting"
	EventParked     EventKind = "parked"
	EventCompleted  EventKind = "completed"
	EventFailed     EventKind = "failed"
	EventCancelled  EventKind = "cancelled"
	EventSuperseded EventKind = "superseded"
)

// Final reports whether the run has ended. Only the end of an effect that was begun may follow.
func (k EventKind) Final() bool {
	switch k {
	case EventCompleted, EventFailed, EventCancelled, EventSuperseded:
		return true
	}
	return false
}
