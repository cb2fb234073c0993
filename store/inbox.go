package store

import (
	"context"
	"time"
)

// Inbox reads the interrupts of an account as people see them.
type Inbox interface {
	// InboxItems returns interrupts of all runs of an account in the order in which they became
	// visible, oldest first.
	InboxItems(ctx context.Context, account string, filter InboxFilter) ([]InboxItem, error)

	// InboxItem returns one interrupt, or ErrNotFound.
	InboxItem(ctx context.Context, account, id string) (InboxItem, error)

	// RunSnapshot returns the newest run of a state key with its open interrupts and documents,
	// read in one transaction, or ErrNotFound. runKind is a document kind whose ids are run ids;
	// the snapshot includes the document of that kind.
	RunSnapshot(ctx context.Context, account, stateKey string, runKind DocumentKind) (RunSnapshot, error)

	// CountPending counts the open interrupts of an account, up to limit.
	CountPending(ctx context.Context, account string, limit int) (int, error)

	// PendingByKind counts the open interrupts of all accounts by kind, ordered by kind. It counts
	// at most limit interrupts, the oldest ones.
	PendingByKind(ctx context.Context, limit int) ([]PendingCount, error)
}

// PendingCount is the number of open interrupts of a kind and the creation time of the oldest.
type PendingCount struct {
	Kind   string
	Count  int64
	Oldest time.Time
}

// InboxItem is an interrupt with its run and its request.
type InboxItem struct {
	Interrupt
	StateKey        string
	Provider, Graph string
	// Request is the request of the interrupt, read in the same transaction; nil if it has none.
	Request *Document
}

// InboxFilter selects interrupts.
type InboxFilter struct {
	// State and Kind restrict the result if they are not empty.
	State InterruptState
	Kind  string
	// After is the position of the last item of the previous page; zero starts at the beginning.
	// Limit is the page size, at most 1000; 0 means 100.
	After InboxPosition
	Limit int
}

// InboxPosition is the position of an interrupt in the list: its creation time, then its id.
type InboxPosition struct {
	Created time.Time
	ID      string
}
