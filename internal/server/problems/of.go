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
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// resultCodes maps a rejected decision to its problem code.
var resultCodes = map[store.DecisionResult]string{
	store.ResultAlreadyDecided: "already_decided",
	store.ResultExpired:        "expired",
	store.ResultWithdrawn:      "superseded",
	store.ResultDigestMismatch: "digest_mismatch",
	store.ResultNotFound:       "not_found",
}

// resultReasons maps a rejected decision to its detail.
var resultReasons = map[store.DecisionResult]string{
	store.ResultAlreadyDecided: "the request was already decided",
	store.ResultExpired:        "the deadline has passed",
	store.ResultWithdrawn:      "the run no longer waits for this request",
	store.ResultDigestMismatch: "the request differs from what was shown",
	store.ResultNotFound:       "the run has no such request",
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
	{desk.ErrKeyReused, "idempotency_key_reused"},
	{store.ErrNotFound, "not_found"},
	{store.ErrInvalid, "bad_request"},
	{executor.ErrNoPolicy, "no_policy"},
	{executor.ErrIsDecision, "bad_request"},
	{desk.ErrDecided, "already_decided"}, {desk.ErrExpired, "expired"}, {desk.ErrWithdrawn, "superseded"}, {desk.ErrChanged, "digest_mismatch"},
	{desk.ErrNotHuman, "not_eligible"}, {desk.ErrNotMember, "not_eligible"}, {desk.ErrExcluded, "not_eligible"}, {desk.ErrNotPermitted, "not_eligible"},
	{desk.ErrForgedIdentity, "identity_mismatch"},
	{desk.ErrNotAllowed, "action_not_allowed"}, {desk.ErrClaimed, "action_not_allowed"}, {desk.ErrNotClaimed, "action_not_allowed"}, {desk.ErrNoClarification, "action_not_allowed"},
	{desk.ErrEarlierStage, "earlier_stage"}, {desk.ErrDecisionPending, "decision_pending"}, {desk.ErrNothingToUndo, "action_not_allowed"},
	{desk.ErrNoStep, "action_not_allowed"}, {desk.ErrTooMany, "action_not_allowed"}, {desk.ErrDenied, "action_not_allowed"},
	{desk.ErrInvalidTime, "bad_request"}, {desk.ErrInvalidText, "bad_request"}, {desk.ErrInvalidValue, "bad_request"}, {desk.ErrInvalidEdit, "bad_request"},
}

// Of converts an error to a problem. Other errors may contain anything, so their text is not
// returned: an unknown result means to retry.
func Of(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if refused, ok := errors.AsType[*desk.RefusedError](err); ok && errors.Is(err, desk.ErrInvalidConditions) {
		return New("invalid_conditions", "%s", refused.Detail) // it has no argument values
	}
	if weak, ok := errors.AsType[*desk.WeakAuthError](err); ok {
		p := New("stronger_auth_required", "sign in with at least %s, and send it again", weak.Need)
		p.MinAuth = string(weak.Need)
		return p
	}
	if bad, ok := errors.AsType[*fermata.AnswerError](err); ok {
		p := New("bad_answer", "the answer to %s does not match its schema", bad.ID)
		p.Fields = []api.Field{redactAnswer(bad.Err)}
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
	return New(resultCodes[result], "%s", resultReasons[result])
}
