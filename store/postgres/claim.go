package postgres

import (
	"context"
	"time"

	"github.com/fermata-go/fermata/store"
)

const (
	// matureSQL puts runs whose delay is over among those that have none. Each is touched once, so that the claims after an
	// outage need not sort all that were delayed again and again.
	matureSQL = `
WITH over AS (
    SELECT key FROM runs WHERE status = 'ready' AND ready_after <= statement_timestamp()
    ORDER BY ready_after LIMIT 100 FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE runs AS r SET ready_after = NULL FROM over WHERE r.key = over.key`

	// nextRunSQL finds the run that a claim gets. Whoever else claims meanwhile passes it by. Runs are taken over only if none is
	// ready, and then the second search is not even begun.
	nextRunSQL = `
WITH ready AS (
    SELECT key, status FROM runs WHERE status = 'ready' AND ready_after IS NULL
    ORDER BY ready_no LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
), overdue AS (
    SELECT key, status FROM runs
    WHERE status = 'running' AND lease_until <= statement_timestamp() AND NOT EXISTS (SELECT FROM ready)
    ORDER BY lease_until, run LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
), found AS (SELECT * FROM ready UNION ALL SELECT * FROM overdue)` + takeRun

	// thisRunSQL waits for whoever has the run in hand. What it is after the wait counts.
	thisRunSQL = `
WITH found AS (
    SELECT key, status FROM runs
    WHERE key = sha256(sha256($3) || sha256($4)) AND account = $3
      AND ` + claimable + `
    FOR NO KEY UPDATE
)` + takeRun

	// decidedRunSQL takes the run in hand, if what goes before is made. What it is now counts.
	decidedRunSQL = `
WITH found AS (
    SELECT key, status FROM runs
    WHERE key = ` + inHand + ` AND account = $3 AND current_setting('fermata.made', true) = 'on' AND ` + claimable + `
)` + takeRun

	claimable = `(status = 'ready' AND (ready_after IS NULL OR ready_after <= statement_timestamp())
           OR status = 'running' AND lease_until <= statement_timestamp())`

	takeRun = `
UPDATE runs AS r SET status = 'running', fence = r.fence + 1, owner = $1, lease_until = clock_timestamp() + $2::bigint * interval '1 microsecond',
       attempts = r.attempts + (found.status = 'running')::integer, ready_after = NULL, updated_at = clock_timestamp()
FROM found WHERE r.key = found.key
RETURNING set_config('fermata.run', encode(r.key, 'hex'), true), found.status = 'running', ` + runColumns

	// undoneSQL lists what was decided and not applied, as it is now that the run is in hand. The statement that took the run may have
	// begun before the last owner had done his work.
	undoneSQL = `
SELECT ` + interruptColumns + ` FROM interrupts AS i
WHERE i.run_key = ` + inHand + ` AND NOT i.applied AND i.state = 'decided' ORDER BY i.place`

	// These change nothing but the row that they look at, and what it is after a wait for its lock counts.
	renewSQL  = `UPDATE runs SET lease_until = clock_timestamp() + $4::bigint * interval '1 microsecond' WHERE ` + owned
	setRefSQL = `UPDATE runs SET ref = $4 WHERE ` + owned

	// releaseSQL: every run that is parked is held. The schema knows of another way to be parked, for the end of an effect, that nobody came to use.
	releaseSQL = `
WITH ` + clock + `,
changed AS (
    UPDATE runs AS r SET status = CASE WHEN $2 THEN 'parked' ELSE 'ready' END, held = $2, owner = NULL, lease_until = NULL,
           attempts = r.attempts + 1, ready_no = CASE WHEN $2 THEN r.ready_no ELSE nextval('ready_numbers') END,
           ready_after = CASE WHEN NOT $2 AND $3::bigint > 0 THEN clock.now + $3 * interval '1 microsecond' END,
           updated_at = clock.now, events = r.events + $2::integer
    FROM clock WHERE r.key = ` + inHand + ` AND r.account = $1
    RETURNING r.*
)
INSERT INTO events (account, run, number, kind, interrupt, at)
SELECT account, run, events, 'parked', '', updated_at FROM changed WHERE held`
)

// Claim takes a run that has something to do; see [store.Runs].
func (s *Store) Claim(ctx context.Context, claim store.Claim) (*store.Work, error) {
	var t turn
	text, values := nextRunSQL, []any{claim.Owner, micros(claim.Lease)}
	if claim.Run != "" {
		text, values = thisRunSQL, append(values, claim.Account, claim.Run)
	} else {
		t.queue(matureSQL)
	}
	taken := t.take(text, values...)
	if err := s.do(ctx, "claim a run in", &t); err != nil {
		return nil, err
	}
	return taken.work(), nil
}

// taken is what became of a claim.
type taken struct {
	found bool
	store.Work
}

// take adds the statements that take a run, and say what is to be done.
func (t *turn) take(text string, values ...any) *taken {
	var key string
	w := new(taken)
	t.find(&w.found, append([]any{&key, &w.TakenOver}, runDest(&w.Run)...), text, values...)
	list(t, &w.Decided, scanInterrupt, undoneSQL)
	return w
}

// work is the run that was taken, or nil.
func (w *taken) work() *store.Work {
	if !w.found {
		return nil
	}
	w.Lease = store.Lease{Account: w.Run.Account, Run: w.Run.ID, Fence: w.Run.Fence}
	return &w.Work
}

// Renew extends a lease; see [store.Runs].
func (s *Store) Renew(ctx context.Context, lease store.Lease, duration time.Duration) error {
	return s.changeOwned(ctx, "renew a lease in", lease, renewSQL, micros(duration))
}

// SetRef notes how the provider calls the run; see [store.Runs].
func (s *Store) SetRef(ctx context.Context, lease store.Lease, ref []byte) error {
	return s.changeOwned(ctx, "set a reference in", lease, setRefSQL, ref)
}

// changeOwned changes the row of the run of a lease that is still good.
func (s *Store) changeOwned(ctx context.Context, op string, lease store.Lease, text string, value any) error {
	var t turn
	changed := false
	t.changes(&changed, text, lease.Account, lease.Run, lease.Fence, value)
	if err := s.do(ctx, op, &t); err != nil {
		return err
	}
	if !changed {
		return store.ErrFenced
	}
	return nil
}

// Release gives a run back undone; see [store.Runs].
func (s *Store) Release(ctx context.Context, lease store.Lease, release store.Release) error {
	var t turn
	locked := false
	t.lock(&locked, lockOwnedSQL, lease.Account, lease.Run, lease.Fence)
	t.queue(releaseSQL, lease.Account, release.Park, micros(release.Delay))
	if err := s.do(ctx, "release a run in", &t); err != nil {
		return err
	}
	if !locked {
		return store.ErrFenced
	}
	s.tell(lease.Account, lease.Run)
	return nil
}
