package sqlite

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// Every transaction begins IMMEDIATE, so it is the only writer until it ends. What it reads stays
// valid until it commits, and no statement needs its own lock.
//
// INDEXED BY is used where a table has two keys that begin with the account. Without statistics
// SQLite assumes ten rows per account and may read all rows of it.
const (
	newestRunSQL = `
SELECT ` + runColumns + ` FROM runs INDEXED BY runs_generations
WHERE account = ?1 AND state_key = ?2 ORDER BY generation DESC LIMIT 1`

	runExistsSQL = `SELECT 1 FROM runs WHERE account = ?1 AND run = ?2`

	createRunSQL = `
INSERT INTO runs (account, run, state_key, generation, provider, graph, ref, input, input_digest,
                  status, fence, owner, lease_until, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'running', 1, ?10, ?11, ?12, ?12)`

	// nextReadyNo orders a run after all that became ready before it.
	nextReadyNo = `1 + coalesce((SELECT max(ready_no) FROM runs INDEXED BY runs_numbers WHERE ready_no IS NOT NULL), 0)`

	wakeSQL = `
UPDATE runs SET status = 'ready', ready_no = ` + nextReadyNo + `, updated_at = ?4
WHERE account = ?1 AND run = ?2 AND status = ?3`

	retrySQL = `
UPDATE runs SET status = 'ready', ready_no = ` + nextReadyNo + `, held = 0, attempts = 0, updated_at = ?3
WHERE account = ?1 AND run = ?2 AND (status = 'parked' OR status = 'failed' AND NOT EXISTS (
    SELECT 1 FROM runs AS newer INDEXED BY runs_generations WHERE newer.account = ?1 AND newer.state_key = runs.state_key AND newer.generation > runs.generation))
RETURNING ` + runColumns

	// same condition as the index runs_alive
	activeCondition = `status IN ('ready', 'running', 'waiting', 'parked')`

	cancelRunSQL = `
UPDATE runs SET status = ?3, fence = fence + 1, owner = NULL, lease_until = NULL, ready_after = NULL, held = 0, updated_at = ?4
WHERE account = ?1 AND run = ?2
RETURNING ` + runColumns
)

// Create creates a run; see [store.Runs].
func (s *Store) Create(ctx context.Context, run store.NewRun) (store.Lease, error) {
	if err := run.Writes.Validate(); err != nil {
		return store.Lease{}, err
	}
	return update(ctx, s, "create a run in", func(ctx context.Context, t txn) (store.Lease, error) { return t.create(ctx, run) })
}

func (t txn) create(ctx context.Context, n store.NewRun) (store.Lease, error) {
	if n.ID == "" || n.StateKey == "" {
		return store.Lease{}, store.ErrInvalid
	}
	var last store.Run // of generation 0 if there is none
	if _, err := t.queryRow(ctx, runDest(&last), newestRunSQL, n.Account, n.StateKey); err != nil {
		return store.Lease{}, err
	}
	taken, err := t.exists(ctx, runExistsSQL, n.Account, n.ID)
	if err != nil {
		return store.Lease{}, err
	}
	if taken || last.Status.Active() || last.Generation != n.AfterGeneration {
		return store.Lease{}, store.ErrExists
	}
	_, err = t.exec(ctx, createRunSQL, n.Account, n.ID, n.StateKey, n.AfterGeneration+1, n.Provider, n.Graph, n.ProviderRef, n.Input, n.InputDigest,
		n.Owner, t.now+micros(n.Lease), t.now)
	if err == nil {
		err = t.addEvent(ctx, n.Account, n.ID, store.EventCreated, "")
	}
	if err == nil {
		err = t.applyWrites(ctx, n.Account, n.Writes)
	}
	return store.Lease{Account: n.Account, Run: n.ID, Fence: 1}, err
}

