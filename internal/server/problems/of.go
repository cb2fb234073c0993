package problems

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/refusal"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// results maps a rejected decision to its problem code and detail.
var results = map[store.DecisionResult]struct{ code, detail string }{
	store.ResultAlreadyDecided: {"already_decided", desk.Sentence(desk.ErrDecided)},
	store.ResultExpired:        {"expired", desk.Sentence(desk.ErrExpired)},
	store.ResultWithdrawn:      {"superseded", desk.Sentence(desk.ErrWithdrawn)},
	store.ResultDigestMismatch: {"digest_mismatch", desk.Sentence(desk.ErrChanged)},
	store.ResultNotFound:       {"not_found", "The run has no such request."},
}

// errorCodes maps errors to problem codes. The first match applies.
var errorCodes = []struct {
	err  error
	code string
}{
	{executor.ErrInvalid, "bad_request"},
	{executor.ErrGraphNotFound, "unknown_graph"},
	{executor.ErrRunNotFound, "not_found"},
	{executor.ErrStateKeyInUse, "state_key_in_use"},
	{executor.ErrReceiptExists, "receipt_exists"},
	{executor.ErrRunEnded, "not_active"},
	{executor.ErrNotRetryable, "not_retryable"},
	{executor.ErrResumeIDReused, "resume_id_reused"},
	{store.ErrNotFound, "not_found"},
	{store.ErrInvalid, "bad_request"},
	{executor.ErrNoPolicy, "no_policy"},
	{executor.ErrIsDecision, "bad_request"},
}

// deskCodes maps each error of package desk to its problem code. The detail of the problem is the
// sentence of the error.
var deskCodes = []struct {
	err  error
	code string
}{
	{desk.ErrDecided, "already_decided"}, {desk.ErrExpired, "expired"}, {desk.ErrWithdrawn, "superseded"},
	{desk.ErrChanged, "digest_mismatch"}, {desk.ErrKeyReused, "idempotency_key_reused"},
	{desk.ErrNotHuman, "not_eligible"}, {desk.ErrNotMember, "not_eligible"}, {desk.ErrExcluded, "not_eligible"},
	{desk.ErrNotPermitted, "not_eligible"}, {desk.ErrWeakAuth, "stronger_auth_required"},
	{desk.ErrForgedIdentity, "identity_mismatch"}, {desk.ErrInvalidDelegate, "delegate_not_eligible"},
	{desk.ErrEarlierStage, "earlier_stage"}, {desk.ErrDecisionPending, "decision_pending"},
	{desk.ErrNotAllowed, "action_not_allowed"}, {desk.ErrClaimed, "action_not_allowed"},
	{desk.ErrNotClaimed, "action_not_allowed"}, {desk.ErrNoClarification, "action_not_allowed"},
	{desk.ErrNotConfirmed, "not_confirmed"}, {desk.ErrNothingToUndo, "action_not_allowed"}, {desk.ErrNoStep, "action_not_allowed"},
	{desk.ErrTooMany, "action_not_allowed"}, {desk.ErrDenied, "action_not_allowed"},
	{desk.ErrInvalidConditions, "invalid_conditions"},
	{desk.ErrInvalidTime, "bad_request"}, {desk.ErrInvalidText, "bad_request"}, {desk.ErrInvalidValue, "bad_request"},
	{desk.ErrInvalidEdit, "bad_request"}, {desk.ErrInvalid, "bad_request"},
	{desk.ErrDirectoryUnavailable, "unavailable"}, {desk.ErrPolicyUnavailable, "unavailable"},
}

// ofDesk converts an error of package desk; it returns nil for any other error.
func ofDesk(err error) *Problem {
	for _, known := range deskCodes {
		if !errors.Is(err, known.err) {
			continue
		}
		p := New(known.code, "%s", desk.Sentence(err))
		if p.Code == "unavailable" { // the cause is for the operator
			p.RetryAfter, p.Cause = time.Second, err
		}
		if weak, ok := errors.AsType[*desk.WeakAuthError](err); ok {
			p.MinAuth = string(weak.Need)
		}
		return p
	}
	return nil
}

