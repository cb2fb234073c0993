package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fermata-go/fermata/store"
)

const (
	askedColumns = interruptColumns + `, r.state_key, r.provider, r.graph, ` + paperColumns

	// ofTheirRuns leads from interrupts to their runs and their requests.
	ofTheirRuns = `FROM interrupts AS i JOIN runs AS r ON r.key = i.run_key
LEFT JOIN papers AS p ON p.key = ` + requestKey + ` AND p.account = i.account`

	// behind is what stands behind a place in the list. The first condition leads to the index, the second is exact.
	behind = `sha256(i.account) = sha256($1) AND i.account = $1 AND i.created_at >= $2 AND (i.created_at, i.id) > ($2, $3)
  AND ($4::bytea = '' OR i.kind = $4)`

	pendingAskedSQL = `
SELECT ` + askedColumns + ` ` + ofTheirRuns + `
WHERE ` + behind + ` AND i.state = 'pending' ORDER BY i.created_at, i.id LIMIT $5`

	askedSQL = `
SELECT ` + askedColumns + ` ` + ofTheirRuns + `
WHERE ` + behind + ` AND ($6::text = '' OR i.state::text = $6) ORDER BY i.created_at, i.id LIMIT $5`

	questionSQL = `
SELECT ` + askedColumns + ` ` + ofTheirRuns + `
WHERE i.key = ` + thisKey + ` AND i.account = $1`

	countPendingSQL = `
SELECT count(*) FROM (SELECT FROM interrupts AS i WHERE sha256(i.account) = sha256($1) AND i.account = $1 AND i.state = 'pending' LIMIT $2) AS open_ones`

	waitsSQL = `
SELECT kind, count(*), min(created_at) FROM (
    SELECT kind, created_at FROM interrupts WHERE state = 'pending' AND created_at > '-infinity' ORDER BY created_at LIMIT $1
) AS oldest GROUP BY kind ORDER BY kind`
)

func scanAsked(rows pgx.CollectableRow) (a store.Asked, err error) {
	var request store.Paper
	more := append([]any{name{&a.StateKey}, name{&a.Provider}, name{&a.Graph}}, paperDest(&request)...)
	a.Interrupt, err = scanInterrupt(withMore{rows, more})
	if request.Revision > 0 {
		a.Request = &request
	}
	return a, err
}

// withMore scans columns behind those that somebody asks for.
type withMore struct {
	pgx.CollectableRow
	more []any
}

func (w withMore) Scan(dest ...any) error { return w.CollectableRow.Scan(append(dest, w.more...)...) }

// Asked returns interrupts of all runs of an account; see [store.Inbox].
func (s *Store) Asked(ctx context.Context, account string, f store.AskedFilter) (asked []store.Asked, err error) {
	after := pgtype.Timestamptz{Time: f.After.Created, Valid: true}
	if f.After == (store.AskedPlace{}) {
		after.InfinityModifier = pgtype.NegativeInfinity
	}
	var t turn
	values := []any{account, after, f.After.ID, f.Kind, page(f.Limit, 100)}
	text := pendingAskedSQL
	if f.State != store.Pending {
		text, values = askedSQL, append(values, f.State)
	}
	list(&t, &asked, scanAsked, text, values...)
	return asked, s.look(ctx, "list what is asked in", &t)
}

// Question returns one interrupt; see [store.Inbox].
func (s *Store) Question(ctx context.Context, account, id string) (store.Asked, error) {
	var t turn
	var found []store.Asked
	list(&t, &found, scanAsked, questionSQL, account, id)
	if err := s.look(ctx, "look up what is asked in", &t); err != nil {
		return store.Asked{}, err
	}
	if len(found) == 0 {
		return store.Asked{}, store.ErrNotFound
	}
	return found[0], nil
}

// Pending counts the interrupts of an account that are open; see [store.Inbox].
func (s *Store) Pending(ctx context.Context, account string, limit int) (count int, err error) {
	var t turn
	found := false
	t.find(&found, []any{&count}, countPendingSQL, account, limit)
	return count, s.look(ctx, "count what is asked in", &t)
}

// Waits counts the interrupts of all accounts that are open; see [store.Inbox].
func (s *Store) Waits(ctx context.Context, limit int) (waits []store.Wait, err error) {
	var t turn
	list(&t, &waits, func(rows pgx.CollectableRow) (w store.Wait, err error) {
		err = rows.Scan(name{&w.Kind}, &w.Count, moment{&w.Oldest})
		return w, err
	}, waitsSQL, max(limit, 0))
	return waits, s.look(ctx, "count what waits in", &t)
}
