package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/chain"
	"github.com/fermata-go/fermata/internal/store"
)

type documentKey struct {
	account string
	kind    store.DocumentKind
	id      string
}

// auditChain is the audit log of one account.
type auditChain struct {
	head  chain.Head
	lines []store.AuditLine
}

// prepareWrites returns ErrStale if a document is stale. Otherwise it returns a function that
// applies the writes and cannot fail. The caller has validated the writes.
func (b *tables) prepareWrites(now time.Time, account string, writes store.Writes) (write func(), err error) {
	for _, p := range writes.Documents {
		revision := int64(0)
		if kept := b.documents[documentKey{account, p.Kind, p.ID}]; kept != nil {
			revision = kept.Revision
		}
		if p.BaseRevision != revision { //mutate:memory-document-revision
			return nil, store.ErrStale
		}
	}
	return func() { b.applyWrites(now, account, writes) }, nil
}

func (b *tables) applyWrites(now time.Time, account string, writes store.Writes) {
	for _, p := range writes.Documents {
		key := documentKey{account, p.Kind, p.ID}
		kept := b.documents[key]
		if kept == nil {
			kept = &store.Document{Account: account, Kind: p.Kind, ID: p.ID, Run: p.Run, Created: now}
			b.documents[key] = kept
		}
		//mutate:memory-deadline-only-pending
		if i := b.interrupt(account, p.ID); p.Kind == store.RequestDocument && !p.InterruptDeadline.IsZero() && i != nil && i.State == store.InterruptPending {
			i.Deadline = p.InterruptDeadline
		}
		kept.Revision, kept.Body, kept.Index, kept.DueAt, kept.Updated = p.BaseRevision+1, p.Body, p.Index, p.DueAt, now
	}
	if len(writes.Audit) == 0 { //mutate:memory-audit-written
		return
	}
	log := b.audit[account]
	if log == nil {
		log = new(auditChain)
		b.audit[account] = log
	}
	for _, line := range writes.Audit {
		raw, next, err := chain.Next(log.head, now, line)
		if err != nil {
			panic(err) // it was validated
		}
		log.head, log.lines = next, append(log.lines, store.AuditLine{Seq: next.Seq, Raw: raw})
	}
}

// reviseWithdrawnRequest gives the request of a withdrawn interrupt a new revision, so that
// prepared changes become stale. A request that is changed with the withdrawal gets its revision
// from that change.
func (b *tables) reviseWithdrawnRequest(now time.Time, i *store.Interrupt) {
	if request := b.documents[documentKey{i.Account, store.RequestDocument, i.ID}]; request != nil {
		request.Revision++ //mutate:memory-withdrawal-touches-request
		request.DueAt, request.Updated = time.Time{}, now
	}
}

// request returns the request of an interrupt, or nil if it has none.
func (b *tables) request(i *store.Interrupt) *store.Document {
	kept := b.documents[documentKey{i.Account, store.RequestDocument, i.ID}]
	if kept == nil {
		return nil
	}
	request := *kept
	return &request
}

// changesRequests reports whether a decision changes the request of each interrupt that it decides.
func (b *tables) changesRequests(d store.Decision) bool {
	changed := d.Writes.RequestIDs()
	for _, answer := range d.Answers {
		if !slices.Contains(changed, answer.Interrupt) && b.documents[documentKey{d.Account, store.RequestDocument, answer.Interrupt}] != nil {
			return false
		}
	}
	return true
}

func (b *tables) due(now time.Time, kind store.DocumentKind, limit int) []store.Document {
	var due []store.Document
	for _, p := range b.documents {
		if p.Kind != kind || p.DueAt.IsZero() || p.DueAt.After(now) {
			continue
		}
		if i := b.interrupt(p.Account, p.ID); kind == store.RequestDocument && (i == nil || i.State != store.InterruptPending) {
			continue
		}
		due = append(due, *p)
	}
	slices.SortFunc(due, func(a, b store.Document) int {
		return cmp.Or(a.DueAt.Compare(b.DueAt), cmp.Compare(a.Account, b.Account), cmp.Compare(a.ID, b.ID))
	})
	return due[:min(len(due), max(limit, 0))]
}

