package executor

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/store"
)

// owner is what a provider may write while it executes a run: provider.Owner and the ledger of effects. All writes carry the fence of the lease, but for
// the end of an effect.
type owner struct {
	executor *Executor
	lease    store.Lease
	filing   *filing // of the execution, for what the audit log says of effects
	state    *draft
	begins   beginnings
}

func (o *owner) SetRef(ctx context.Context, ref string) error {
	if err := o.state.write(ctx); err != nil {
		return err
	}
	sealed := o.executor.seal(o.lease.Account, store.SealedRef, o.lease.Run, []byte(ref))
	return o.executor.store.SetRef(ctx, o.lease, sealed)
}

func (o *owner) Ledger() fermata.Ledger { return o }

// Begin writes a line into the ledger for an effect that is about to happen, after the state that led to it was saved. The store refuses it if no
// decision approves exactly this effect, or the run has another owner.
func (o *owner) Begin(ctx context.Context, intent fermata.Intent) (fermata.LedgerLine, bool, error) {
	if err := o.state.write(ctx); err != nil { //mutate:effect-saves-buffer-first
		return fermata.LedgerLine{}, false, err
	}
	effect := store.NewEffect{Interrupt: intent.Interrupt, Number: intent.Try, Digest: intent.Digest, Key: intent.Key}
	var err error
	if effect.Allowed, err = o.allowed(intent); err != nil {
		return fermata.LedgerLine{}, false, err
	}
	line, begun, err := o.begin(ctx, effect, intent)
	if errors.Is(err, store.ErrNotApproved) && intent.Allowed == nil {
		if effect.Interrupt, err = o.approved(ctx, intent); err == nil {
			line, begun, err = o.begin(ctx, effect, intent)
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
	case store.Started:
	}
	return known, begun, err
}

// begin writes the line, and what the audit log says of it, under the same id.
func (o *owner) begin(ctx context.Context, effect store.NewEffect, intent fermata.Intent) (line store.Effect, begun bool, err error) {
	effect.Beside, err = o.line(effect.Interrupt, audit.EffectBegun{
		Number: intent.Try, Action: o.action(intent), Key: intent.Key, Repeatable: intent.Repeatable, Fence: o.lease.Fence, Ruling: o.ruling(intent),
	})
	if err != nil {
		return line, false, err
	}
	return o.tryBegin(ctx, effect)
}

// approved finds the decision that approves an effect whose question was asked more than once: the visible id differs from the provider's then, see
// repeatMark.
func (o *owner) approved(ctx context.Context, intent fermata.Intent) (string, error) {
	asked, err := o.executor.store.Interrupts(ctx, o.lease.Account, o.lease.Run)
	if err != nil { // it is not known whether it is approved, and a run must not fail for that
		return "", err //mutate:approval-lookup-error
	}
	for _, i := range asked {
		if i.ID != intent.Interrupt && questionID(i.ID) == intent.Interrupt && i.Verdict == store.Approve && i.Final == intent.Digest {
			return i.ID, nil
		}
	}
	return "", store.ErrNotApproved
}

// allowed is the decision of a policy by which an effect needs nobody's approval, as the store keeps it; nil if people were asked.
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

// End writes into the ledger how an effect ended. It does not end with ctx: what was done has to be written down, also if the store is away for a while.
// Nobody else knows, and a person would be asked what happened.
func (o *owner) End(ctx context.Context, intent fermata.Intent, line fermata.LedgerLine) error {
	//mutate:effect-end-ignores-cancel
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		err := o.tryEnd(ctx, intent, line)
		//mutate:effect-result-retried
		if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrNotApproved) || !o.executor.pauses(ctx, pause) {
			return err
		}
	}
}

func (o *owner) tryEnd(ctx context.Context, intent fermata.Intent, line fermata.LedgerLine) error {
	end := store.EffectEnd{Account: o.lease.Account, Interrupt: intent.Interrupt, Number: intent.Try, State: store.Succeeded}
	if line.State == fermata.EffectFailed {
		//mutate:effect-error-not-stored
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

// end writes it, and what the audit log says of it, under the same id.
func (o *owner) end(ctx context.Context, end store.EffectEnd, receipt json.RawMessage) (err error) {
	end.Beside, err = o.line(end.Interrupt, audit.EffectEnded{Number: end.Number, State: audit.EffectState(end.State), Receipt: o.filing.digest(string(receipt))})
	if err != nil {
		return err
	}
	end.Receipt = o.executor.seal(end.Account, store.SealedReceipt, end.Interrupt, receipt)
	return o.executor.store.End(ctx, end)
}

// line is what the audit log says of an effect.
func (o *owner) line(interrupt string, body audit.Body) (store.Beside, error) {
	c := &filing{run: o.filing.run, dossier: o.filing.dossier}
	place := c.place()
	place.Interrupt = interrupt
	err := c.line(theSystem, place, body)
	return c.Beside, err
}

// action names what is done, for the audit log. The digest of the arguments is empty for a run without a salt.
func (o *owner) action(intent fermata.Intent) audit.Action {
	action := audit.Action{Args: o.filing.digest(intent.Digest)}
	if intent.Allowed != nil {
		action.Name = intent.Allowed.Request.Action
	}
	return action
}

// ruling is the policy that allowed an effect about which nobody was asked.
func (o *owner) ruling(intent fermata.Intent) audit.Ruling {
	if intent.Allowed == nil {
		return audit.Ruling{}
	}
	return audit.Ruling{Digest: intent.Allowed.Policy, Rules: []string{intent.Allowed.By}}
}
