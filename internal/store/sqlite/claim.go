package sqlite

import (
	"context"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	// endDelaysSQL clears the delay of runs whose delay is over. Each run is changed once, so that
	// claims after an outage need not sort all delayed runs repeatedly.
	endDelaysSQL = `UPDATE runs INDEXED BY runs_ready SET ready_after = NULL WHERE status = 'ready' AND ready_after <= ?1`

	// Queries that find a run with work. The first row is used.
	readyRunSQL = `
SELECT account, run, status FROM runs INDEXED BY runs_ready
WHERE status = 'ready' AND ready_after IS NULL ORDER BY ready_no LIMIT 1`

	delayedRunSQL = `
SELECT account, run, status FROM runs INDEXED BY runs_ready
WHERE status = 'ready' AND ready_after <= ?1 LIMIT 1`

	expiredLeaseSQL = `
SELECT account, run, status FROM runs INDEXED BY runs_leased
WHERE status = 'running' AND lease_until <= ?1 ORDER BY lease_until, run LIMIT 1`

	claimableRunSQL = `
SELECT account, run, status FROM runs
WHERE account = ?2 AND run = ?3
  AND (status = 'ready' AND coalesce(ready_after <= ?1, TRUE) OR status = 'running' AND lease_until <= ?1)`

	claimRunSQL = `
UPDATE runs SET status = 'running', attempts = attempts + (status = 'running'), fence = fence + 1, owner = ?3, lease_until = ?4, ready_after = NULL, updated_at = ?5
WHERE account = ?1 AND run = ?2
RETURNING ` + runColumns

	// unappliedSQL lists the decisions that were not applied.
	unappliedSQL = `
SELECT ` + interruptColumns + ` FROM interrupts AS i INDEXED BY interrupts_unapplied
WHERE i.account = ?1 AND i.run = ?2 AND i.applied = 0 AND i.state = 'decided' ORDER BY i.place`

	// ownedCondition holds while a lease is valid. Only the fence matters, not the time.
	ownedCondition = `account = ?1 AND run = ?2 AND fence = ?3 AND status = 'running'` //mutate:sqlite-lease-fence

	checkLeaseSQL     = `SELECT 1 FROM runs WHERE ` + ownedCondition
	renewSQL          = `UPDATE runs SET lease_until = ?4 WHERE ` + ownedCondition
	setProviderRefSQL = `UPDATE runs SET ref = ?4 WHERE ` + ownedCondition

	releaseSQL = `
UPDATE runs SET status = 'ready', owner = NULL, lease_until = NULL, attempts = attempts + 1,
       ready_no = ` + nextReadyNo + `, ready_after = ?4, updated_at = ?5
WHERE ` + ownedCondition

	// parkSQL sets held for every parked run. The schema has another reason to park, for the end of
	// an effect, which is not used.
	parkSQL = `
UPDATE runs SET status = 'parked', held = 1, owner = NULL, lease_until = NULL, attempts = attempts + 1, updated_at = ?4
WHERE ` + ownedCondition
)

// Claim takes ownership of a run that has work; see [store.Runs]. A claim that finds nothing does
// not wait for writers.
func (s *Store) Claim(ctx context.Context, claim store.Claim) (*store.ClaimedRun, error) {
	const op = "claim a run in"
	if _, found, err := s.view().findClaimable(ctx, claim); err != nil {
		return nil, s.fail(ctx, op, err)
	} else if !found {
		return nil, nil
	}
	return update(ctx, s, op, func(ctx context.Context, t txn) (*store.ClaimedRun, error) { return t.claim(ctx, claim) })
}

// candidate is a run with work.
type candidate struct {
	account, run string
	status       store.Status
}

// findClaimable returns the run that a claim gets.
func (t txn) findClaimable(ctx context.Context, claim store.Claim) (c candidate, found bool, err error) {
	dest := []any{&c.account, &c.run, &c.status}
	if claim.Run != "" {
		found, err = t.queryRow(ctx, dest, claimableRunSQL, t.now, claim.Account, claim.Run)
		return c, found, err
	}
	found, err = t.queryRow(ctx, dest, readyRunSQL)
	if !found && err == nil {
		// only for readers: a claim ends delays first
		found, err = t.queryRow(ctx, dest, delayedRunSQL, t.now)
	}
	if !found && err == nil {
		found, err = t.queryRow(ctx, dest, expiredLeaseSQL, t.now)
	}
	return c, found, err
}

func (t txn) claim(ctx context.Context, claim store.Claim) (*store.ClaimedRun, error) {
	if _, err := t.exec(ctx, endDelaysSQL, t.now); err != nil {
		return nil, err
	}
	c, found, err := t.findClaimable(ctx, claim)
	if err != nil || !found { // another claim was faster
		return nil, err
	}
	work := &store.ClaimedRun{TakenOver: c.status == store.StatusRunning}
	if _, err = t.queryRow(ctx, runDest(&work.Run), claimRunSQL, c.account, c.run, claim.Owner, t.now+micros(claim.Lease), t.now); err != nil {
		return nil, err
	}
	work.Lease = store.Lease{Account: c.account, Run: c.run, Fence: work.Run.Fence}
	work.Decided, err = queryAll(ctx, t, scanInterrupt, unappliedSQL, c.account, c.run)
	return work, err
}

// Renew extends a lease; see [store.Runs].
func (s *Store) Renew(ctx context.Context, lease store.Lease, duration time.Duration) error {
	_, err := update(ctx, s, "renew a lease in", func(ctx context.Context, t txn) (struct{}, error) {
		return struct{}{}, t.updateOwned(ctx, lease, renewSQL, t.now+micros(duration))
	})
	return err
}

// SetProviderRef stores the provider's reference of the run; see [store.Runs].
func (s *Store) SetProviderRef(ctx context.Context, lease store.Lease, ref []byte) error {
	_, err := update(ctx, s, "set a reference in", func(ctx context.Context, t txn) (struct{}, error) {
		return struct{}{}, t.updateOwned(ctx, lease, setProviderRefSQL, ref)
	})
	return err
}

// Release ends an execution without a result; see [store.Runs].
func (s *Store) Release(ctx context.Context, lease store.Lease, release store.Release) error {
	_, err := update(ctx, s, "release a run in", func(ctx context.Context, t txn) (struct{}, error) {
		return struct{}{}, t.release(ctx, lease, release)
	})
	return err
}

func (t txn) release(ctx context.Context, lease store.Lease, release store.Release) error {
	if release.Park {
		if err := t.updateOwned(ctx, lease, parkSQL, t.now); err != nil {
			return err
		}
		return t.addEvent(ctx, lease.Account, lease.Run, store.EventParked, "")
	}
	var after any
	if release.Delay > 0 {
		after = t.now + micros(release.Delay)
	}
	t.markChanged(lease.Account, lease.Run)
	return t.updateOwned(ctx, lease, releaseSQL, after, t.now)
}

// updateOwned changes the run of a valid lease.
func (t txn) updateOwned(ctx context.Context, lease store.Lease, text string, values ...any) error {
	changed, err := t.exec(ctx, text, append([]any{lease.Account, lease.Run, lease.Fence}, values...)...)
	if err == nil && changed == 0 {
		return store.ErrFenced
	}
	return err
}

// checkLease returns ErrFenced unless the lease is valid. It stays valid until the transaction
// ends.
func (t txn) checkLease(ctx context.Context, lease store.Lease) error {
	good, err := t.exists(ctx, checkLeaseSQL, lease.Account, lease.Run, lease.Fence)
	if err == nil && !good {
		return store.ErrFenced
	}
	return err
}
