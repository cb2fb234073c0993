package worker

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/ids"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/store"
)

// executionOwner is what a provider may write while it executes a run: provider.Owner and the
// effect ledger. All writes carry the fence of the lease, except for the end of an effect.
type executionOwner struct {
	worker  *Worker
	lease   store.Lease
	tx      *txn.Tx // of the execution, for what the audit log says of effects
	state   *checkpointBuffer
	tracker beginTracker
}

func (o *executionOwner) SetRef(ctx context.Context, ref string) error {
	if err := o.state.flush(ctx); err != nil {
		return err
	}
	return o.worker.store.SetProviderRef(ctx, o.lease, []byte(ref))
}

func (o *executionOwner) Ledger() fermata.Ledger { return o }

// Begin writes an intent into the ledger for an effect that is about to happen, after the state
// that led to it was saved. The store refuses it if no decision approves exactly this effect, or
// the run has another owner.
func (o *executionOwner) Begin(ctx context.Context, intent fermata.Intent) (fermata.LedgerEntry, bool, error) {
	if err := o.state.flush(ctx); err != nil { //mutate:effect-saves-buffer-first
		return fermata.LedgerEntry{}, false, err
	}
	effect := store.NewEffect{Interrupt: intent.InterruptID, Attempt: intent.Attempt, ActionDigest: intent.Digest, IdempotencyKey: intent.Key}
	var err error
	if effect.Ruling, err = o.policyApproval(intent); err != nil {
		return fermata.LedgerEntry{}, false, err
	}
	if err := o.checkConditions(ctx, intent); err != nil {
		return fermata.LedgerEntry{}, false, err
	}
	line, begun, err := o.beginWithAudit(ctx, effect, intent)
	if errors.Is(err, store.ErrNotApproved) && intent.Allowed == nil {
		if effect.Interrupt, err = o.approvingInterrupt(ctx, intent); err == nil {
			line, begun, err = o.beginWithAudit(ctx, effect, intent)
		}
	}
	if err != nil {
		return fermata.LedgerEntry{}, false, err
	}
	known := fermata.LedgerEntry{State: fermata.EffectBegun, Error: line.Error}
	line.Account, line.Interrupt = o.lease.Account, effect.Interrupt
	known.Receipt, err = o.worker.store.EffectReceipt(line)
	switch line.State {
	case store.EffectSucceeded:
		known.State = fermata.EffectSucceeded
	case store.EffectFailed:
		known.State = fermata.EffectFailed
	case store.EffectStarted:
	}
	return known, begun, err
}

// checkConditions returns a [*fermata.VoidApprovalError] if the conditions of an approval do not
// hold and the ledger does not have the effect yet.
func (o *executionOwner) checkConditions(ctx context.Context, intent fermata.Intent) error {
	if intent.Conditional == nil {
		return nil
	}
	err := o.worker.governor.CheckConditions(ctx, o.tx.Run, o.tx.Meta, intent.Action, *intent.Conditional)
	if _, void := errors.AsType[*fermata.VoidApprovalError](err); !void {
		return err
	}
	known, failed := o.worker.store.History(ctx, o.lease.Account, o.lease.Run)
	if failed != nil {
		return failed
	}
	for _, line := range known.Effects {
		if line.IdempotencyKey == intent.Key && line.Attempt == intent.Attempt {
			return nil // it began while they held
		}
	}
	return err
}

// beginWithAudit writes the line, and what the audit log says of it, under the same id.
func (o *executionOwner) beginWithAudit(ctx context.Context, effect store.NewEffect, intent fermata.Intent) (line store.Effect, begun bool, err error) {
	effect.Writes, err = o.auditWrites(effect.Interrupt, audit.EffectBegun{
		Number: intent.Attempt, Action: o.auditAction(intent), Key: intent.Key, Repeatable: intent.Idempotent, Fence: o.lease.Fence, Ruling: o.auditRuling(intent),
	})
	if err != nil {
		return line, false, err
	}
	return o.tryBegin(ctx, effect)
}

