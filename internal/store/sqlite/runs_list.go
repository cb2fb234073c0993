package sqlite

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	// unsealedColumns are runColumns without the sealed ones.
	unsealedColumns = `account, run, state_key, generation, provider, graph, NULL, NULL, NULL, input_digest,
       status, fence, owner, lease_until, attempts, created_at, updated_at`

	listSQL = `
SELECT ` + unsealedColumns + ` FROM runs INDEXED BY runs_listed
WHERE account = ?1 AND (created_at, run) < (?2, ?3) AND (length(?4) = 0 OR provider = ?4) AND (length(?5) = 0 OR graph = ?5)
ORDER BY created_at DESC, run DESC LIMIT ?6`

	listByStatusSQL = `
SELECT ` + unsealedColumns + ` FROM runs INDEXED BY runs_listed_by_status
WHERE account = ?1 AND status = ?7 AND (created_at, run) < (?2, ?3) AND (length(?4) = 0 OR provider = ?4) AND (length(?5) = 0 OR graph = ?5)
ORDER BY created_at DESC, run DESC LIMIT ?6`
)

// List returns runs of an account; see [store.Runs]. The cost of a page by status depends only on
// its size; provider and graph are compared for each run on the way.
func (s *Store) List(ctx context.Context, account string, filter store.RunFilter) ([]store.Run, error) {
	return snapshot(ctx, s, "list runs of", func(t txn) ([]store.Run, error) { return t.list(ctx, account, filter) })
}

func (t txn) list(ctx context.Context, account string, f store.RunFilter) ([]store.Run, error) {
	limit := pageSize(f.Limit, 100)
	values := func(more ...any) []any {
		before, id := int64(math.MaxInt64), f.Before.ID
		if f.Before != (store.RunPosition{}) {
			before = f.Before.Created.UnixMicro()
		}
		return append([]any{account, before, id, f.Provider, f.Graph, limit}, more...)
	}
	if len(f.Status) == 0 {
		return queryAll(ctx, t, scanRun, listSQL, values()...)
	}
	// One ordered list per status, merged: one query for several states would have to sort
	// everything.
	var runs []store.Run
	for n, status := range f.Status {
		if slices.Contains(f.Status[:n], status) {
			continue
		}
		some, err := queryAll(ctx, t, scanRun, listByStatusSQL, values(status)...)
		if err != nil {
			return nil, err
		}
		runs = append(runs, some...)
	}
	slices.SortFunc(runs, func(a, b store.Run) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID)) })
	return runs[:min(limit, len(runs))], nil
}

func scanRun(row rowScanner) (run store.Run, err error) {
	err = row.Scan(runDest(&run)...)
	return run, err
}
