package executor

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/store"
)

// owner is the right to a run, as its provider sees it.
type owner struct {
	executor *Executor
	lease    store.Lease
}

func (o *owner) SetRef(ctx context.Context, ref string) error {
	sealed := o.executor.seal(o.lease.Account, store.SealedRef, o.lease.Run, []byte(ref))
	return o.executor.store.SetRef(ctx, o.lease, sealed)
}

func (o *owner) Ledger() fermata.Ledger { return o }

// Begin writes down that an effect is about to happen. The store refuses it if nobody approved exactly this, or the run has another owner.
func (o *owner) Begin(ctx context.Context, intent fermata.Intent) (fermata.LedgerLine, bool, error) {
	effect := store.NewEffect{Interrupt: intent.Interrupt, Number: intent.Try, Digest: intent.Digest, Key: intent.Key}
	var err error
	if effect.Allowed, err = o.allowed(intent); err != nil {
		return fermata.LedgerLine{}, false, err
	}
	line, begun, err := o.executor.store.Begin(ctx, o.lease, effect)
	if errors.Is(err, store.ErrNotApproved) && intent.Allowed == nil {
		if effect.Interrupt, err = o.approved(ctx, intent); err == nil {
			line, begun, err = o.executor.store.Begin(ctx, o.lease, effect)
		}
	}
	if err != nil {
		return fermata.LedgerLine{}, false, err
	}
	known := fermata.LedgerLine{State: fermata.EffectBegun, Error: line.Error}
	known.Receipt, err = o.executor.open(o.lease.Account, store.SealedReceipt, effect.Interrupt, line.Receipt)
	switch line.State {
	case store.Succeeded:
		known.State = fermata.EffectSucceeded
	case store.Faulted:
		known.State = fermata.EffectFailed
	case store.Started, store.Indeterminate:
	}
	return known, begun, err
}

// approved finds the decision that approves an effect when its question was asked more than once: it has another id then.
func (o *owner) approved(ctx context.Context, intent fermata.Intent) (string, error) {
	asked, err := o.executor.store.Interrupts(ctx, o.lease.Account, o.lease.Run)
	for _, i := range asked {
		if i.ID != intent.Interrupt && questionID(i.ID) == intent.Interrupt && i.Verdict == store.Approve && i.Final == intent.Digest {
			return i.ID, nil
		}
	}
	return "", errors.Join(store.ErrNotApproved, err)
}

// allowed is the word of a policy, as it is written down.
func (o *owner) allowed(intent fermata.Intent) (*store.Allowed, error) {
	if intent.Allowed == nil {
		return nil, nil
	}
	data, err := json.Marshal(intent.Allowed.Request)
	return &store.Allowed{
		Address: intent.Allowed.Address, Kind: fermata.Approval.Name(), By: intent.Allowed.By,
		Data: o.executor.seal(o.lease.Account, store.SealedData, intent.Interrupt, data),
	}, err
}

// End writes down how an effect ended.
func (o *owner) End(ctx context.Context, intent fermata.Intent, line fermata.LedgerLine) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	end := store.EffectEnd{Account: o.lease.Account, Interrupt: intent.Interrupt, Number: intent.Try, State: store.Succeeded}
	if line.State == fermata.EffectFailed {
		end.State, end.Error = store.Faulted, "the effect failed" // what it said may hold anything
	}
	err := o.end(ctx, end, line.Receipt)
	if errors.Is(err, store.ErrNotFound) && intent.Allowed == nil {
		if end.Interrupt, err = o.approved(ctx, intent); err == nil {
			err = o.end(ctx, end, line.Receipt)
		}
	}
	return err
}

func (o *owner) end(ctx context.Context, end store.EffectEnd, receipt json.RawMessage) error {
	end.Receipt = o.executor.seal(end.Account, store.SealedReceipt, end.Interrupt, receipt)
	return o.executor.store.End(ctx, end)
}