// approvingInterrupt finds the decision that approves an effect whose interrupt was published more
// than once: its visible id differs from the provider's then.
func (o *executionOwner) approvingInterrupt(ctx context.Context, intent fermata.Intent) (string, error) {
	asked, err := o.worker.store.Interrupts(ctx, o.lease.Account, o.lease.Run)
	if err != nil { // it is not known whether it is approved, and a run must not fail for that
		return "", err //mutate:approval-lookup-error
	}
	for _, i := range asked {
		if i.ID != intent.InterruptID && ids.ProviderID(i.ID) == intent.InterruptID && i.Verdict == store.VerdictApprove && i.ApprovedDigest == intent.Digest {
			return i.ID, nil
		}
	}
	return "", store.ErrNotApproved
}

// policyApproval returns the decision of a policy that an effect needs no approval, as the store
// keeps it; nil if people were asked.
func (o *executionOwner) policyApproval(intent fermata.Intent) (*store.PolicyRuling, error) {
	if intent.Allowed == nil {
		return nil, nil
	}
	data, err := json.Marshal(intent.Allowed.Request)
	return &store.PolicyRuling{
		Address: intent.Allowed.Address, Kind: fermata.Approval.Name(), By: intent.Allowed.By,
		Data: data,
	}, err
}

// End writes into the ledger how an effect ended. It does not end with ctx: the result has to be
// recorded, also if the store is unavailable for a while. Otherwise a person would be asked what
// happened.
func (o *executionOwner) End(ctx context.Context, intent fermata.Intent, line fermata.LedgerEntry) error {
	//mutate:effect-end-ignores-cancel
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), background.CommitTimeout)
	defer cancel()
	for pause := background.MinBackoff; ; pause = min(2*pause, background.MaxBackoff) {
		err := o.tryEnd(ctx, intent, line)
		//mutate:effect-result-retried
		if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrNotApproved) || !o.worker.background.WaitForStore(ctx, pause) {
			return err
		}
	}
}

func (o *executionOwner) tryEnd(ctx context.Context, intent fermata.Intent, line fermata.LedgerEntry) error {
	end := store.EffectEnd{Account: o.lease.Account, Interrupt: intent.InterruptID, Attempt: intent.Attempt, State: store.EffectSucceeded}
	if line.State == fermata.EffectFailed {
		//mutate:effect-error-not-stored
		// what it said may hold anything
		end.State, end.Error = store.EffectFailed, "the effect failed"
	}
	err := o.endWithAudit(ctx, end, intent, line.Receipt)
	if errors.Is(err, store.ErrNotFound) && intent.Allowed == nil {
		if end.Interrupt, err = o.approvingInterrupt(ctx, intent); err == nil {
			err = o.endWithAudit(ctx, end, intent, line.Receipt)
		}
	}
	return err
}

// endWithAudit writes it, and what the audit log says of it, under the same id.
func (o *executionOwner) endWithAudit(ctx context.Context, end store.EffectEnd, intent fermata.Intent, receipt json.RawMessage) (err error) {
	end.Writes, err = o.auditWrites(end.Interrupt, audit.EffectEnded{
		Number: end.Attempt, Action: o.auditAction(intent), State: audit.EffectState(end.State), Receipt: o.tx.Digest(string(receipt)),
	})
	if err != nil {
		return err
	}
	end.Receipt = receipt
	return o.worker.store.EndEffect(ctx, end)
}

// auditWrites returns the audit line of an effect.
func (o *executionOwner) auditWrites(interrupt string, body audit.Body) (store.Writes, error) {
	c := txn.New(o.tx.Run, o.tx.Meta, time.Time{})
	place := c.AuditPlace()
	place.Interrupt = interrupt
	err := c.AddAudit(auditrec.SystemActor, place, body)
	return c.Writes, err
}

// auditAction names what is done, for the audit log. The digest of the arguments is empty for a run
// without a salt.
func (o *executionOwner) auditAction(intent fermata.Intent) audit.Action {
	return audit.Action{Name: intent.Action, Args: o.tx.Digest(intent.Digest)}
}

// auditRuling returns the policy that allowed an effect without a request.
func (o *executionOwner) auditRuling(intent fermata.Intent) audit.Ruling {
	if intent.Allowed == nil {
		return audit.Ruling{}
	}
	return audit.Ruling{Digest: intent.Allowed.PolicyDigest, Rules: []string{intent.Allowed.By}}
}
