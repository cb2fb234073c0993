package postgres

import (
	"context"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	// endDelaysSQL clears the delay of runs whose delay is over. Each run is changed once, so that
	// claims after an outage need not sort all delayed runs repeatedly.
	endDelaysSQL = `
WITH over AS (
    SELECT key FROM runs WHERE status = 'ready' AND ready_after <= statement_timestamp()
    ORDER BY ready_after LIMIT 100 FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE runs AS r SET ready_after = NULL FROM over WHERE r.key = over.key`

	// claimNextSQL claims the next run. Concurrent claims skip locked runs. Runs are taken over
	// only if none is ready; otherwise the second search does not run.
	claimNextSQL = `
WITH ready AS (
    SELECT key, status FROM runs WHERE status = 'ready' AND ready_after IS NULL
    ORDER BY ready_no LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
), overdue AS (
    SELECT key, status FROM runs
    WHERE status = 'running' AND lease_until <= statement_timestamp() AND NOT EXISTS (SELECT FROM ready)
    ORDER BY lease_until, run LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
), found AS (SELECT * FROM ready UNION ALL SELECT * FROM overdue)` + claimRun

	// claimRunSQL waits for the lock of the run and uses its state after the wait.
	claimRunSQL = `
WITH found AS (
    SELECT key, status FROM runs
    WHERE key = sha256(sha256($3) || sha256($4)) AND account = $3
      AND ` + claimableCondition + `
    FOR NO KEY UPDATE
)` + claimRun

	// claimDecidedSQL claims the locked run if the preceding change was made. It uses the current
	// state.
	claimDecidedSQL = `
WITH found AS (
    SELECT key, status FROM runs
    WHERE key = ` + lockedRunKey + ` AND account = $3 AND current_setting('fermata.made', true) = 'on' AND ` + claimableCondition + `
)` + claimRun

	claimableCondition = `(status = 'ready' AND (ready_after IS NULL OR ready_after <= statement_timestamp())
           OR status = 'running' AND lease_until <= statement_timestamp())`

	claimRun = `
UPDATE runs AS r SET status = 'running', fence = r.fence + 1, owner = $1, lease_until = clock_timestamp() + $2::bigint * interval '1 microsecond',
       attempts = r.attempts + (found.status = 'running')::integer, ready_after = NULL, updated_at = clock_timestamp()
FROM found WHERE r.key = found.key
RETURNING set_config('fermata.run', encode(r.key, 'hex'), true), found.status = 'running', ` + runColumns

	// unappliedSQL lists the decisions that were not applied, now that the run is locked. The
	// claiming statement may have begun before the last owner finished.
	unappliedSQL = `
SELECT ` + interruptColumns + ` FROM interrupts AS i
WHERE i.run_key = ` + lockedRunKey + ` AND NOT i.applied AND i.state = 'decided' ORDER BY i.place`

	// These statements change only the row that they check, with its state after a wait for the
	// lock.
	renewSQL          = `UPDATE runs SET lease_until = clock_timestamp() + $4::bigint * interval '1 microsecond' WHERE ` + ownedCondition
	setProviderRefSQL = `UPDATE runs SET ref = $4 WHERE ` + ownedCondition

	// releaseSQL sets held for every parked run. The schema has another reason to park, for the end
	// of an effect, which is not used.
	releaseSQL = `
WITH ` + clockCTE + `,
changed AS (
    UPDATE runs AS r SET status = CASE WHEN $2 THEN 'parked' ELSE 'ready' END, held = $2, owner = NULL, lease_until = NULL,
           attempts = r.attempts + 1, ready_no = CASE WHEN $2 THEN r.ready_no ELSE nextval('ready_numbers') END,
           ready_after = CASE WHEN NOT $2 AND $3::bigint > 0 THEN clock.now + $3 * interval '1 microsecond' END,
           updated_at = clock.now, events = r.events + $2::integer
    FROM clock WHERE r.key = ` + lockedRunKey + ` AND r.account = $1
    RETURNING r.*
)
INSERT INTO events (account, run, number, kind, interrupt, at)
SELECT account, run, events, 'parked', '', updated_at FROM changed WHERE held`
)

// Claim takes ownership of a run that has work; see [store.Runs].
func (s *Store) Claim(ctx context.Context, claim store.Claim) (*store.ClaimedRun, error) {
	var t txn
	text, values := claimNextSQL, []any{claim.Owner, micros(claim.Lease)}
	if claim.Run != "" {
		text, values = claimRunSQL, append(values, claim.Account, claim.Run)
	} else {
		t.queue(endDelaysSQL)
	}
	taken := t.claim(text, values...)
	if err := s.update(ctx, "claim a run in", &t); err != nil {
		return nil, err
	}
	return taken.claimedRun(), nil
}

// claimResult is the result of a claim.
type claimResult struct {
	found bool
	store.ClaimedRun
}

// claim adds the statements that claim a run and list its unapplied decisions.
func (t *txn) claim(text string, values ...any) *claimResult {
	var key string
	w := new(claimResult)
	t.queryRow(&w.found, append([]any{&key, &w.TakenOver}, runDest(&w.Run)...), text, values...)
	queryAll(t, &w.Decided, scanInterrupt, unappliedSQL)
	return w
}

// claimedRun returns the claimed run, or nil.
func (w *claimResult) claimedRun() *store.ClaimedRun {
	if !w.found {
		return nil
	}
	w.Lease = store.Lease{Account: w.Run.Account, Run: w.Run.ID, Fence: w.Run.Fence}
	return &w.ClaimedRun
}

// Renew extends a lease; see [store.Runs].
func (s *Store) Renew(ctx context.Context, lease store.Lease, duration time.Duration) error {
	return s.updateOwned(ctx, "renew a lease in", lease, renewSQL, micros(duration))
}

// SetProviderRef stores the provider's reference of the run; see [store.Runs].
func (s *Store) SetProviderRef(ctx context.Context, lease store.Lease, ref []byte) error {
	return s.updateOwned(ctx, "set a reference in", lease, setProviderRefSQL, ref)
}

// updateOwned changes the row of the run of a valid lease.
func (s *Store) updateOwned(ctx context.Context, op string, lease store.Lease, text string, value any) error {
	var t txn
	changed := false
	t.execChanged(&changed, text, lease.Account, lease.Run, lease.Fence, value)
	if err := s.update(ctx, op, &t); err != nil {
		return err
	}
	if !changed {
		return store.ErrFenced
	}
	return nil
}

// Release ends an execution without a result; see [store.Runs].
func (s *Store) Release(ctx context.Context, lease store.Lease, release store.Release) error {
	var t txn
	locked := false
	t.lockRun(&locked, lockOwnedSQL, lease.Account, lease.Run, lease.Fence)
	t.queue(releaseSQL, lease.Account, release.Park, micros(release.Delay))
	if err := s.update(ctx, "release a run in", &t); err != nil {
		return err
	}
	if !locked {
		return store.ErrFenced
	}
	s.publish(lease.Account, lease.Run)
	return nil
}
