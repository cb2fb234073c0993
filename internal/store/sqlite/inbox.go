package sqlite

import (
	"context"
	"encoding/json"
	"math"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	inboxColumns = interruptColumns + `, r.state_key, r.provider, r.graph, ` + documentColumns

	// CROSS JOIN fixes the join order: from interrupts to their runs and requests.
	joinRuns = `CROSS JOIN runs AS r ON r.account = i.account AND r.run = i.run
LEFT JOIN papers AS p ON p.account = i.account AND p.kind = 'request' AND p.id = i.id`

	betweenCreated = ` AND (i.created_at, i.id) > (?2, ?3) AND (i.created_at, i.id) < (?4, ?5) `
	betweenDecided = ` AND (i.decided_at, i.id) > (?2, ?3) AND (i.decided_at, i.id) < (?4, ?5) `

	// Each list has its index, and a statement for each direction.
	allItems = `
SELECT ` + inboxColumns + ` FROM interrupts AS i INDEXED BY interrupts_asked ` + joinRuns + `
WHERE i.account = ?1` + betweenCreated
	pendingItems = `
SELECT ` + inboxColumns + ` FROM interrupts AS i INDEXED BY interrupts_pending ` + joinRuns + `
WHERE i.account = ?1 AND i.state = 'pending'` + betweenCreated
	kindItems = `
SELECT ` + inboxColumns + ` FROM interrupts AS i INDEXED BY interrupts_of_kind ` + joinRuns + `
WHERE i.account = ?1 AND i.kind = ?7 AND i.state = 'pending'` + betweenCreated
	decidedItems = `
SELECT ` + inboxColumns + ` FROM interrupts AS i INDEXED BY interrupts_decided ` + joinRuns + `
WHERE i.account = ?1 AND i.state = 'decided'` + betweenDecided

	oldestCreated = `ORDER BY i.created_at, i.id LIMIT ?6`
	newestCreated = `ORDER BY i.created_at DESC, i.id DESC LIMIT ?6`

	oldestItemsSQL        = allItems + oldestCreated
	newestItemsSQL        = allItems + newestCreated
	oldestPendingItemsSQL = pendingItems + oldestCreated
	newestPendingItemsSQL = pendingItems + newestCreated
	oldestOfKindSQL       = kindItems + oldestCreated
	newestOfKindSQL       = kindItems + newestCreated
	oldestDecidedSQL      = decidedItems + `ORDER BY i.decided_at, i.id LIMIT ?6`
	newestDecidedSQL      = decidedItems + `ORDER BY i.decided_at DESC, i.id DESC LIMIT ?6`

	inboxItemSQL = `
SELECT ` + inboxColumns + ` FROM interrupts AS i ` + joinRuns + ` WHERE i.account = ?1 AND i.id = ?2`

	countPendingSQL = `
SELECT count(*) FROM (SELECT 1 FROM interrupts INDEXED BY interrupts_pending WHERE account = ?1 AND state = 'pending'
    AND kind NOT IN (SELECT CAST(value AS BLOB) FROM json_each(CAST(?2 AS TEXT))) LIMIT ?3)`

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
	if err := filter.Validate(); err != nil {
		return nil, err
	}
	after, before := int64(math.MinInt64), int64(math.MaxInt64)
	if filter.After != (store.InboxPosition{}) {
		after = filter.After.At.UnixMicro()
	}
	if filter.Before != (store.InboxPosition{}) {
		before = filter.Before.At.UnixMicro()
	}
	values := []any{account, after, filter.After.ID, before, filter.Before.ID, pageSize(filter.Limit, 100)}
	if filter.Kind != "" {
		values = append(values, filter.Kind)
	}
	all, err := queryAll(ctx, s.view(), scanInboxItem, inboxItemsSQL(filter), values...)
	if err != nil {
		return nil, s.fail(ctx, "list interrupts in", err)
	}
	return all, nil
}

// inboxItemsSQL returns the statement for a filter.
func inboxItemsSQL(filter store.InboxFilter) string {
	oldest, newest := oldestItemsSQL, newestItemsSQL
	switch {
	case filter.Kind != "":
		oldest, newest = oldestOfKindSQL, newestOfKindSQL
	case filter.State == store.InterruptPending:
		oldest, newest = oldestPendingItemsSQL, newestPendingItemsSQL
	case filter.State == store.InterruptDecided:
		oldest, newest = oldestDecidedSQL, newestDecidedSQL
	}
	if filter.Newest {
		return newest
	}
	return oldest
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
func (s *Store) CountPending(ctx context.Context, account string, without []string, limit int) (count int, err error) {
	kinds, err := json.Marshal(append([]string{}, without...))
	if err != nil {
		return 0, err
	}
	if _, err := s.view().queryRow(ctx, []any{&count}, countPendingSQL, account, kinds, limit); err != nil {
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
