package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// Problem is an api.Problem with response details.
type Problem struct {
	api.Problem
	retryAfter time.Duration
	limit      string // the limit that rejected the request, if any
	rejected   bool   // the request was rejected before the operation, and is counted as such
	cause      error  // the internal error; logged only
}

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns the Retry-After and WWW-Authenticate headers.
func (p *Problem) GetHeaders() http.Header {
	h := make(http.Header)
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retryAfter.Seconds()))))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="fermata"`)
	}
	return h
}

// ContentType returns the problem media type.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// A Code is one row of the problem table.
type Code struct {
	Code   string
	Status int
	Title  string
	Help   string
}

// Codes is the problem table: every code that a client can receive, with help.
var Codes = []Code{
	{"bad_request", 400, "Bad request", "The request is not valid JSON or does not match the schema. Fix it; nothing was changed."},
	{"interrupt_id_required", 400, "Interrupt id required", "A decision on an action must name its interrupt; interruptId is the open one. Show it to the approver, then answer with interruptId."},
	{"invalid_input", 400, "Invalid input", "The graph cannot start with this input; the detail says why. No run was created."},
	{"data_too_large", 400, "Data too large", "What people see has at most 256 KiB. No run was created."},
	{"bad_answer", 400, "Invalid answer", "The answer does not match the kind's schema. The request is still open."},
	{"too_large", 413, "Request too large", "Send less data; the detail states the limit."},
	{"timeout", 408, "Request timeout", "The request body did not arrive in time. Nothing was changed; send it again."},
	{"unsupported_media_type", 415, "Unsupported media type", "Send application/json without a content encoding."},
	{"unauthenticated", 401, "Not authenticated", "Send a valid token."},
	{"forbidden", 403, "Forbidden", "Your role does not allow this operation."},
	{"not_found", 404, "Not found", "The account has no such object."},
	{"unknown_graph", 404, "Unknown graph", "The server has no such graph; GET /api/v1/graphs lists them."},
	{"method_not_allowed", 405, "Method not allowed", "See /openapi.json."},
	{"state_key_in_use", 409, "State key in use", "A run with this state key was started with other input. Choose another key, or supersede the run."},
	{"receipt_exists", 409, "Receipt exists", "The run has another receipt. A receipt cannot be changed."},
	{"already_decided", 409, "Request already decided", "Another decision was recorded first; decided says by whom, when and with which verdict."},
	{"not_active", 409, "Run not active", "The run has ended or has no open request."},
	{"expired", 410, "Expired", "The deadline has passed."},
	{"superseded", 410, "Superseded", "The run no longer waits for this request."},
	{"digest_mismatch", 412, "Request changed", "The request differs from what you were shown. Read it again and decide with a new resume id."},
	{"resume_id_reused", 422, "Resume id reused", "This resume id was used for another decision. Use a new one."},
	{"idempotency_key_reused", 422, "Idempotency key reused", "This Idempotency-Key was used for another call. Use a new one."},
	{"not_eligible", 403, "Not an eligible approver", "You are not an eligible approver for this request; the detail says why."},
	{"identity_mismatch", 403, "Identity mismatch", "The answer names another person or group than you, or changes the record of decisions. Leave such fields out: the server writes who decided and when. Nothing was changed, and the attempt is in the audit log."},
	{"action_not_allowed", 409, "Action not allowed", "The request does not allow this action now; the detail says why."},
	{"no_policy", 404, "No policy", "The server has no policy; every action needs approval."},
	{"rate_limited", 429, "Too many requests", "Retry after the Retry-After delay."},
	{"agent_limit", 429, "Too many requests of one agent", "The agent has created too many requests in the last hour. Retry after the Retry-After delay."},
	{"too_many_open", 429, "Too many open requests", "The account has too many open requests. Wait until some are decided."},
	{"too_many_runs", 429, "Too many active runs", "The account has too many active runs. Wait until some wait or end."},
	{"unreadable", 500, "Data cannot be decrypted", "Stored data cannot be decrypted: a key is missing, or the data was changed or partly deleted. It is kept unchanged; the server log has the cause. Nothing was changed, and a retry does not help."},
	{"internal", 500, "Internal error", "An internal error occurred. Retry with the same id; it is applied once."},
	{"unavailable", 503, "Unavailable, result unknown", "Retry with the same id; it is applied once."},
}

func problem(code, detail string, args ...any) *Problem {
	for _, c := range Codes {
		if c.Code == code {
			return &Problem{Problem: api.Problem{Status: c.Status, Code: code, Title: c.Title, Detail: fmt.Sprintf(detail, args...)}}
		}
	}
	return problem("internal", "no code %s", code)
}

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
	{executor.ErrNotParked, "not_active"},
	{executor.ErrResumeIDReused, "resume_id_reused"},
	{desk.ErrKeyReused, "idempotency_key_reused"},
	{store.ErrNotFound, "not_found"},
	{store.ErrInvalid, "bad_request"},
	{executor.ErrNoPolicy, "no_policy"},
	{executor.ErrIsDecision, "bad_request"},
	{desk.ErrDecided, "already_decided"}, {desk.ErrExpired, "expired"}, {desk.ErrWithdrawn, "superseded"}, {desk.ErrChanged, "digest_mismatch"},
	{desk.ErrNotHuman, "not_eligible"}, {desk.ErrNotMember, "not_eligible"}, {desk.ErrExcluded, "not_eligible"}, {desk.ErrWeakAuth, "not_eligible"}, {desk.ErrNotPermitted, "not_eligible"},
	{desk.ErrForgedIdentity, "identity_mismatch"},
	{desk.ErrNotAllowed, "action_not_allowed"}, {desk.ErrClaimed, "action_not_allowed"}, {desk.ErrNotClaimed, "action_not_allowed"}, {desk.ErrNoClarification, "action_not_allowed"},
	{desk.ErrNoStep, "action_not_allowed"}, {desk.ErrTooMany, "action_not_allowed"}, {desk.ErrDenied, "action_not_allowed"},
	{desk.ErrInvalidTime, "bad_request"}, {desk.ErrInvalidText, "bad_request"}, {desk.ErrInvalidValue, "bad_request"}, {desk.ErrInvalidEdit, "bad_request"},
}

// problemOf converts an error to a problem. Other errors may contain anything, so their text is not
// returned: an unknown result means to retry.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if bad, ok := errors.AsType[*fermata.AnswerError](err); ok {
		p := problem("bad_answer", "the answer to %s does not match its schema", bad.ID)
		p.Fields = []api.Field{redactAnswerError(bad.Err)}
		if panicErr, ok := errors.AsType[*recovery.PanicError](bad.Err); ok {
			p.cause = panicErr // logged for the author of the kind
		}
		return p
	}
	if unnamed, ok := errors.AsType[*executor.UnnamedInterruptError](err); ok {
		p := problem("interrupt_id_required", "the open interrupt is of kind %s: an answer must name it with interruptId", unnamed.Kind)
		p.InterruptID = unnamed.Interrupt
		return p
	}
	if wrong, ok := errors.AsType[*provider.InputError](err); ok {
		p := problem(wrong.Code, "%s", wrong.Error())
		if wrong.Field != "" {
			p.Fields = []api.Field{{Location: wrong.Field, Message: wrong.Problem}}
		}
		return p
	}
	if refusedErr, ok := errors.AsType[*executor.RefusedError](err); ok {
		if refusedErr.Err != nil && (refusedErr.Result == executor.Forbidden || refusedErr.Result == store.ResultDigestMismatch) {
			return problemOf(refusedErr.Err)
		}
		// no request was named, and none is open
		if refusedErr.Result == store.ResultWithdrawn && refusedErr.Interrupt == "" {
			return problem("not_active", "the run has ended or has no open request")
		}
		// same result as for an answer just before the expiry was recorded
		if refusedErr.Verdict == store.VerdictExpire {
			return problem(resultCodes[store.ResultExpired], "%s", resultReasons[store.ResultExpired])
		}
		p := problem(resultCodes[refusedErr.Result], "%s", resultReasons[refusedErr.Result])
		if refusedErr.By != "" {
			p.Decided = &api.PriorDecision{By: refusedErr.By, At: refusedErr.At, Verdict: string(refusedErr.Verdict)}
		}
		return p
	}
	for _, cause := range errorCodes {
		if errors.Is(err, cause.err) {
			return problem(cause.code, "%s", plainText(err))
		}
	}
	if errors.Is(err, executor.ErrClosed) { // nothing was done; this is normal during a deploy
		return overloaded("the server is shutting down; send the request again")
	}
	if errors.Is(err, executor.ErrUnreadable) {
		return problem("unreadable", "some of the data cannot be decrypted")
	}
	p := problem("unavailable", "the result is unknown; repeat with the same id")
	if !errors.Is(err, context.Canceled) { // no client waits for the response
		p.retryAfter, p.cause = time.Second, err
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

// newError converts errors of the router and of request validation.
func newError(status int, message string, errs ...error) huma.StatusError {
	code := map[int]string{
		http.StatusUnauthorized: "unauthenticated", http.StatusForbidden: "forbidden", http.StatusNotFound: "not_found", http.StatusMethodNotAllowed: "method_not_allowed",
		http.StatusRequestTimeout: "timeout", http.StatusRequestEntityTooLarge: "too_large", http.StatusUnsupportedMediaType: "unsupported_media_type", http.StatusTooManyRequests: "rate_limited",
		http.StatusInternalServerError: "internal", http.StatusServiceUnavailable: "unavailable",
	}[status]
	if code == "" {
		code = "bad_request"
	}
	p := problem(code, "%s", message)
	p.limit = map[string]string{"too_large": "body", "timeout": "body_timeout"}[code]
	for _, err := range errs {
		if own, ok := err.(*Problem); ok {
			return own
		}
		field := api.Field{Message: err.Error()}
		if detailed, ok := err.(huma.ErrorDetailer); ok { // without the value: it may be a secret
			field = api.Field{Location: detailed.ErrorDetail().Location, Message: detailed.ErrorDetail().Message}
		}
		if strings.HasPrefix(field.Message, "nested deeper") {
			p.limit = "depth"
		}
		p.Fields = append(p.Fields, field)
	}
	return p
}
