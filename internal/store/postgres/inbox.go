package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	inboxColumns = interruptColumns + `, r.state_key, r.provider, r.graph, ` + documentColumns

	// joinRuns joins interrupts with their runs and requests.
	joinRuns = `FROM interrupts AS i JOIN runs AS r ON r.key = i.run_key
LEFT JOIN papers AS p ON p.key = ` + requestKey + ` AND p.account = i.account`

	// The bounds of a list. The index serves the times of both. A separate condition on the times
	// would make the planner expect so few rows that it sorts them all.
	betweenCreated = `(i.created_at, i.id) > ($2, $3) AND (i.created_at, i.id) < ($4, $5)`
	betweenDecided = `(i.decided_at, i.id) > ($2, $3) AND (i.decided_at, i.id) < ($4, $5)`

	// Each list has its index, and a statement for each direction.
	allItems = `
SELECT ` + inboxColumns + ` ` + joinRuns + `
WHERE sha256(i.account) = sha256($1) AND i.account = $1 AND ` + betweenCreated
	pendingItems = `
SELECT ` + inboxColumns + ` ` + joinRuns + `
WHERE sha256(i.account) = sha256($1) AND i.account = $1 AND i.state = 'pending' AND ` + betweenCreated
	kindItems = `
SELECT ` + inboxColumns + ` ` + joinRuns + `
WHERE sha256(i.account) = sha256($1) AND i.account = $1 AND i.state = 'pending' AND i.created_at > '-infinity' AND sha256(i.kind) = sha256($7) AND ` + betweenCreated
	decidedItems = `
SELECT ` + inboxColumns + ` ` + joinRuns + `
WHERE sha256(i.account) = sha256($1) AND i.account = $1 AND i.decided_at IS NOT NULL AND ` + betweenDecided

	oldestCreated = ` ORDER BY i.created_at, i.id LIMIT $6`
	newestCreated = ` ORDER BY i.created_at DESC, i.id DESC LIMIT $6`

	oldestItemsSQL        = allItems + oldestCreated
	newestItemsSQL        = allItems + newestCreated
	oldestPendingItemsSQL = pendingItems + oldestCreated
	newestPendingItemsSQL = pendingItems + newestCreated
	oldestOfKindSQL       = kindItems + oldestCreated
	newestOfKindSQL       = kindItems + newestCreated
	oldestDecidedSQL      = decidedItems + ` ORDER BY i.decided_at, i.id LIMIT $6`
	newestDecidedSQL      = decidedItems + ` ORDER BY i.decided_at DESC, i.id DESC LIMIT $6`

	inboxItemSQL = `
SELECT ` + inboxColumns + ` ` + joinRuns + `
WHERE i.key = ` + keyOfArgs + ` AND i.account = $1`

	countPendingSQL = `
SELECT count(*) FROM (SELECT FROM interrupts AS i WHERE sha256(i.account) = sha256($1) AND i.account = $1 AND i.state = 'pending' AND i.kind <> ALL($2::bytea[]) LIMIT $3) AS open_ones`

	pendingByKindSQL = `
SELECT kind, count(*), min(created_at) FROM (
    SELECT kind, created_at FROM interrupts WHERE state = 'pending' AND created_at > '-infinity' ORDER BY created_at LIMIT $1
) AS oldest GROUP BY kind ORDER BY kind`
)

func scanInboxItem(rows pgx.CollectableRow) (a store.InboxItem, err error) {
	var request store.Document
	more := append([]any{nameScanner{&a.StateKey}, nameScanner{&a.Provider}, nameScanner{&a.Graph}}, documentDest(&request)...)
	a.Interrupt, err = scanInterrupt(extraDest{rows, more})
	if request.Revision > 0 {
		a.Request = &request
	}
	return a, err
}

// extraDest scans additional columns after those of a scan function.
type extraDest struct {
	pgx.CollectableRow
	more []any
}

func (w extraDest) Scan(dest ...any) error { return w.CollectableRow.Scan(append(dest, w.more...)...) }

// InboxItems returns interrupts of all runs of an account; see [store.Inbox].
func (s *Store) InboxItems(ctx context.Context, account string, f store.InboxFilter) (asked []store.InboxItem, err error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	var t txn
	values := []any{account, inboxBound(f.After, pgtype.NegativeInfinity), f.After.ID, inboxBound(f.Before, pgtype.Infinity), f.Before.ID, pageSize(f.Limit, 100)}
	if f.Kind != "" {
		values = append(values, f.Kind)
	}
	queryAll(&t, &asked, scanInboxItem, inboxItemsSQL(f), values...)
	return asked, s.view(ctx, "list interrupts in", &t)
}

func inboxBound(p store.InboxPosition, none pgtype.InfinityModifier) pgtype.Timestamptz {
	bound := pgtype.Timestamptz{Time: p.At, Valid: true}
	if p == (store.InboxPosition{}) {
		bound.InfinityModifier = none
	}
	return bound
}

// inboxItemsSQL returns the statement for a filter.
func inboxItemsSQL(f store.InboxFilter) string {
	oldest, newest := oldestItemsSQL, newestItemsSQL
	switch {
	case f.Kind != "":
		oldest, newest = oldestOfKindSQL, newestOfKindSQL
	case f.State == store.InterruptPending:
		oldest, newest = oldestPendingItemsSQL, newestPendingItemsSQL
	case f.State == store.InterruptDecided:
		oldest, newest = oldestDecidedSQL, newestDecidedSQL
	}
	if f.Newest {
		return newest
	}
	return oldest
}

// InboxItem returns one interrupt; see [store.Inbox].
func (s *Store) InboxItem(ctx context.Context, account, id string) (store.InboxItem, error) {
	var t txn
	var found []store.InboxItem
	queryAll(&t, &found, scanInboxItem, inboxItemSQL, account, id)
	if err := s.view(ctx, "read an interrupt in", &t); err != nil {
		return store.InboxItem{}, err
	}
	if len(found) == 0 {
		return store.InboxItem{}, store.ErrNotFound
	}
	return found[0], nil
}

// CountPending counts the open interrupts of an account; see [store.Inbox].
func (s *Store) CountPending(ctx context.Context, account string, without []string, limit int) (count int, err error) {
	kinds := make([][]byte, len(without))
	for n, kind := range without {
		kinds[n] = []byte(kind)
	}
	var t txn
	found := false
	t.queryRow(&found, []any{&count}, countPendingSQL, account, kinds, limit)
	return count, s.view(ctx, "count pending interrupts in", &t)
}

// PendingByKind counts the open interrupts of all accounts by kind; see [store.Inbox].
func (s *Store) PendingByKind(ctx context.Context, limit int) (waits []store.PendingCount, err error) {
	var t txn
	queryAll(&t, &waits, func(rows pgx.CollectableRow) (w store.PendingCount, err error) {
		err = rows.Scan(nameScanner{&w.Kind}, &w.Count, timeScanner{&w.Oldest})
		return w, err
	}, pendingByKindSQL, max(limit, 0))
	return waits, s.view(ctx, "count pending interrupts by kind in", &t)
}
