package sqlite

import (
	"context"
	"math"

	"github.com/fermata-go/fermata/store"
)

const (
	askedColumns = interruptColumns + `, r.state_key, r.provider, r.graph, ` + paperColumns

	// CROSS JOIN keeps the order: from the interrupts to their runs, and to their requests.
	ofTheirRuns = `CROSS JOIN runs AS r ON r.account = i.account AND r.run = i.run
LEFT JOIN papers AS p ON p.account = i.account AND p.kind = 'request' AND p.id = i.id`

	behind = `i.account = ?1 AND (i.created_at, i.id) > (?2, ?3) AND (length(?4) = 0 OR i.kind = ?4)`

	pendingAskedSQL = `
SELECT ` + askedColumns + ` FROM interrupts AS i INDEXED BY interrupts_pending ` + ofTheirRuns + `
WHERE ` + behind + ` AND i.state = 'pending' ORDER BY i.created_at, i.id LIMIT ?5`

	askedSQL = `
SELECT ` + askedColumns + ` FROM interrupts AS i INDEXED BY interrupts_asked ` + ofTheirRuns + `
WHERE ` + behind + ` AND (length(?6) = 0 OR i.state = ?6) ORDER BY i.created_at, i.id LIMIT ?5`

	questionSQL = `
SELECT ` + askedColumns + ` FROM interrupts AS i ` + ofTheirRuns + ` WHERE i.account = ?1 AND i.id = ?2`

	countPendingSQL = `
SELECT count(*) FROM (SELECT 1 FROM interrupts INDEXED BY interrupts_pending WHERE account = ?1 AND state = 'pending' LIMIT ?2)`

	waitsSQL = `
SELECT kind, count(*), min(created_at) FROM (
    SELECT kind, created_at FROM interrupts INDEXED BY interrupts_waiting WHERE state = 'pending' ORDER BY created_at LIMIT ?1
) GROUP BY kind ORDER BY kind`
)

func scanAsked(row scanner) (a store.Asked, err error) {
	var request store.Paper
	a.Interrupt, err = scanInterrupt(withMore{row, append([]any{&a.StateKey, &a.Provider, &a.Graph}, paperDest(&request)...)})
	if request.Revision > 0 {
		a.Request = &request
	}
	return a, err
}

// withMore scans columns behind those that somebody asks for.
type withMore struct {
	scanner
	more []any
}

func (w withMore) Scan(dest ...any) error { return w.scanner.Scan(append(dest, w.more...)...) }

// Asked returns interrupts of all runs of an account; see [store.Inbox].
func (s *Store) Asked(ctx context.Context, account string, filter store.AskedFilter) ([]store.Asked, error) {
	after := int64(math.MinInt64)
	if filter.After != (store.AskedPlace{}) {
		after = filter.After.Created.UnixMicro()
	}
	values := []any{account, after, filter.After.ID, filter.Kind, page(filter.Limit, 100)}
	text := pendingAskedSQL
	if filter.State != store.Pending {
		text, values = askedSQL, append(values, filter.State)
	}
	all, err := list(ctx, s.look(), scanAsked, text, values...)
	if err != nil {
		return nil, s.fail(ctx, "list what is asked in", err)
	}
	return all, nil
}

// Question returns one interrupt; see [store.Inbox].
func (s *Store) Question(ctx context.Context, account, id string) (store.Asked, error) {
	found, err := list(ctx, s.look(), scanAsked, questionSQL, account, id)
	if err == nil && len(found) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Asked{}, s.fail(ctx, "look up what is asked in", err)
	}
	return found[0], nil
}

// Pending counts the interrupts of an account that are open; see [store.Inbox].
func (s *Store) Pending(ctx context.Context, account string, limit int) (count int, err error) {
	if _, err := s.look().find(ctx, []any{&count}, countPendingSQL, account, limit); err != nil {
		return 0, s.fail(ctx, "count what is asked in", err)
	}
	return count, nil
}

// Waits counts the interrupts of all accounts that are open; see [store.Inbox].
func (s *Store) Waits(ctx context.Context, limit int) ([]store.Wait, error) {
	waits, err := list(ctx, s.look(), func(row scanner) (w store.Wait, err error) {
		err = row.Scan(&w.Kind, &w.Count, moment{&w.Oldest})
		return w, err
	}, waitsSQL, max(limit, 0))
	if err != nil {
		return nil, s.fail(ctx, "count what waits in", err)
	}
	return waits, nil
}
