package sqlite

import (
	"context"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	effectSQL = `SELECT ` + effectColumns + ` FROM effects WHERE account = ?1 AND interrupt = ?2 AND number = ?3`

	sourceSQL = `SELECT source FROM interrupts WHERE account = ?1 AND id = ?2`

	// recordRulingSQL records the ruling of a policy as an interrupt that is decided and applied.
	recordRulingSQL = `
INSERT INTO interrupts (account, id, run, place, address, kind, data, shown, action, timeout, created_at,
                        state, verdict, final, decided_by, via, source, decided_at, applied)
VALUES (?1, ?2, ?3, ` + nextPosition + `, ?4, ?5, ?6, x'', ?7, 0, ?9,
        'decided', 'approve', ?7, ?8, x'', 'policy', ?9, 1)`

	// beginEffectSQL fails by its foreign key unless this interrupt of this run was approved with
	// exactly this digest.
	beginEffectSQL = `
INSERT INTO effects (account, run, interrupt, number, digest, target_key, fence, started_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`

	endEffectSQL = `
UPDATE effects SET state = ?4, receipt = ?5, error = ?6, ended_at = ?7
WHERE account = ?1 AND interrupt = ?2 AND number = ?3`
)

// BeginEffect records that an effect is about to be called; see [store.Runs].
func (s *Store) BeginEffect(ctx context.Context, lease store.Lease, effect store.NewEffect) (line store.Effect, begun bool, err error) {
	if err := effect.Writes.Validate(); err != nil {
		return store.Effect{}, false, err
	}
	line, err = update(ctx, s, "begin an effect in", func(ctx context.Context, t txn) (line store.Effect, err error) {
		line, begun, err = t.beginEffect(ctx, lease, effect)
		return line, err
	})
	return line, begun && err == nil, err
}

func (t txn) beginEffect(ctx context.Context, lease store.Lease, n store.NewEffect) (line store.Effect, begun bool, err error) {
	if err := t.checkLease(ctx, lease); err != nil {
		return store.Effect{}, false, err
	}
	if n.ActionDigest == "" { // an empty digest approves nothing, even if an approval has it
		return store.Effect{}, false, store.ErrNotApproved
	}
	if n.Ruling != nil {
		if err := t.recordRuling(ctx, lease, n); err != nil {
			return store.Effect{}, false, err
		}
	}
	writes := n.Writes
	// the ruling is in the interrupt; the writes are applied below
	n.Ruling, n.Writes = nil, store.Writes{}
	there, err := t.queryRow(ctx, effectDest(&line), effectSQL, lease.Account, n.Interrupt, n.Attempt)
	switch {
	case err != nil:
		return store.Effect{}, false, err
	case there && (line.Run != lease.Run || line.ActionDigest != n.ActionDigest):
		return store.Effect{}, false, store.ErrNotApproved // otherwise the entry could not exist
	case there:
		return line, false, nil
	}
	_, err = t.exec(ctx, beginEffectSQL, lease.Account, lease.Run, n.Interrupt, n.Attempt, n.ActionDigest, n.IdempotencyKey, lease.Fence, t.now)
	if resultCode(err) == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY {
		err = store.ErrNotApproved
	}
	if err == nil {
		err = t.addEvent(ctx, lease.Account, lease.Run, store.EventEffectBegun, n.Interrupt)
	}
	if err == nil {
		err = t.applyWrites(ctx, lease.Account, writes)
	}
	if err != nil {
		return store.Effect{}, false, err
	}
	return store.Effect{
		Account: lease.Account, Run: lease.Run, NewEffect: n, Fence: lease.Fence, State: store.EffectStarted, Started: timeOf(t.now),
	}, true, nil
}

// recordRuling records the ruling of a policy, unless it exists. People decide what they were
// asked.
func (t txn) recordRuling(ctx context.Context, lease store.Lease, n store.NewEffect) error {
	var by store.Source // "" while it is open
	known, err := t.queryRow(ctx, []any{orZero(&by)}, sourceSQL, lease.Account, n.Interrupt)
	switch {
	case err != nil:
		return err
	case known && by != store.SourcePolicy:
		return store.ErrNotApproved
	case known:
		return nil
	}
	_, err = t.exec(ctx, recordRulingSQL, lease.Account, n.Interrupt, lease.Run, n.Ruling.Address, n.Ruling.Kind, n.Ruling.Data, n.ActionDigest, n.Ruling.By, t.now)
	if err != nil {
		return err
	}
	return t.addEvent(ctx, lease.Account, lease.Run, store.EventDecided, n.Interrupt)
}

// EndEffect records how an effect ended; see [store.Runs].
func (s *Store) EndEffect(ctx context.Context, end store.EffectEnd) error {
	if err := end.Writes.Validate(); err != nil {
		return err
	}
	_, err := update(ctx, s, "end an effect in", func(ctx context.Context, t txn) (struct{}, error) { return struct{}{}, t.endEffect(ctx, end) })
	return err
}

func (t txn) endEffect(ctx context.Context, end store.EffectEnd) error {
	var line store.Effect
	there, err := t.queryRow(ctx, effectDest(&line), effectSQL, end.Account, end.Interrupt, end.Attempt)
	switch {
	case err != nil:
		return err
	case !there:
		return store.ErrNotFound
	case line.State != store.EffectStarted:
		return nil // the first result counts
	}
	if _, err := t.exec(ctx, endEffectSQL, end.Account, end.Interrupt, end.Attempt, end.State, end.Receipt, end.Error, t.now); err != nil {
		return err
	}
	if err := t.addEvent(ctx, line.Account, line.Run, store.EventEffectEnded, line.Interrupt); err != nil {
		return err
	}
	return t.applyWrites(ctx, end.Account, end.Writes)
}

// Fenced returns the checkpoints of a run for its owner; see [store.Runs].
func (s *Store) Fenced(lease store.Lease) store.Checkpoints { return fenced{s, lease} }

// fenced is a Store for the owner of a run.
type fenced struct {
	*Store
	lease store.Lease
}

// Save checks the fence in the transaction of the save, so that no takeover can happen in between.
func (f fenced) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	//mutate:sqlite-save-fenced
	return f.saveIf(ctx, key, base, delta, func(ctx context.Context, t txn) error { return t.checkLease(ctx, f.lease) })
}
