package view

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
)

// RequestChange is a change of a request that its viewers should see.
type RequestChange struct {
	// Seq orders the changes of an account. It is the number of the audit record, which is written
	// in the transaction of the change.
	Seq      int64
	Request  string
	Revision int64 // of the request, after the change; 0 if it is not recorded
	Kind     ChangeKind
	At       time.Time
}

// ChangeKind says how a request changed.
type ChangeKind string

// The kinds of changes. ChangeUpdated is any change without a kind of its own: a comment, an edit,
// a delegation, an escalation, a moved deadline.
const (
	ChangeOpened    ChangeKind = "opened"
	ChangeUpdated   ChangeKind = "changed"
	ChangeVoted     ChangeKind = "voted"
	ChangeDecided   ChangeKind = "decided"
	ChangeClaimed   ChangeKind = "claimed"
	ChangeReleased  ChangeKind = "released"
	ChangeExpired   ChangeKind = "expired"
	ChangeWithdrawn ChangeKind = "withdrawn"
)

// RequestChanges returns changes of the requests of an account after a number, in order, and the
// number for the next call. There are no more when the number stays the same.
func (r *Reader) RequestChanges(ctx context.Context, account string, after int64) (changes []RequestChange, next int64, err error) {
	lines, err := r.store.AuditLines(ctx, account, after, 0)
	if err != nil {
		return nil, after, err
	}
	for _, line := range lines {
		after = line.Seq
		record, err := audit.Parse(line.Raw)
		if errors.Is(err, audit.ErrUnknownKind) { // of a newer version
			continue
		}
		if err != nil {
			return nil, after, err
		}
		if kind := changeKindOf(record.Body); kind != "" && record.Location.Request != "" {
			changes = append(changes, RequestChange{
				Seq: record.Seq, Request: record.Location.Request, Revision: record.Location.Revision, Kind: kind, At: record.Time.Time,
			})
		}
	}
	return changes, after, nil
}

// LastChange returns the number of the newest change of an account.
func (r *Reader) LastChange(ctx context.Context, account string) (int64, error) {
	head, err := r.store.AuditHead(ctx, account)
	return head.Seq, err
}

// changeKindOf returns the change that a record describes, or "". A view is not a change: a client
// that reads a request after each change would otherwise never stop.
func changeKindOf(body audit.Body) ChangeKind {
	switch body := body.(type) {
	case audit.RequestAsked:
		return ChangeOpened
	case audit.RequestDecided:
		if body.Settles {
			return ChangeDecided
		}
		return ChangeVoted
	case audit.RequestClaimed:
		return ChangeClaimed
	case audit.RequestReleased:
		return ChangeReleased
	case audit.RequestExpired:
		return ChangeExpired
	case audit.RequestWithdrawn:
		return ChangeWithdrawn
	case audit.RequestEscalated, audit.RequestDelegated, audit.RequestSnoozed, audit.RequestChanged, audit.RequestCommented:
		return ChangeUpdated
	default:
		return ""
	}
}

// WatchRequests returns hints that requests of an account may have changed, here or in another
// process. A hint may be lost: look now and then without one. stop has to be called.
func (r *Reader) WatchRequests(account string) (changed <-chan struct{}, stop func()) {
	return r.waiter.Watch(account, "")
}
