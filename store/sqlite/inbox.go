package sqlite

import (
	"context"
	"math"

	"github.com/fermata-go/fermata/store"
)

const (
	inboxColumns = interruptColumns + `, r.state_key, r.provider, r.graph, ` + documentColumns

	// CROSS JOIN fixes the join order: from interrupts to their runs and requests.
	joinRuns = `CROSS JOIN runs AS r ON r.account = i.account AND r.run = i.run
LEFT JOIN papers AS p ON p.account = i.account AND p.kind = 'request' AND p.id = i.id`

	afterPosition = `i.account = ?1 AND (i.created_at, i.id) > (?2, ?3) AND (length(?4) = 0 OR i.kind = ?4)`

	pendingItemsSQL = `
SELECT ` + inboxColumns + ` FROM interrupts AS i INDEXED BY interrupts_pending ` + joinRuns + `
WHERE ` + afterPosition + ` AND i.state = 'pending' ORDER BY i.created_at, i.id LIMIT ?5`

	inboxItemsSQL = `
SELECT ` + inboxColumns + ` FROM interrupts AS i INDEXED BY interrupts_asked ` + joinRuns + `
WHERE ` + afterPosition + ` AND (length(?6) = 0 OR i.state = ?6) ORDER BY i.created_at, i.id LIMIT ?5`

	inboxItemSQL = `
SELECT ` + inboxColumns + ` FROM interrupts AS i ` + joinRuns + ` WHERE i.account = ?1 AND i.id = ?2`

	countPendingSQL = `
SELECT count(*) FROM (SELECT 1 FROM interrupts INDEXED BY interrupts_pending WHERE account = ?1 AND state = 'pending' LIMIT ?2)`

	pendingByKindSQL = `
SELECT kind, count(*), min(created_at) FROM (
    SELECT kind, created_at FROM interrupts INDEXED BY interrupts_waiting WHERE state = 'pending' ORDER BY created_at LIMIT ?1
) GROUP BY kind ORDER BY kind`
)

func scanInboxItem(row rowScanner) (a store.InboxItem, err error) {
	var request store.Document
	a.Interrupt, err = scanInterrupt(extraDest{row, append([]any{&a.StateKey, &a.Provider, &a.Graph}, documentDest(&request)...)})
	if request.Revision > 0 {
		a.Request = &request
	}
	return a, err
}

// extraDest scans additional columns after those of a scan function.
type extraDest struct {
	rowScanner
	more []any
}

func (w extraDest) Scan(dest ...any) error { return w.rowScanner.Scan(append(dest, w.more...)...) }

// InboxItems returns interrupts of all runs of an account; see [store.Inbox].
func (s *Store) InboxItems(ctx context.Context, account string, filter store.InboxFilter) ([]store.InboxItem, error) {
	after := int64(math.MinInt64)
	if filter.After != (store.InboxPosition{}) {
		after = filter.After.Created.UnixMicro()
	}
	values := []any{account, after, filter.After.ID, filter.Kind, pageSize(filter.Limit, 100)}
	text := pendingItemsSQL
	if filter.State != store.InterruptPending {
		text, values = inboxItemsSQL, append(values, filter.State)
	}
	all, err := queryAll(ctx, s.view(), scanInboxItem, text, values...)
	if err != nil {
		return nil, s.fail(ctx, "list interrupts in", err)
	}
	return all, nil
}

// InboxItem returns one interrupt; see [store.Inbox].
func (s *Store) InboxItem(ctx context.Context, account, id string) (store.InboxItem, error) {
	found, err := queryAll(ctx, s.view(), scanInboxItem, inboxItemSQL, account, id)
	if err == nil && len(found) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.InboxItem{}, s.fail(ctx, "read an interrupt in", err)
	}
	return found[0], nil
}

// CountPending counts the open interrupts of an account; see [store.Inbox].
func (s *Store) CountPending(ctx context.Context, account string, limit int) (count int, err error) {
	if _, err := s.view().queryRow(ctx, []any{&count}, countPendingSQL, account, limit); err != nil {
		return 0, s.fail(ctx, "count pending interrupts in", err)
	}
	return count, nil
}

// PendingByKind counts the open interrupts of all accounts by kind; see [store.Inbox].
func (s *Store) PendingByKind(ctx context.Context, limit int) ([]store.PendingCount, error) {
	waits, err := queryAll(ctx, s.view(), func(row rowScanner) (w store.PendingCount, err error) {
		err = row.Scan(&w.Kind, &w.Count, timeScanner{&w.Oldest})
		return w, err
	}, pendingByKindSQL, max(limit, 0))
	if err != nil {
		return nil, s.fail(ctx, "count pending interrupts by kind in", err)
	}
	return waits, nil
}