// documentsWhere returns the documents that match, ordered by kind and id.
func (b *tables) documentsWhere(want func(*store.Document) bool) []store.Document {
	var list []store.Document
	for p := range maps.Values(b.documents) {
		if want(p) {
			list = append(list, *p)
		}
	}
	slices.SortFunc(list, func(a, b store.Document) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID)) })
	return list
}

// Document returns a document; see [store.Documents].
func (r *Store) Document(ctx context.Context, account string, kind store.DocumentKind, id string) (store.Document, error) {
	return update(ctx, r, func(b *tables, _ time.Time) (store.Document, error) {
		if p := b.documents[documentKey{account, kind, id}]; p != nil {
			return *p, nil
		}
		return store.Document{}, store.ErrNotFound
	})
}

// Documents returns documents of one kind; see [store.Documents].
func (r *Store) Documents(ctx context.Context, account string, kind store.DocumentKind, f store.DocumentFilter) ([]store.Document, error) {
	return update(ctx, r, func(b *tables, _ time.Time) ([]store.Document, error) {
		list := b.documentsWhere(func(p *store.Document) bool {
			return p.Account == account && p.Kind == kind && (f.Run == "" || p.Run == f.Run) && p.ID > f.After
		})
		return list[:min(len(list), pageSize(f.Limit, 100))], nil
	})
}

// DueDocuments returns documents whose DueAt has passed; see [store.Documents].
func (r *Store) DueDocuments(ctx context.Context, kind store.DocumentKind, limit int) ([]store.Document, error) {
	return update(ctx, r, func(b *tables, now time.Time) ([]store.Document, error) { return b.due(now, kind, limit), nil })
}

// CommitWrites writes documents and audit lines; see [store.Documents].
func (r *Store) CommitWrites(ctx context.Context, account string, writes store.Writes) error {
	_, err := update(ctx, r, func(b *tables, now time.Time) (struct{}, error) {
		if err := writes.Validate(); err != nil {
			return struct{}{}, err
		}
		for _, run := range writes.RunsOfNewDocuments() {
			if b.runs[store.Key{Account: account, Run: run}] == nil {
				return struct{}{}, store.ErrNotFound
			}
		}
		write, err := b.prepareWrites(now, account, writes)
		if err == nil {
			write()
			b.events.touched = append(b.events.touched, store.Key{Account: account})
		}
		return struct{}{}, err
	})
	return err
}

// AuditHead returns the head of an account's chain; see [store.AuditLog].
func (r *Store) AuditHead(ctx context.Context, account string) (chain.Head, error) {
	return update(ctx, r, func(b *tables, _ time.Time) (head chain.Head, err error) {
		if log := b.audit[account]; log != nil {
			head = log.head
		}
		return head, nil
	})
}

// AuditAccounts returns the accounts that have an audit line; see [store.AuditLog].
func (r *Store) AuditAccounts(ctx context.Context, after string, limit int) (accounts []string, next string, err error) {
	accounts, err = update(ctx, r, func(b *tables, _ time.Time) ([]string, error) {
		all := slices.Sorted(maps.Keys(b.audit))
		first, _ := slices.BinarySearch(all, after)
		return all[first:min(len(all), first+pageSize(limit, 1000))], nil
	})
	if len(accounts) == pageSize(limit, 1000) {
		next = accounts[len(accounts)-1] + "\x00"
	}
	return accounts, next, err
}

// AuditLines returns lines of an account's chain; see [store.AuditLog].
func (r *Store) AuditLines(ctx context.Context, account string, after int64, limit int) ([]store.AuditLine, error) {
	return update(ctx, r, func(b *tables, _ time.Time) ([]store.AuditLine, error) {
		log := b.audit[account]
		if log == nil || after >= int64(len(log.lines)) {
			return nil, nil
		}
		lines := log.lines[max(after, 0):]
		return slices.Clone(lines[:min(len(lines), pageSize(limit, 1000))]), nil
	})
}
