package memory

import (
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

func (b *tables) beginEffect(now time.Time, lease store.Lease, n store.NewEffect) (store.Effect, bool, error) {
	run, err := b.owned(lease)
	if err != nil {
		return store.Effect{}, false, err
	}
	write, stale := b.prepareWrites(now, lease.Account, n.Writes)
	if n.Ruling != nil {
		known := b.interrupt(run.Account, n.Interrupt)
		switch {
		//mutate:memory-policy-cannot-override
		// people decide what they were asked
		case known == nil && n.ActionDigest == "", known != nil && known.Source != store.SourcePolicy:
			return store.Effect{}, false, store.ErrNotApproved
		case known == nil && stale != nil:
			return store.Effect{}, false, stale
		case known == nil:
			b.recordRuling(now, run, n) //mutate:memory-policy-allows
		}
	}
	// the ruling is in the interrupt; the writes are applied below
	n.Ruling, n.Writes = nil, store.Writes{}
	i := run.interrupt(n.Interrupt)
	//mutate:memory-effect-approved
	if i == nil || i.State != store.InterruptDecided || i.Verdict != store.VerdictApprove || i.ApprovedDigest == "" || i.ApprovedDigest != n.ActionDigest {
		return store.Effect{}, false, store.ErrNotApproved
	}
	key := effectKey{lease.Account, n.Interrupt, n.Attempt}
	if line := b.effects[key]; line != nil { //mutate:memory-effect-begun-once
		return *line, false, nil
	}
	if stale != nil {
		return store.Effect{}, false, stale
	}
	line := &store.Effect{Account: lease.Account, Run: lease.Run, NewEffect: n, Fence: lease.Fence, State: store.EffectStarted, Started: now}
	b.effects[key] = line
	write()
	b.addEvent(now, run, store.EventEffectBegun, n.Interrupt)
	return *line, true, nil
}

// recordRuling records the ruling of a policy as a decided interrupt.
func (b *tables) recordRuling(now time.Time, run *runRow, n store.NewEffect) {
	run.interrupts = append(run.interrupts, &store.Interrupt{
		Account: run.Account, Run: run.ID,
		NewInterrupt: store.NewInterrupt{ID: n.Interrupt, Address: n.Ruling.Address, Kind: n.Ruling.Kind, Data: n.Ruling.Data, ActionDigest: n.ActionDigest},
		Created:      now, State: store.InterruptDecided, Verdict: store.VerdictApprove, ApprovedDigest: n.ActionDigest, DecidedBy: n.Ruling.By, Source: store.SourcePolicy, DecidedAt: now, Applied: true,
	})
	b.addEvent(now, run, store.EventDecided, n.Interrupt)
}

// interrupt returns the interrupt with an id, of any run of the account.
func (b *tables) interrupt(account, id string) *store.Interrupt {
	for key, run := range b.runs {
		if key.Account == account {
			if i := run.interrupt(id); i != nil {
				return i
			}
		}
	}
	return nil
}

func (b *tables) endEffect(now time.Time, end store.EffectEnd) error {
	line := b.effects[effectKey{end.Account, end.Interrupt, end.Attempt}]
	if line == nil {
		return store.ErrNotFound
	}
	if line.State != store.EffectStarted { //mutate:memory-effect-ended-once
		return nil
	}
	write, err := b.prepareWrites(now, end.Account, end.Writes)
	if err != nil {
		return err
	}
	write()
	line.State, line.Receipt, line.Error, line.Ended = end.State, end.Receipt, end.Error, now
	b.addEvent(now, b.runs[store.Key{Account: line.Account, Run: line.Run}], store.EventEffectEnded, line.Interrupt)
	return nil
}
