package sqlite

import (
	"context"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/fermata-go/fermata/store"
)

const (
	effectSQL = `SELECT ` + effectColumns + ` FROM effects WHERE account = ?1 AND interrupt = ?2 AND number = ?3`

	deciderSQL = `SELECT source FROM interrupts WHERE account = ?1 AND id = ?2`

	// allowSQL is the word of a policy. Nobody was asked, and nothing is left to apply.
	allowSQL = `
INSERT INTO interrupts (account, id, run, place, address, kind, data, shown, action, timeout, created_at,
                        state, verdict, final, decided_by, via, source, decided_at, applied)
VALUES (?1, ?2, ?3, ` + nextPlace + `, ?4, ?5, ?6, x'', ?7, 0, ?9,
        'decided', 'approve', ?7, ?8, x'', 'policy', ?9, 1)`

	// beginSQL fails by its foreign key unless this interrupt of this run was approved with exactly this digest.
	beginSQL = `
INSERT INTO effects (account, run, interrupt, number, digest, target_key, fence, started_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`

	endSQL = `
UPDATE effects SET state = ?4, receipt = ?5, error = ?6, ended_at = ?7
WHERE account = ?1 AND interrupt = ?2 AND number = ?3`
)

// Begin writes down that an effect is about to happen; see [store.Runs].
func (s *Store) Begin(ctx context.Context, lease store.Lease, effect store.NewEffect) (line store.Effect, begun bool, err error) {
	if err := effect.Beside.Check(); err != nil {
		return store.Effect{}, false, err
	}
	line, err = do(ctx, s, "begin an effect in", func(ctx context.Context, t turn) (line store.Effect, err error) {
		line, begun, err = t.begin(ctx, lease, effect)
		return line, err
	})
	return line, begun && err == nil, err
}

func (t turn) begin(ctx context.Context, lease store.Lease, n store.NewEffect) (line store.Effect, begun bool, err error) {
	if err := t.owned(ctx, lease); err != nil {
		return store.Effect{}, false, err
	}
	if n.Digest == "" { // approves nothing, even where an approve says the same
		return store.Effect{}, false, store.ErrNotApproved
	}
	if n.Allowed != nil {
		if err := t.allow(ctx, lease, n); err != nil {
			return store.Effect{}, false, err
		}
	}
	beside := n.Beside
	n.Allowed, n.Beside = nil, store.Beside{} // the one is in the interrupt, the other is written below
	there, err := t.find(ctx, effectDest(&line), effectSQL, lease.Account, n.Interrupt, n.Number)
	switch {
	case err != nil:
		return store.Effect{}, false, err
	case there && (line.Run != lease.Run || line.Digest != n.Digest):
		return store.Effect{}, false, store.ErrNotApproved // or the line could not be there
	case there:
		return line, false, nil
	}
	_, err = t.exec(ctx, beginSQL, lease.Account, lease.Run, n.Interrupt, n.Number, n.Digest, n.Key, lease.Fence, t.now)
	if code(err) == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY {
		err = store.ErrNotApproved
	}
	if err == nil {
		err = t.note(ctx, lease.Account, lease.Run, store.EventEffectBegun, n.Interrupt)
	}
	if err == nil {
		err = t.beside(ctx, lease.Account, beside)
	}
	if err != nil {
		return store.Effect{}, false, err
	}
	return store.Effect{
		Account: lease.Account, Run: lease.Run, NewEffect: n, Fence: lease.Fence, State: store.Started, Started: atMicro(t.now),
	}, true, nil
}

// allow writes down the word of a policy, unless it is there already. What people were asked is theirs to decide.
func (t turn) allow(ctx context.Context, lease store.Lease, n store.NewEffect) error {
	var by store.Source // "" while it is open
	known, err := t.find(ctx, []any{zero(&by)}, deciderSQL, lease.Account, n.Interrupt)
	switch {
	case err != nil:
		return err
	case known && by != store.Policy:
		return store.ErrNotApproved
	case known:
		return nil
	}
	_, err = t.exec(ctx, allowSQL, lease.Account, n.Interrupt, lease.Run, n.Allowed.Address, n.Allowed.Kind, n.Allowed.Data, n.Digest, n.Allowed.By, t.now)
	if err != nil {
		return err
	}
	return t.note(ctx, lease.Account, lease.Run, store.EventDecided, n.Interrupt)
}

// End writes down how an effect ended; see [store.Runs].
func (s *Store) End(ctx context.Context, end store.EffectEnd) error {
	if err := end.Beside.Check(); err != nil {
		return err
	}
	_, err := do(ctx, s, "end an effect in", func(ctx context.Context, t turn) (struct{}, error) { return struct{}{}, t.end(ctx, end) })
	return err
}

func (t turn) end(ctx context.Context, end store.EffectEnd) error {
	var line store.Effect
	there, err := t.find(ctx, effectDest(&line), effectSQL, end.Account, end.Interrupt, end.Number)
	switch {
	case err != nil:
		return err
	case !there:
		return store.ErrNotFound
	case line.State != store.Started:
		return nil // the first word counts
	}
	if _, err := t.exec(ctx, endSQL, end.Account, end.Interrupt, end.Number, end.State, end.Receipt, end.Error, t.now); err != nil {
		return err
	}
	if err := t.note(ctx, line.Account, line.Run, store.EventEffectEnded, line.Interrupt); err != nil {
		return err
	}
	return t.beside(ctx, end.Account, end.Beside)
}

// Fenced returns the checkpoints of a run for its owner; see [store.Runs].
func (s *Store) Fenced(lease store.Lease) store.Checkpoints { return fenced{s, lease} }

// fenced is a Store in the hands of an owner.
type fenced struct {
	*Store
	lease store.Lease
}

// Save looks at the fence in the transaction that saves: nobody can take the run over in between.
func (f fenced) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	//mutate:sqlite-save-fenced
	return f.saveIf(ctx, key, base, delta, func(ctx context.Context, t turn) error { return t.owned(ctx, f.lease) })
}