// Of converts an error to a problem. Other errors may contain anything, so their text is not
// returned: an unknown result means to retry.
func Of(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if errors.Is(err, desk.ErrInvalidConditions) { // also as an invalid answer
		return ofDesk(err)
	}
	if bad, ok := errors.AsType[*fermata.AnswerError](err); ok {
		cause := bad.Err
		p := New("bad_answer", "the answer to %s does not match its schema", bad.ID)
		if refused, ok := errors.AsType[*desk.RefusedError](bad.Err); ok {
			p.Detail, cause = refusal.Sentence(desk.Code(refused), ""), errors.New(refused.Detail)
		}
		p.Fields = []api.Field{redactAnswer(cause)}
		if panicErr, ok := errors.AsType[*recovery.PanicError](bad.Err); ok {
			p.Cause = panicErr // logged for the author of the kind
		}
		return p
	}
	if unnamed, ok := errors.AsType[*executor.UnnamedInterruptError](err); ok {
		p := New("interrupt_id_required", "the open interrupt is of kind %s: an answer must name it with interruptId", unnamed.Kind)
		p.InterruptID = unnamed.Interrupt
		return p
	}
	if wrong, ok := errors.AsType[*provider.InputError](err); ok {
		p := New(wrong.Code, "%s", wrong.Error())
		if wrong.Field != "" {
			p.Fields = []api.Field{{Location: wrong.Field, Message: wrong.Problem}}
		}
		return p
	}
	if refusedErr, ok := errors.AsType[*executor.RefusedError](err); ok {
		if refusedErr.Err != nil && (refusedErr.Result == executor.Forbidden || refusedErr.Result == store.ResultDigestMismatch) {
			return Of(refusedErr.Err)
		}
		// no request was named, and none is open
		if refusedErr.Result == store.ResultWithdrawn && refusedErr.Interrupt == "" {
			return New("not_active", "the run has ended or has no open request")
		}
		// same result as for an answer just before the expiry was recorded
		if refusedErr.Verdict == store.VerdictExpire {
			return ForResult(store.ResultExpired)
		}
		p := ForResult(refusedErr.Result)
		if refusedErr.By != "" {
			p.Decided = &api.PriorDecision{By: refusedErr.By, At: refusedErr.At, Verdict: string(refusedErr.Verdict)}
		}
		return p
	}
	if p := ofDesk(err); p != nil {
		return p
	}
	for _, cause := range errorCodes {
		if errors.Is(err, cause.err) {
			return New(cause.code, "%s", plainText(err))
		}
	}
	if errors.Is(err, executor.ErrClosed) { // nothing was done; this is normal during a deploy
		return Overloaded("the server is shutting down; send the request again")
	}
	if errors.Is(err, executor.ErrUnreadable) {
		return New("unreadable", "some of the data cannot be decrypted")
	}
	p := New("unavailable", "the result is unknown; repeat with the same id")
	if !errors.Is(err, context.Canceled) { // no client waits for the response
		p.RetryAfter, p.Cause = time.Second, err
	}
	return p
}

// plainText returns the text of an error without package prefixes.
func plainText(err error) string {
	if errors.Is(err, store.ErrNotFound) {
		return "the account has no such object"
	}
	text := err.Error()
	for _, of := range []string{"executor: ", "store: "} {
		text = strings.TrimPrefix(text, of)
	}
	return text
}

// OrNil is Of for a result that may be nil.
func OrNil(err error) error {
	if err == nil {
		return nil
	}
	return Of(err)
}

// ForResult returns the problem of a rejected decision.
func ForResult(result store.DecisionResult) *Problem {
	known := results[result]
	return New(known.code, "%s", known.detail)
}
