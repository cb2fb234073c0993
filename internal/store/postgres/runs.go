package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fermata-go/fermata/internal/store"
)

var _ store.Store = (*Store)(nil)

const (
	// createRunSQL inserts nothing if there is a run with this id, an active run with this state
	// key, or a run with the same generation. It waits for transactions that are about to commit
	// one.
	createRunSQL = `
WITH ` + clockCTE + `,
created AS (
    INSERT INTO runs (account, run, state_key, generation, provider, graph, ref, input, input_digest,
                      status, fence, owner, lease_until, events, created_at, updated_at)
    SELECT $1, $2::bytea, $3::bytea, $11::integer + 1, $4, $5, $6, $7, $8, 'running', 1, $9, now + $10::bigint * interval '1 microsecond', 1, now, now
    FROM clock
    WHERE $11 = coalesce((
        SELECT generation FROM runs WHERE handle = sha256(sha256($1) || sha256($3)) AND account = $1 ORDER BY generation DESC LIMIT 1), 0)
    ON CONFLICT DO NOTHING
    RETURNING account, run, created_at
)
INSERT INTO events (account, run, number, kind, interrupt, at) SELECT account, run, 1, 'created', '', created_at FROM created
RETURNING ` + markChanged

	newestRunSQL = `
SELECT ` + runColumns + ` FROM runs AS r
WHERE r.handle = ` + keyOfArgs + ` AND r.account = $1 ORDER BY r.generation DESC LIMIT 1`

	// listSQL reads a page of each status, so that its cost does not depend on the number of runs
	// with other states.
	listSQL = `
SELECT r.* FROM unnest($2::text[]) AS wanted (status) CROSS JOIN LATERAL (
    SELECT ` + unsealedRunColumns + ` FROM runs AS r
    WHERE sha256(r.account) = sha256($1) AND r.account = $1 AND r.status = wanted.status
      AND r.created_at <= $3 AND (r.created_at, r.run) < ($3, $4)
      AND ($5::bytea = '' OR r.provider = $5) AND ($6::bytea = '' OR r.graph = $6)
    ORDER BY r.created_at DESC, r.run DESC LIMIT $7
) AS r
ORDER BY r.created_at DESC, r.run DESC LIMIT $7`

	retrySQL = `
UPDATE runs AS r SET status = 'ready', held = false, attempts = 0, ready_no = nextval('ready_numbers'), updated_at = clock_timestamp()
WHERE r.key = ` + lockedRunKey + ` AND r.account = $1
RETURNING ` + runColumns

	// unlockUnlessWaitingSQL unlocks the locked run unless it waits for exactly these interrupts,
	// so that all following statements change nothing.
	unlockUnlessWaitingSQL = `
SELECT set_config('fermata.run', '', true) WHERE ` + hasLockedRun + ` AND ARRAY(SELECT unnest($2::bytea[]) ORDER BY 1) <> ARRAY(
    SELECT id FROM interrupts
    WHERE run_key = ` + lockedRunKey + ` AND account = $1 AND NOT applied AND state IS NOT DISTINCT FROM 'pending' ORDER BY id)`

	//mutate:postgres-cancel-statement
	cancelSQL = `
WITH ` + clockCTE + `,
withdrawn AS (
    UPDATE interrupts SET state = 'withdrawn'
    WHERE run_key = ` + lockedRunKey + ` AND account = $1 AND NOT applied AND state IS NOT DISTINCT FROM 'pending'
    RETURNING id, place
), moved AS (` + reviseWithdrawnRequests + ` FROM clock CROSS JOIN withdrawn AS i WHERE i.id <> ALL ($3::bytea[]) AND ` + requestCondition + `),
happened AS (SELECT count(*) + 1 AS count FROM withdrawn),
changed AS (
    UPDATE runs AS r SET status = $2::text, fence = r.fence + 1, owner = NULL, lease_until = NULL, ready_after = NULL, held = false,
           updated_at = clock.now, events = r.events + happened.count
    FROM clock CROSS JOIN happened WHERE r.key = ` + lockedRunKey + ` AND r.account = $1
    RETURNING r.*, r.events - happened.count AS before
), noted AS (
    INSERT INTO events (account, run, number, kind, interrupt, at)
    SELECT account, run, before + row_number() OVER (ORDER BY place), kind, interrupt, updated_at FROM changed CROSS JOIN (
        SELECT 'withdrawn' AS kind, id AS interrupt, place FROM withdrawn UNION ALL SELECT $2::text, '', NULL) AS happened
    ORDER BY place
)
SELECT ` + runColumns + ` FROM changed AS r`

	nowSQL = `SELECT clock_timestamp()`
)

