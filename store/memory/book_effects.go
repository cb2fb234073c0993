package memory

import (
	"time"

	"github.com/fermata-go/fermata/store"
)

func (b *book) begin(now time.Time, lease store.Lease, n store.NewEffect) (store.Effect, bool, error) {
	run, err := b.owned(lease)
	if err != nil {
		return store.Effect{}, false, err
	}
	write, stale := b.beside(now, lease.Account, n.Beside)
	if n.Allowed != nil {
		known := b.asked(run.Account, n.Interrupt)
		switch {
		//mutate:memory-policy-cannot-override
		case known == nil && n.Digest == "", known != nil && known.Source != store.Policy: // what people were asked is theirs to decide
			return store.Effect{}, false, store.ErrNotApproved
		case known == nil && stale != nil:
			return store.Effect{}, false, stale
		case known == nil:
			b.allow(now, run, n) //mutate:memory-policy-allows
		}
	}
	n.Allowed, n.Beside = nil, store.Beside{} // the one is in the interrupt, the other is written below
	i := run.find(n.Interrupt)
	//mutate:memory-effect-approved
	if i == nil || i.State != store.Decided || i.Verdict != store.Approve || i.Final == "" || i.Final != n.Digest {
		return store.Effect{}, false, store.ErrNotApproved
	}
	key := effectKey{lease.Account, n.Interrupt, n.Number}
	if line := b.effects[key]; line != nil { //mutate:memory-effect-begun-once
		return *line, false, nil
	}
	if stale != nil {
		return store.Effect{}, false, stale
	}
	line := &store.Effect{Account: lease.Account, Run: lease.Run, NewEffect: n, Fence: lease.Fence, State: store.Started, Started: now}
	b.effects[key] = line
	write()
	b.note(now, run, store.EventEffectBegun, n.Interrupt)
	return *line, true, nil
}

// allow writes down the word of a policy.
func (b *book) allow(now time.Time, run *bookedRun, n store.NewEffect) {
	run.asked = append(run.asked, &store.Interrupt{
		Account: run.Account, Run: run.ID,
		NewInterrupt: store.NewInterrupt{ID: n.Interrupt, Address: n.Allowed.Address, Kind: n.Allowed.Kind, Data: n.Allowed.Data, Action: n.Digest},
		Created:      now, State: store.Decided, Verdict: store.Approve, Final: n.Digest, By: n.Allowed.By, Source: store.Policy, At: now, Applied: true,
	})
	b.note(now, run, store.EventDecided, n.Interrupt)
}

// asked is the interrupt of this id, whichever run asked it.
func (b *book) asked(account, id string) *store.Interrupt {
	for key, run := range b.runs {
		if key.Account == account {
			if i := run.find(id); i != nil {
				return i
			}
		}
	}
	return nil
}

func (b *book) end(now time.Time, end store.EffectEnd) error {
	line := b.effects[effectKey{end.Account, end.Interrupt, end.Number}]
	if line == nil {
		return store.ErrNotFound
	}
	if line.State != store.Started { //mutate:memory-effect-ended-once
		return nil
	}
	write, err := b.beside(now, end.Account, end.Beside)
	if err != nil {
		return err
	}
	write()
	line.State, line.Receipt, line.Error, line.Ended = end.State, end.Receipt, end.Error, now
	b.note(now, b.runs[store.Key{Account: line.Account, Run: line.Run}], store.EventEffectEnded, line.Interrupt)
	return nil
}
