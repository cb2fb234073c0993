package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/chain"
	"github.com/fermata-go/fermata/store"
)

type paperKey struct {
	account string
	kind    store.PaperKind
	id      string
}

// logbook is the audit log of one account.
type logbook struct {
	head  chain.Head
	lines []store.AuditLine
}

// beside looks whether what is to be written beside a change is stale; whether it can be written at all was looked at. What it returns writes
// it, and cannot fail.
func (b *book) beside(now time.Time, account string, beside store.Beside) (write func(), err error) {
	for _, p := range beside.Papers {
		revision := int64(0)
		if kept := b.papers[paperKey{account, p.Kind, p.ID}]; kept != nil {
			revision = kept.Revision
		}
		if p.Base != revision { //mutate:memory-document-revision
			return nil, store.ErrStale
		}
	}
	return func() { b.put(now, account, beside) }, nil
}

func (b *book) put(now time.Time, account string, beside store.Beside) {
	for _, p := range beside.Papers {
		key := paperKey{account, p.Kind, p.ID}
		kept := b.papers[key]
		if kept == nil {
			kept = &store.Paper{Account: account, Kind: p.Kind, ID: p.ID, Run: p.Run, Created: now}
			b.papers[key] = kept
		}
		//mutate:memory-deadline-only-pending
		if i := b.asked(account, p.ID); p.Kind == store.RequestPaper && !p.Deadline.IsZero() && i != nil && i.State == store.Pending {
			i.Deadline = p.Deadline
		}
		kept.Revision, kept.Body, kept.Facts, kept.Next, kept.Updated = p.Base+1, p.Body, p.Facts, p.Next, now
	}
	if len(beside.Audit) == 0 { //mutate:memory-audit-written
		return
	}
	log := b.audit[account]
	if log == nil {
		log = new(logbook)
		b.audit[account] = log
	}
	for _, line := range beside.Audit {
		raw, next, err := chain.Next(log.head, now, line)
		if err != nil {
			panic(err) // it was checked
		}
		log.head, log.lines = next, append(log.lines, store.AuditLine{Seq: next.Seq, Raw: raw})
	}
}

// moveOn tells the request of an interrupt that it was withdrawn: what was prepared on it before is stale. One that is changed with the
// withdrawal itself moves on by that.
func (b *book) moveOn(now time.Time, i *store.Interrupt) {
	if request := b.papers[paperKey{i.Account, store.RequestPaper, i.ID}]; request != nil {
		request.Revision++ //mutate:memory-withdrawal-touches-request
		request.Next, request.Updated = time.Time{}, now
	}
}

// request returns the request of an interrupt, or nil if it has none.
func (b *book) request(i *store.Interrupt) *store.Paper {
	kept := b.papers[paperKey{i.Account, store.RequestPaper, i.ID}]
	if kept == nil {
		return nil
	}
	request := *kept
	return &request
}

// brings reports whether a decision has the change of each request that it decides.
func (b *book) brings(d store.Decision) bool {
	changed := d.Beside.Requests()
	for _, answer := range d.Answers {
		if !slices.Contains(changed, answer.Interrupt) && b.papers[paperKey{d.Account, store.RequestPaper, answer.Interrupt}] != nil {
			return false
		}
	}
	return true
}

func (b *book) due(now time.Time, kind store.PaperKind, limit int) []store.Paper {
	var due []store.Paper
	for _, p := range b.papers {
		if p.Kind != kind || p.Next.IsZero() || p.Next.After(now) {
			continue
		}
		if i := b.asked(p.Account, p.ID); kind == store.RequestPaper && (i == nil || i.State != store.Pending) {
			continue
		}
		due = append(due, *p)
	}
	slices.SortFunc(due, func(a, b store.Paper) int {
		return cmp.Or(a.Next.Compare(b.Next), cmp.Compare(a.Account, b.Account), cmp.Compare(a.ID, b.ID))
	})
	return due[:min(len(due), max(limit, 0))]
}

// papersOf are papers that a function wants, by kind and id.
func (b *book) papersOf(want func(*store.Paper) bool) []store.Paper {
	var list []store.Paper
	for p := range maps.Values(b.papers) {
		if want(p) {
			list = append(list, *p)
		}
	}
	slices.SortFunc(list, func(a, b store.Paper) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID)) })
	return list
}

// Paper returns a paper; see [store.Desk].
func (r *Runs) Paper(ctx context.Context, account string, kind store.PaperKind, id string) (store.Paper, error) {
	return do(ctx, r, func(b *book, _ time.Time) (store.Paper, error) {
		if p := b.papers[paperKey{account, kind, id}]; p != nil {
			return *p, nil
		}
		return store.Paper{}, store.ErrNotFound
	})
}

// Papers returns papers of one kind; see [store.Desk].
func (r *Runs) Papers(ctx context.Context, account string, kind store.PaperKind, f store.PaperFilter) ([]store.Paper, error) {
	return do(ctx, r, func(b *book, _ time.Time) ([]store.Paper, error) {
		list := b.papersOf(func(p *store.Paper) bool {
			return p.Account == account && p.Kind == kind && (f.Run == "" || p.Run == f.Run) && p.ID > f.After
		})
		return list[:min(len(list), page(f.Limit, 100))], nil
	})
}

// Due returns papers whose time has come; see [store.Desk].
func (r *Runs) Due(ctx context.Context, kind store.PaperKind, limit int) ([]store.Paper, error) {
	return do(ctx, r, func(b *book, now time.Time) ([]store.Paper, error) { return b.due(now, kind, limit), nil })
}

// Amend writes papers and audit lines; see [store.Desk].
func (r *Runs) Amend(ctx context.Context, account string, beside store.Beside) error {
	_, err := do(ctx, r, func(b *book, now time.Time) (struct{}, error) {
		if err := beside.Check(); err != nil {
			return struct{}{}, err
		}
		for _, run := range beside.NewRuns() {
			if b.runs[store.Key{Account: account, Run: run}] == nil {
				return struct{}{}, store.ErrNotFound
			}
		}
		write, err := b.beside(now, account, beside)
		if err == nil {
			write()
		}
		return struct{}{}, err
	})
	return err
}

// AuditHead returns the end of an account's chain; see [store.AuditLog].
func (r *Runs) AuditHead(ctx context.Context, account string) (chain.Head, error) {
	return do(ctx, r, func(b *book, _ time.Time) (head chain.Head, err error) {
		if log := b.audit[account]; log != nil {
			head = log.head
		}
		return head, nil
	})
}

// AuditAccounts returns the accounts that have a line; see [store.AuditLog].
func (r *Runs) AuditAccounts(ctx context.Context, after string, limit int) (accounts []string, next string, err error) {
	accounts, err = do(ctx, r, func(b *book, _ time.Time) ([]string, error) {
		all := slices.Sorted(maps.Keys(b.audit))
		first, _ := slices.BinarySearch(all, after)
		return all[first:min(len(all), first+page(limit, 1000))], nil
	})
	if len(accounts) == page(limit, 1000) {
		next = accounts[len(accounts)-1] + "\x00"
	}
	return accounts, next, err
}

// AuditLines returns lines of an account's chain; see [store.AuditLog].
func (r *Runs) AuditLines(ctx context.Context, account string, after int64, limit int) ([]store.AuditLine, error) {
	return do(ctx, r, func(b *book, _ time.Time) ([]store.AuditLine, error) {
		log := b.audit[account]
		if log == nil || after >= int64(len(log.lines)) {
			return nil, nil
		}
		lines := log.lines[max(after, 0):]
		return slices.Clone(lines[:min(len(lines), page(limit, 1000))]), nil
	})
}