// Create creates a run; see [store.Runs].
func (s *Store) Create(ctx context.Context, n store.NewRun) (store.Lease, error) {
	if n.ID == "" || n.StateKey == "" {
		return store.Lease{}, store.ErrInvalid
	}
	var t txn
	created := false
	t.lockRun(&created, createRunSQL, n.Account, n.ID, n.StateKey, n.Provider, n.Graph, n.ProviderRef, n.Input, n.InputDigest,
		n.Owner, micros(n.Lease), n.AfterGeneration)
	if err := t.applyWrites(n.Account, n.Writes); err != nil {
		return store.Lease{}, err
	}
	if err := s.update(ctx, "create a run in", &t); err != nil {
		return store.Lease{}, err
	}
	if !created {
		return store.Lease{}, store.ErrExists
	}
	s.publish(n.Account, n.ID)
	return store.Lease{Account: n.Account, Run: n.ID, Fence: 1}, nil
}

// Get returns the newest run of a state key; see [store.Runs].
func (s *Store) Get(ctx context.Context, account, stateKey string) (run store.Run, err error) {
	var t txn
	found := false
	t.queryRow(&found, runDest(&run), newestRunSQL, account, stateKey)
	if err := s.view(ctx, "get a run from", &t); err != nil {
		return store.Run{}, err
	}
	if !found {
		return store.Run{}, store.ErrNotFound
	}
	return run, nil
}

// allStatuses is the meaning of a filter without a status.
var allStatuses = []store.Status{
	store.StatusReady, store.StatusRunning, store.StatusWaiting, store.StatusParked, store.StatusCompleted, store.StatusFailed, store.StatusCancelled, store.StatusSuperseded,
}

// List returns runs of an account; see [store.Runs].
func (s *Store) List(ctx context.Context, account string, f store.RunFilter) (runs []store.Run, err error) {
	statuses := f.Status
	if len(statuses) == 0 {
		statuses = allStatuses
	}
	before := pgtype.Timestamptz{Time: f.Before.Created, Valid: true}
	if f.Before == (store.RunPosition{}) {
		before.InfinityModifier = pgtype.Infinity
	}
	var t txn
	queryAll(&t, &runs, scanRun, listSQL, account, distinct(statuses), before, f.Before.ID, f.Provider, f.Graph, pageSize(f.Limit, 100))
	return runs, s.view(ctx, "list runs of", &t)
}

func distinct(statuses []store.Status) (words []string) {
	seen := make(map[store.Status]bool, len(statuses))
	for _, status := range statuses {
		if !seen[status] {
			seen[status] = true
			words = append(words, string(status))
		}
	}
	return words
}

// pageSize returns the maximum number of results.
func pageSize(limit, otherwise int) int {
	if limit <= 0 {
		return otherwise
	}
	return min(limit, 1000)
}

// Retry makes a parked or failed run ready; see [store.Runs].
func (s *Store) Retry(ctx context.Context, account, run string, writes store.Writes) (store.Run, error) {
	retried, err := s.updateActive(ctx, "retry a run in", lockRetryableSQL, account, run, nil, writes, retrySQL, account)
	if violates(err, "runs_alive") { // a newer run was created at the same time
		return store.Run{}, store.ErrNotFound
	}
	return retried, err
}

// Cancel ends an active run; see [store.Runs].
func (s *Store) Cancel(ctx context.Context, account, run string, as store.Status, waits []string, writes store.Writes) (store.Run, error) {
	//mutate:postgres-cancel-by-run
	return s.updateActive(ctx, "cancel a run in", lockActiveRunSQL, account, run, waits, writes, cancelSQL, account, as, bytesColumn(writes.RequestIDs()))
}

// updateActive changes a run and returns it. lock finds it; waits lists its pending
// interrupts, nil means any.
func (s *Store) updateActive(
	ctx context.Context, op, lock, account, name string, waits []string, writes store.Writes, text string, values ...any,
) (run store.Run, err error) {
	var t txn
	locked, surprised, changed := false, false, false
	t.lockRun(&locked, lock, account, name)
	if waits != nil { //mutate:postgres-cancel-knows-interrupts
		var dropped string
		t.queryRow(&surprised, []any{&dropped}, unlockUnlessWaitingSQL, account, bytesColumn(waits))
	}
	t.queryRow(&changed, runDest(&run), text, values...)
	if err := t.applyWritesOfRun(account, writes); err != nil {
		return store.Run{}, err
	}
	if err := s.update(ctx, op, &t); err != nil {
		return store.Run{}, err
	}
	switch {
	case surprised:
		return store.Run{}, store.ErrStale
	case !changed:
		return store.Run{}, store.ErrNotFound
	}
	s.publish(run.Account, run.ID)
	return run, nil
}

// Now returns the time of the server's clock in microseconds.
func (s *Store) Now(ctx context.Context) (now time.Time, err error) {
	var t txn
	found := false
	t.queryRow(&found, []any{timeScanner{&now}}, nowSQL)
	return now, s.view(ctx, "read the clock of", &t)
}
