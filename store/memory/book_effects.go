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
	if n.Allowed != nil && !b.allow(now, run, n) {
		return store.Effect{}, false, store.ErrNotApproved
	}
	n.Allowed = nil // that is in the interrupt
	i := run.find(n.Interrupt)
	if i == nil || i.State != store.Decided || i.Verdict != store.Approve || i.Final == "" || i.Final != n.Digest {
		return store.Effect{}, false, store.ErrNotApproved
	}
	key := effectKey{lease.Account, n.Interrupt, n.Number}
	if line := b.effects[key]; line != nil {
		return *line, false, nil
	}
	line := &store.Effect{Account: lease.Account, Run: lease.Run, NewEffect: n, Fence: lease.Fence, State: store.Started, Started: now}
	b.effects[key] = line
	b.note(now, run, store.EventEffectBegun, n.Interrupt)
	return *line, true, nil
}

// allow writes down the word of a policy, unless it is there already. It reports whether it counts: what people were asked is
// theirs to decide.
func (b *book) allow(now time.Time, run *bookedRun, n store.NewEffect) bool {
	if i := b.asked(run.Account, n.Interrupt); i != nil {
		return i.Source == store.Policy
	}
	if n.Digest == "" {
		return false
	}
	run.asked = append(run.asked, &store.Interrupt{
		Account: run.Account, Run: run.ID,
		NewInterrupt: store.NewInterrupt{ID: n.Interrupt, Address: n.Allowed.Address, Kind: n.Allowed.Kind, Data: n.Allowed.Data, Action: n.Digest},
		Created:      now, State: store.Decided, Verdict: store.Approve, Final: n.Digest, By: n.Allowed.By, Source: store.Policy, At: now, Applied: true,
	})
	b.note(now, run, store.EventDecided, n.Interrupt)
	return true
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
	if line.State != store.Started && line.State != store.Indeterminate {
		return nil
	}
	line.State, line.Receipt, line.Error, line.Ended = end.State, end.Receipt, end.Error, now
	run := b.runs[store.Key{Account: line.Account, Run: line.Run}]
	b.note(now, run, store.EventEffectEnded, line.Interrupt)
	if run.Status == store.Parked && !run.held && !b.doubtful(run) {
		b.wake(now, run)
	}
	return nil
}

// doubtful reports whether the run has an effect of which nobody knows whether it happened.
func (b *book) doubtful(run *bookedRun) bool {
	for key, line := range b.effects {
		if key.account == run.Account && line.Run == run.ID && (line.State == store.Indeterminate || line.State == store.Started) {
			return true
		}
	}
	return false
}
