package store

import (
	"context"
	"time"
)

// Inbox is what people see of the runs of an account.
type Inbox interface {
	// InboxItem returns interrupts of all runs of an account, in the order in which they became visible, the oldest first.
	InboxItems(ctx context.Context, account string, filter InboxFilter) ([]InboxItem, error)

	// Question returns one interrupt, or ErrNotFound.
	InboxItem(ctx context.Context, account, id string) (InboxItem, error)

	// RunSnapshot returns where the newest run of a state key stands, as it was at one moment, or ErrNotFound. own is a kind of papers whose ids are
	// those of runs: that of the run comes along.
	RunSnapshot(ctx context.Context, account, stateKey string, own DocumentKind) (RunSnapshot, error)

	// InterruptPending counts the interrupts of an account that are open, but no further than to limit.
	CountPending(ctx context.Context, account string, limit int) (int, error)

	// Waits counts the interrupts of all accounts that are open by their kinds, in the order of those; but no more than the limit, those that
	// have waited longest.
	PendingByKind(ctx context.Context, limit int) ([]PendingCount, error)
}

// PendingCount is how many open interrupts of a kind there are, and since when the oldest of them waits.
type PendingCount struct {
	Kind   string
	Count  int64
	Oldest time.Time
}

// InboxItem is an interrupt, the run that asks, and what people have before them.
type InboxItem struct {
	Interrupt
	StateKey        string
	Provider, Graph string
	// Request is the request of the interrupt, as it was at the same moment; nil if it has none.
	Request *Document
}

// InboxFilter says which interrupts are wanted.
type InboxFilter struct {
	// State and Kind, if given, are the only ones that are wanted.
	State InterruptState
	Kind  string
	// After, if it is not zero, is the place of the last one of the page before. Limit is the size of the page, 1000 at most; 0 is 100.
	After InboxPosition
	Limit int
}

// InboxPosition is where an interrupt stands in the list: by the time it became visible, and of those of one time by its id.
type InboxPosition struct {
	Created time.Time
	ID      string
}