// Get returns the newest run of a state key; see [store.Runs].
func (s *Store) Get(ctx context.Context, account, stateKey string) (store.Run, error) {
	var run store.Run
	found, err := s.view().queryRow(ctx, runDest(&run), newestRunSQL, account, stateKey)
	if err == nil && !found {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Run{}, s.fail(ctx, "get a run from", err)
	}
	return run, nil
}

// wake makes a waiting run ready. It runs before the decision is written, because the database
// rejects a decision for a run that stays waiting.
func (t txn) wake(ctx context.Context, account, run string) error {
	_, err := t.exec(ctx, wakeSQL, account, run, store.StatusWaiting, t.now)
	return err
}

// Retry makes a parked or failed run ready; see [store.Runs].
func (s *Store) Retry(ctx context.Context, account, run string, writes store.Writes) (store.Run, error) {
	if err := writes.Validate(); err != nil {
		return store.Run{}, err
	}
	return update(ctx, s, "retry a run in", func(ctx context.Context, t txn) (store.Run, error) { return t.retry(ctx, account, run, writes) })
}

func (t txn) retry(ctx context.Context, account, id string, writes store.Writes) (run store.Run, err error) {
	found, err := t.queryRow(ctx, runDest(&run), retrySQL, account, id, t.now)
	if err == nil && !found {
		err = store.ErrNotFound
	}
	if err != nil {
		return run, err
	}
	t.markChanged(account, id)
	return run, t.applyWrites(ctx, account, writes)
}

// Cancel ends an active run; see [store.Runs].
func (s *Store) Cancel(ctx context.Context, account, run string, as store.Status, waits []string, writes store.Writes) (store.Run, error) {
	if err := writes.Validate(); err != nil {
		return store.Run{}, err
	}
	return update(ctx, s, "cancel a run in", func(ctx context.Context, t txn) (store.Run, error) {
		return t.cancel(ctx, account, run, as, waits, writes)
	})
}

func (t txn) cancel(ctx context.Context, account, id string, as store.Status, waits []string, writes store.Writes) (run store.Run, err error) {
	var status store.Status
	if _, err := t.queryRow(ctx, []any{&status}, statusSQL, account, id); err != nil {
		return store.Run{}, err
	}
	if !status.Active() {
		return store.Run{}, store.ErrNotFound
	}
	if waits != nil { //mutate:sqlite-cancel-knows-interrupts
		if same, err := t.waitsFor(ctx, account, id, waits); err != nil || !same {
			return store.Run{}, cmp.Or(err, store.ErrStale)
		}
	}
	if err := t.showInterrupts(ctx, store.Lease{Account: account, Run: id}, nil, writes.RequestIDs()); err != nil {
		return store.Run{}, err
	}
	if _, err = t.queryRow(ctx, runDest(&run), cancelRunSQL, account, id, as, t.now); err != nil {
		return store.Run{}, err
	}
	if err := t.addEvent(ctx, account, id, store.EventKind(as), ""); err != nil {
		return store.Run{}, err
	}
	return run, t.applyWrites(ctx, account, writes)
}

// waitsFor reports whether ids are exactly the pending interrupts of the run.
func (t txn) waitsFor(ctx context.Context, account, run string, ids []string) (bool, error) {
	asked, err := queryAll(ctx, t, scanInterruptRow, openInterruptsSQL, account, run)
	pending := make([]string, 0, len(asked))
	for _, i := range asked {
		if i.state == store.InterruptPending {
			pending = append(pending, i.id)
		}
	}
	slices.Sort(pending)
	return slices.Equal(pending, slices.Sorted(slices.Values(ids))), err
}

// Now returns the time of the host's clock in microseconds. Each transaction reads it once, when no
// other can be running. Now fails if the file was replaced, so that health checks notice it.
func (s *Store) Now(context.Context) (time.Time, error) {
	if err := s.files.check(); err != nil {
		return time.Time{}, wrap("read the clock of", s.name, err)
	}
	return timeOf(s.now()), nil
}

func (s *Store) now() int64 { return s.clock().UnixMicro() }
