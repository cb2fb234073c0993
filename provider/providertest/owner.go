package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/store"
)

// errCut is the error of store calls during an outage.
var errCut = errors.New("providertest: store is unreachable")

// faults simulates a store outage, from one call on or for one call. The call itself may still be
// executed.
type faults struct {
	mu   sync.Mutex
	at   int  // the number of the first call that fails, from 0
	late bool // that call is executed, and fails all the same
	once bool // only that call fails
	seen int
	hit  bool
}

func (f *faults) String() string {
	text := fmt.Sprintf("from call %d on", f.at+1)
	if f.once {
		text = fmt.Sprintf("call %d", f.at+1)
	}
	if f.late {
		text += ", which is executed"
	}
	return text
}

// cut reports whether a call is executed, and whether it fails.
func (f *faults) cut() (carriedOut, fails bool) {
	if f == nil {
		return true, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	number := f.seen
	f.seen++
	if number < f.at || f.once && number > f.at {
		return true, false
	}
	f.hit = true
	return f.late && number == f.at, true
}

// call makes one call of the store.
func call(f *faults, fn func() error) error {
	carriedOut, fails := f.cut()
	if carriedOut {
		if err := fn(); err != nil {
			return err
		}
	}
	if fails {
		return errCut
	}
	return nil
}

// faultyState is the state store of the provider, with faults.
type faultyState struct {
	store.Checkpoints
	faults *faults
}

func (s *faultyState) Load(ctx context.Context, key store.Key) (checkpoint store.Checkpoint, err error) {
	err = call(s.faults, func() error {
		checkpoint, err = s.Checkpoints.Load(ctx, key)
		return err
	})
	return checkpoint, err
}

func (s *faultyState) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (version int64, err error) {
	err = call(s.faults, func() error {
		version, err = s.Checkpoints.Save(ctx, key, base, delta)
		return err
	})
	return version, err
}

// owner is the ownership of the run, with its own lease: it may be lost while the provider runs.
type owner struct {
	driver *driver
	lease  store.Lease
	faults *faults
}

func (o *owner) SetRef(ctx context.Context, ref string) error {
	return call(o.faults, func() error {
		if err := o.driver.store.SetProviderRef(ctx, o.lease, []byte(ref)); err != nil {
			return err
		}
		o.driver.ref = ref
		return nil
	})
}

func (o *owner) Ledger() fermata.Ledger { return o }

func (o *owner) Begin(ctx context.Context, intent fermata.Intent) (known fermata.LedgerEntry, begun bool, err error) {
	effect := store.NewEffect{Interrupt: intent.InterruptID, Attempt: intent.Attempt, ActionDigest: intent.Digest, IdempotencyKey: intent.Key}
	if intent.Allowed != nil {
		data, err := json.Marshal(intent.Allowed.Request)
		if err != nil {
			return known, false, err
		}
		effect.Ruling = &store.PolicyRuling{Address: intent.Allowed.Address, Kind: fermata.Approval.Name(), Data: data, By: intent.Allowed.By}
	}
	var line store.Effect
	err = call(o.faults, func() error {
		line, begun, err = o.driver.store.BeginEffect(ctx, o.lease, effect)
		return err
	})
	known = fermata.LedgerEntry{State: fermata.EffectBegun, Receipt: line.Receipt, Error: line.Error}
	switch line.State {
	case store.EffectSucceeded:
		known.State = fermata.EffectSucceeded
	case store.EffectFailed:
		known.State = fermata.EffectFailed
	case store.EffectStarted:
	}
	return known, begun && err == nil, err
}

func (o *owner) End(ctx context.Context, intent fermata.Intent, line fermata.LedgerEntry) error {
	end := store.EffectEnd{Account: o.lease.Account, Interrupt: intent.InterruptID, Attempt: intent.Attempt, State: store.EffectSucceeded, Receipt: line.Receipt}
	if line.State == fermata.EffectFailed {
		end.State, end.Error = store.EffectFailed, line.Error
	}
	return call(o.faults, func() error { return o.driver.store.EndEffect(context.WithoutCancel(ctx), end) })
}
