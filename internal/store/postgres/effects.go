package postgres

import (
	"context"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	// recordRulingSQL records the ruling of a policy unless the interrupt exists.
	recordRulingSQL = `
WITH ` + clockCTE + `,
allowed AS (
    INSERT INTO interrupts (account, id, run, place, address, kind, data, shown, action, timeout, created_at,
                            state, verdict, final, decided_by, via, source, decided_at, applied)
    SELECT $1, $2, r.run, r.places + 1, $4, $5, $6, '', $3, 0, clock.now, 'decided', 'approve', $3, $7, '', 'policy', clock.now, true
    FROM runs AS r CROSS JOIN clock WHERE r.key = ` + lockedRunKey + ` AND r.account = $1
    ON CONFLICT (key) DO NOTHING
    RETURNING id, decided_at
), changed AS (
    UPDATE runs AS r SET events = r.events + 1, places = r.places + 1 FROM allowed
    WHERE r.key = ` + lockedRunKey + ` AND r.account = $1
    RETURNING r.account, r.run, r.events, allowed.*
)
INSERT INTO events (account, run, number, kind, interrupt, at) SELECT account, run, events, 'decided', id, decided_at FROM changed`

	// beginEffectSQL fails by its foreign key unless this interrupt of this run was approved with
	// exactly this digest. An effect that a policy allows is not begun if people were asked.
	// Without a row the entry exists already.
	beginEffectSQL = `
WITH line AS (
    INSERT INTO effects (account, run, interrupt, number, digest, target_key, fence, started_at)
    SELECT $1, r.run, $2, $3, $4::bytea, $5, r.fence, clock_timestamp()
    FROM runs AS r
    WHERE r.key = ` + lockedRunKey + ` AND r.account = $1
      AND (NOT $6 OR EXISTS (SELECT FROM interrupts WHERE key = ` + keyOfArgs + ` AND account = $1 AND source = 'policy'))
    ON CONFLICT (interrupt_key, number) DO NOTHING
    RETURNING interrupt, started_at
), changed AS (
    UPDATE runs AS r SET events = r.events + 1 FROM line
    WHERE r.key = ` + lockedRunKey + ` AND r.account = $1
    RETURNING r.account, r.run, r.events, line.*
)
INSERT INTO events (account, run, number, kind, interrupt, at) SELECT account, run, events, 'effect_begun', interrupt, started_at FROM changed
RETURNING at, ` + markChanged

	// effectSQL returns an entry, and whether it was begun by the ruling of a policy.
	effectSQL = `
SELECT i.source = 'policy', ` + effectColumns + ` FROM effects AS e JOIN interrupts AS i ON i.key = e.interrupt_key AND i.account = $1
WHERE e.interrupt_key = ` + keyOfArgs + ` AND e.number = $3 AND e.account = $1`

	lockEffectSQL = `
WITH locked AS (
    SELECT key FROM runs
    WHERE key = (SELECT run_key FROM effects WHERE interrupt_key = ` + keyOfArgs + ` AND number = $3 AND account = $1) AND account = $1
      AND ` + waitEventLock + `
    FOR NO KEY UPDATE
)` + setLockedRun

	endEffectSQL = `
WITH ended AS (
    UPDATE effects AS i SET state = $4::text, receipt = $5, error = $6, ended_at = clock_timestamp()
    WHERE interrupt_key = ` + keyOfArgs + ` AND number = $3 AND account = $1 AND ` + ofLockedRun + ` AND state = 'started'
    RETURNING interrupt, ended_at
), changed AS (
    UPDATE runs AS r SET events = r.events + 1 FROM ended
    WHERE r.key = ` + lockedRunKey + ` AND r.account = $1
    RETURNING r.account, r.run, r.events, ended.*
)
INSERT INTO events (account, run, number, kind, interrupt, at) SELECT account, run, events, 'effect_ended', interrupt, ended_at FROM changed
RETURNING run, ` + markChanged
)

// BeginEffect records that an effect is about to be called; see [store.Runs].
func (s *Store) BeginEffect(ctx context.Context, lease store.Lease, n store.NewEffect) (line store.Effect, begun bool, err error) {
	var t txn
	var made string
	locked, allowed, writes := false, n.Ruling, n.Writes
	// the ruling is in the interrupt; the writes are applied below
	n.Ruling, n.Writes = nil, store.Writes{}
	line = store.Effect{Account: lease.Account, Run: lease.Run, NewEffect: n, Fence: lease.Fence, State: store.EffectStarted}
	t.lockRun(&locked, lockOwnedSQL, lease.Account, lease.Run, lease.Fence)
	if n.ActionDigest != "" { // an empty digest approves nothing, even if an approval has it
		if allowed != nil {
			t.queue(recordRulingSQL, lease.Account, n.Interrupt, n.ActionDigest, allowed.Address, allowed.Kind, allowed.Data, allowed.By)
		}
		t.queryRow(&begun, []any{timeScanner{&line.Started}, &made}, beginEffectSQL, lease.Account, n.Interrupt, n.Attempt, n.ActionDigest, n.IdempotencyKey, allowed != nil)
	}
	if err := t.applyWrites(lease.Account, writes); err != nil {
		return store.Effect{}, false, err
	}
	err = s.update(ctx, "begin an effect in", &t)
	switch {
	case violates(err, "approved_exactly"):
		return store.Effect{}, false, store.ErrNotApproved
	case err != nil:
		return store.Effect{}, false, err
	case !locked:
		return store.Effect{}, false, store.ErrFenced
	case begun:
		s.publish(lease.Account, lease.Run)
		return line, true, nil
	}
	line, err = s.existingEffect(ctx, lease, n, allowed != nil)
	return line, false, err
}

// existingEffect returns the existing entry. An entry of another run or action could not exist if
// this were approved.
func (s *Store) existingEffect(ctx context.Context, lease store.Lease, n store.NewEffect, allowed bool) (line store.Effect, err error) {
	var t txn
	there, byPolicy := false, false
	t.queryRow(&there, append([]any{&byPolicy}, effectDest(&line)...), effectSQL, lease.Account, n.Interrupt, n.Attempt)
	if err := s.view(ctx, "read an effect in", &t); err != nil {
		return store.Effect{}, err
	}
	if !there || line.Run != lease.Run || line.ActionDigest != n.ActionDigest || allowed && !byPolicy {
		return store.Effect{}, store.ErrNotApproved
	}
	return line, nil
}

// EndEffect records how an effect ended; see [store.Runs].
func (s *Store) EndEffect(ctx context.Context, end store.EffectEnd) error {
	var t txn
	var run, made string
	begun, ended := false, false
	t.lockRun(&begun, lockEffectSQL, end.Account, end.Interrupt, end.Attempt)
	t.queryRow(&ended, []any{nameScanner{&run}, &made}, endEffectSQL, end.Account, end.Interrupt, end.Attempt, end.State, end.Receipt, end.Error)
	if err := t.applyWrites(end.Account, end.Writes); err != nil {
		return err
	}
	if err := s.update(ctx, "end an effect in", &t); err != nil {
		return err
	}
	if !begun {
		return store.ErrNotFound
	}
	if ended {
		s.publish(end.Account, run)
	}
	return nil
}

// Fenced returns the checkpoints of a run for its owner; see [store.Runs].
func (s *Store) Fenced(lease store.Lease) store.Checkpoints { return fenced{s, lease} }

// fenced is a Store for the owner of a run.
type fenced struct {
	*Store
	lease store.Lease
}

// Save locks the run while it saves, so that no takeover can happen in between.
func (f fenced) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	return f.saveAs(ctx, &f.lease, key, base, delta)
}
