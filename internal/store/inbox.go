package store

import (
	"cmp"
	"context"
	"time"
)

// Inbox reads the interrupts of an account as people see them.
type Inbox interface {
	// InboxItems returns interrupts of all runs of an account. It returns ErrInvalid for a filter
	// that no index serves; see [InboxFilter].
	InboxItems(ctx context.Context, account string, filter InboxFilter) ([]InboxItem, error)

	// InboxItem returns one interrupt, or ErrNotFound.
	InboxItem(ctx context.Context, account, id string) (InboxItem, error)

	// RunSnapshot returns the newest run of a state key with its open interrupts and documents,
	// read in one transaction, or ErrNotFound. runKind is a document kind whose ids are run ids;
	// the snapshot includes the document of that kind.
	RunSnapshot(ctx context.Context, account, stateKey string, runKind DocumentKind) (RunSnapshot, error)

	// CountPending counts the open interrupts of an account without those of some kinds, up to
	// limit.
	CountPending(ctx context.Context, account string, without []string, limit int) (int, error)

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

// InboxFilter selects interrupts. Stores serve each filter with an index, so that a page costs the
// same however many interrupts the account has.
type InboxFilter struct {
	// State is pending or decided, or "" for all. Decided interrupts are ordered by the time of
	// their decision, the others by the time they became visible.
	State InterruptState
	// Kind restricts the result if it is not empty. It requires the state pending.
	Kind string
	// After and Before are the bounds of the list, which they do not belong to. Zero: no bound.
	After, Before InboxPosition
	// Newest returns the newest items first, otherwise the oldest.
	Newest bool
	// Limit is the page size, at most 1000; 0 means 100.
	Limit int
}

// Validate returns ErrInvalid for a filter that no index serves.
func (f InboxFilter) Validate() error {
	switch f.State {
	case InterruptPending:
		return nil
	case "", InterruptDecided:
		if f.Kind == "" {
			return nil
		}
	case InterruptWithdrawn:
	}
	return ErrInvalid
}

// Position returns the position of an interrupt in the list of the filter.
func (f InboxFilter) Position(i Interrupt) InboxPosition {
	if f.State == InterruptDecided {
		return InboxPosition{At: i.DecidedAt, ID: i.ID}
	}
	return InboxPosition{At: i.Created, ID: i.ID}
}

// InboxPosition is a position in a list of interrupts: a time, then an id.
type InboxPosition struct {
	At time.Time
	ID string
}

// Compare orders positions.
func (p InboxPosition) Compare(other InboxPosition) int {
	return cmp.Or(p.At.Compare(other.At), cmp.Compare(p.ID, other.ID))
}
