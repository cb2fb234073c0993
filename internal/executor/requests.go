package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/decide"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/requests"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
)

// Answer is a person's answer to one request.
type Answer = decide.Answer

// RefusedError says why a decision was not accepted. It changed nothing.
type RefusedError = decide.RefusedError

// Forbidden is the result of a decision that this person may not make; RefusedError.Err says why.
const Forbidden = decide.Forbidden

// ActReveal names the reveal of masked values. It is not a command of package desk.
const ActReveal = requests.ActReveal

// Act does something with a request that decides nothing: claim, view, comment, delegate, snooze,
// ask for clarification. It returns the request afterwards, store.ErrNotFound if there is none, or
// an error of package desk. An escalation that returns the request for redesign is a decision, and
// the run continues; it can also return a [*RefusedError].
func (e *Executor) Act(ctx context.Context, account, id string, act desk.Command) (desk.Request, error) {
	if escalate, ok := act.(desk.Escalate); ok && escalate.Actor.Kind == desk.ActorHuman {
		doc, err := e.requests.RequestDocument(ctx, account, id)
		if err != nil {
			return desk.Request{}, err
		}
		if doc.Requirement.OnEscalate == requirement.EscalateReturns {
			return e.returnForRedesign(ctx, account, id, escalate)
		}
	}
	return e.requests.Act(ctx, account, id, act)
}

// Reveal returns a request with its masked values, and records in the audit log who saw them. The
// actor must be able to decide the request, unless privileged. It returns store.ErrNotFound if
// there is no such request, or an error of package desk.
func (e *Executor) Reveal(ctx context.Context, account, id string, from desk.From, privileged bool) (RequestView, error) {
	return e.requests.Reveal(ctx, account, id, from, privileged)
}

// RecordRendering records that a person sees a request, and what their channel put on the screen.
// shown is the [desk.Request.Digest] that was rendered; if the request has changed since, nothing
// is recorded. A decision can name the hash of the rendering: [Answer].
func (e *Executor) RecordRendering(ctx context.Context, account, id string, by desk.From, shown string, rendering desk.Rendering) (desk.Request, error) {
	by.Seen.Digest = shown
	return e.requests.Act(ctx, account, id, desk.View{From: by, Rendering: &rendering})
}

// returnForRedesign decides a request: its run gets the reason. It does not wait for the run.
func (e *Executor) returnForRedesign(ctx context.Context, account, id string, act desk.Escalate) (desk.Request, error) {
	value, err := decide.ReturnValue(act.Reason)
	if err != nil {
		return desk.Request{}, err
	}
	resume := ident.Random("ret")
	if key := act.IdempotencyKey.Key; key != "" {
		resume = ident.Derive("ret", id, key)
	}
	_, err = e.Decide(ctx, DecideRequest{
		Account: account, ResumeID: resume, Actor: act.Actor.ID, Via: act.Via, Auth: act.Actor.Auth,
		Targets: map[string]Answer{id: {Value: value, Shown: act.Seen.Digest}}, Wait: -1,
	})
	if _, pending := errors.AsType[*PendingError](err); err != nil && !pending {
		return desk.Request{}, err
	}
	return e.requests.RequestDocument(ctx, account, id)
}

// ChangeViews replaces the saved views of a person by those that change returns. It may call change
// several times. An error of change is returned, and nothing is written.
func (e *Executor) ChangeViews(ctx context.Context, account, person string, change func([]SavedView) ([]SavedView, error)) error {
	return e.personal.ChangeViews(ctx, account, person, change)
}

// WritePasskeys stores the passkeys of a member, encrypted, together with audit lines. It returns
// store.ErrStale if the stored ones do not have the revision.
func (e *Executor) WritePasskeys(ctx context.Context, account, member string, data []byte, revision int64, audit ...[]byte) error {
	return e.personal.WritePasskeys(ctx, account, member, data, revision, audit...)
}

// Receipt is what an agent elsewhere says it did after the decision on its request.
type Receipt = docs.Receipt

// RecordReceipt stores what an agent elsewhere did after the decision on its approval; the digest
// is that of the executed action and arguments. The same receipt counts once, and a second one that
// differs is ErrReceiptExists. By and At are set from the actor and the clock of the store.
func (e *Executor) RecordReceipt(ctx context.Context, account, stateKey string, receipt Receipt, from desk.From) (Receipt, error) {
	return e.requests.RecordReceipt(ctx, account, stateKey, receipt, from)
}

// ReceiptOf returns the receipt of a run, or nil if it has none.
func (e *Executor) ReceiptOf(ctx context.Context, run store.Run) (*Receipt, error) {
	return e.requests.Receipt(ctx, run)
}

// TakeAgentRequest counts one request of an agent, unless it created limit requests in the last
// hour; then it returns how long it must wait. All processes share the count.
func (e *Executor) TakeAgentRequest(ctx context.Context, account, agent string, limit int) (wait time.Duration, err error) {
	return e.requests.TakeAgentRequest(ctx, account, agent, limit)
}

// Abandon cancels the run that a request belongs to, on behalf of a person who may decide the
// request. Its other requests are withdrawn.
func (e *Executor) Abandon(ctx context.Context, account, id string, act desk.Abandon) error {
	return e.requests.Abandon(ctx, account, id, act)
}

// RecordForbidden records in the audit log that an actor without the required role tried to act on
// a request. It records nothing if the account has no such request.
func (e *Executor) RecordForbidden(ctx context.Context, account, id string, name desk.CommandName, from desk.From) error {
	return e.requests.RecordForbidden(ctx, account, id, name, from)
}

// Cancel ends a run on behalf of an actor; the zero From is the system. Its owner loses it, and its
// requests are withdrawn. It returns ErrRunEnded if the run has ended.
func (e *Executor) Cancel(ctx context.Context, account, stateKey string, by desk.From) error {
	run, err := e.docs.FindRun(ctx, account, stateKey)
	if err != nil {
		return err
	}
	if err = e.requests.EndRun(ctx, run, by, store.StatusCancelled); errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %q is %s", ErrRunEnded, stateKey, run.Status)
	}
	return err
}

// Retry continues a parked or failed run from its last saved step, on behalf of an actor; the zero
// From is the system. Recorded effects and accepted answers are kept. It returns ErrNotRetryable,
// with the reason, if the run is neither, if its failure is final, or if it kept no state.
func (e *Executor) Retry(ctx context.Context, account, stateKey string, by desk.From) error {
	return e.worker.Retry(ctx, account, stateKey, by)
}
