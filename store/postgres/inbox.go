package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fermata-go/fermata/store"
)

const (
	inboxColumns = interruptColumns + `, r.state_key, r.provider, r.graph, ` + documentColumns

	// joinRuns joins interrupts with their runs and requests.
	joinRuns = `FROM interrupts AS i JOIN runs AS r ON r.key = i.run_key
LEFT JOIN papers AS p ON p.key = ` + requestKey + ` AND p.account = i.account`

	// afterPosition selects what follows a position in the list. The first condition uses the
	// index, the second is exact.
	afterPosition = `sha256(i.account) = sha256($1) AND i.account = $1 AND i.created_at >= $2 AND (i.created_at, i.id) > ($2, $3)
  AND ($4::bytea = '' OR i.kind = $4)`

	pendingItemsSQL = `
SELECT ` + inboxColumns + ` ` + joinRuns + `
WHERE ` + afterPosition + ` AND i.state = 'pending' ORDER BY i.created_at, i.id LIMIT $5`

	inboxItemsSQL = `
SELECT ` + inboxColumns + ` ` + joinRuns + `
WHERE ` + afterPosition + ` AND ($6::text = '' OR i.state::text = $6) ORDER BY i.created_at, i.id LIMIT $5`

	inboxItemSQL = `
SELECT ` + inboxColumns + ` ` + joinRuns + `
WHERE i.key = ` + keyOfArgs + ` AND i.account = $1`

	countPendingSQL = `
SELECT count(*) FROM (SELECT FROM interrupts AS i WHERE sha256(i.account) = sha256($1) AND i.account = $1 AND i.state = 'pending' LIMIT $2) AS open_ones`

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
	after := pgtype.Timestamptz{Time: f.After.Created, Valid: true}
	if f.After == (store.InboxPosition{}) {
		after.InfinityModifier = pgtype.NegativeInfinity
	}
	var t txn
	values := []any{account, after, f.After.ID, f.Kind, pageSize(f.Limit, 100)}
	text := pendingItemsSQL
	if f.State != store.InterruptPending {
		text, values = inboxItemsSQL, append(values, f.State)
	}
	queryAll(&t, &asked, scanInboxItem, text, values...)
	return asked, s.view(ctx, "list interrupts in", &t)
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
func (s *Store) CountPending(ctx context.Context, account string, limit int) (count int, err error) {
	var t txn
	found := false
	t.queryRow(&found, []any{&count}, countPendingSQL, account, limit)
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
