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
	"github.com/fermata-go/fermata/store"
)

// Problem is an api.Problem on its way out.
type Problem struct {
	api.Problem
	retryAfter time.Duration
	limit      string // the limit that refused, if one did
	rejected   bool   // whoever it is for was not let in, and is counted as that
	cause      error  // what went wrong with us, for the log and for nobody else
}

// GetStatus is the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders says when to come again.
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

// ContentType marks it as a problem.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// A Code is one row of the table of problems.
type Code struct {
	Code   string
	Status int
	Title  string
	Help   string
}

// Codes is the table of problems: every code that a client can get, and what to do about it.
var Codes = []Code{
	{"bad_request", 400, "Bad request", "The request is no valid JSON, or not what this call takes. Mend it; nothing was changed."},
	{"bad_answer", 400, "Bad answer", "The answer does not fit its question. The question is still open."},
	{"too_large", 413, "Too large", "Send less; the detail says how much is allowed."},
	{"timeout", 408, "Too slow", "The request did not arrive in time. Nothing was changed; send it again."},
	{"unsupported", 415, "Unsupported media type", "Send application/json, without a content encoding."},
	{"unauthenticated", 401, "Not signed in", "Send a valid token."},
	{"forbidden", 403, "Forbidden", "Your role may not do this."},
	{"not_found", 404, "Not found", "Your account has nothing of that name."},
	{"unknown_graph", 404, "Unknown graph", "This server has no such graph; GET /api/v1/graphs lists them."},
	{"method_not_allowed", 405, "Method not allowed", "See /openapi.json."},
	{"state_key_in_use", 409, "State key in use", "A run with this state key began with something else. Choose another one, or supersede it."},
	{"already_decided", 409, "Already decided", "Somebody was faster; decided says who, when and how."},
	{"not_active", 409, "Not active", "The run is over, or waits for nothing."},
	{"expired", 410, "Expired", "The deadline has passed."},
	{"superseded", 410, "Superseded", "The run no longer asks this."},
	{"digest_mismatch", 412, "Not what you saw", "What would be decided is not what you were shown. Look again, and decide with a new resume id."},
	{"resume_id_reused", 422, "Resume id reused", "This resume id belongs to another decision. Use a new one."},
	{"idempotency_key_reused", 422, "Idempotency key reused", "This Idempotency-Key belongs to something else. Use a new one."},
	{"not_yours", 403, "Not yours to say", "Your word on this request would not count; the detail says why."},
	{"not_possible", 409, "Not possible now", "The request does not allow this, or not now; the detail says why."},
	{"no_policy", 404, "No policy", "This server has no rules; every action is asked about."},
	{"rate_limited", 429, "Too many requests", "Wait for as long as Retry-After says."},
	{"too_many_open", 429, "Too many open requests", "Your account has too many open questions. Let some be decided first."},
	{"too_many_runs", 429, "Too many runs", "Your account has too many runs under way. Wait until some rest."},
	{"unreadable", 500, "Cannot be opened", "What is sealed cannot be opened: its key is missing, or it was changed, or a part is gone. What is there is kept as it is; the log of the server has the reason. Nothing was changed, and to repeat it does not help."},
	{"internal", 500, "Internal error", "This is a mistake of ours. Repeat with the same id; it counts once."},
	{"unavailable", 503, "Unknown or not done", "Repeat with the same id; it counts once."},
}

func problem(code, detail string, args ...any) *Problem {
	for _, c := range Codes {
		if c.Code == code {
			return &Problem{Problem: api.Problem{Status: c.Status, Code: code, Title: c.Title, Detail: fmt.Sprintf(detail, args...)}}
		}
	}
	return problem("internal", "no code %s", code)
}

// resultCodes says which code a refused decision gets.
var resultCodes = map[store.DecisionResult]string{
	store.ResultAlreadyDecided: "already_decided",
	store.ResultExpired:        "expired",
	store.ResultWithdrawn:      "superseded",
	store.ResultDigestMismatch: "digest_mismatch",
	store.ResultNotFound:       "not_found",
}

// resultReasons says why a decision was refused.
var resultReasons = map[store.DecisionResult]string{
	store.ResultAlreadyDecided: "it was decided before",
	store.ResultExpired:        "the deadline has passed",
	store.ResultWithdrawn:      "the run no longer asks this",
	store.ResultDigestMismatch: "what would be decided is not what was shown",
	store.ResultNotFound:       "the run has no such question",
}

// errorCodes says which code an error gets. The first that fits counts.
var errorCodes = []struct {
	err  error
	code string
}{
	{executor.ErrInvalid, "bad_request"},
	{executor.ErrGraphNotFound, "unknown_graph"},
	{executor.ErrRunNotFound, "not_found"},
	{executor.ErrStateKeyInUse, "state_key_in_use"},
	{executor.ErrRunEnded, "not_active"},
	{executor.ErrNotParked, "not_active"},
	{executor.ErrResumeIDReused, "resume_id_reused"},
	{desk.ErrKeyReused, "idempotency_key_reused"},
	{store.ErrNotFound, "not_found"},
	{store.ErrInvalid, "bad_request"},
	{executor.ErrNoPolicy, "no_policy"},
	{executor.ErrIsDecision, "bad_request"},
	{desk.ErrDecided, "already_decided"}, {desk.ErrExpired, "expired"}, {desk.ErrWithdrawn, "superseded"}, {desk.ErrChanged, "digest_mismatch"},
	{desk.ErrNotHuman, "not_yours"}, {desk.ErrNotMember, "not_yours"}, {desk.ErrExcluded, "not_yours"}, {desk.ErrWeakAuth, "not_yours"}, {desk.ErrNotPermitted, "not_yours"},
	{desk.ErrNotAllowed, "not_possible"}, {desk.ErrClaimed, "not_possible"}, {desk.ErrNotClaimed, "not_possible"}, {desk.ErrNoClarification, "not_possible"},
	{desk.ErrNoStep, "not_possible"}, {desk.ErrTooMany, "not_possible"}, {desk.ErrDenied, "not_possible"},
	{desk.ErrInvalidTime, "bad_request"}, {desk.ErrInvalidText, "bad_request"}, {desk.ErrInvalidValue, "bad_request"}, {desk.ErrInvalidEdit, "bad_request"},
}

// problemOf makes a problem of an error. What is no error of ours may hold anything, so it is not told: unknown means repeat.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if bad, ok := errors.AsType[*fermata.AnswerError](err); ok {
		p := problem("bad_answer", "the answer to %s does not fit", bad.ID)
		p.Fields = []api.Field{redactAnswerError(bad.Err)}
		if broken, ok := errors.AsType[*recovery.PanicError](bad.Err); ok {
			p.cause = broken // whoever wrote the kind has to know
		}
		return p
	}
	if refused, ok := errors.AsType[*executor.RefusedError](err); ok {
		if refused.Err != nil && (refused.Result == executor.Forbidden || refused.Result == store.ResultDigestMismatch) {
			return problemOf(refused.Err)
		}
		if refused.Result == store.ResultWithdrawn && refused.Interrupt == "" { // nobody named a question, and none is open
			return problem("not_active", "the run is over, or waits for nothing")
		}
		if refused.Verdict == store.VerdictExpire { // it is the same for who came before the clock had written it down
			return problem(resultCodes[store.ResultExpired], "%s", resultReasons[store.ResultExpired])
		}
		p := problem(resultCodes[refused.Result], "%s", resultReasons[refused.Result])
		if refused.By != "" {
			p.Decided = &api.PriorDecision{By: refused.By, At: refused.At, Verdict: string(refused.Verdict)}
		}
		return p
	}
	for _, cause := range errorCodes {
		if errors.Is(err, cause.err) {
			return problem(cause.code, "%s", plainText(err))
		}
	}
	if errors.Is(err, executor.ErrClosed) { // notFound was done, and it is no mistake: every deploy ends servers
		return overloaded("this server is about to end: send it again")
	}
	if errors.Is(err, executor.ErrUnreadable) {
		return problem("unreadable", "something of it cannot be opened")
	}
	p := problem("unavailable", "nobody knows whether it was done: repeat with the same id")
	if !errors.Is(err, context.Canceled) { // nobody waits for it any more
		p.retryAfter, p.cause = time.Second, err
	}
	return p
}

// plainText is what an error says to those who do not know our packages.
func plainText(err error) string {
	if errors.Is(err, store.ErrNotFound) {
		return "your account has nothing of that name"
	}
	text := err.Error()
	for _, of := range []string{"executor: ", "store: "} {
		text = strings.TrimPrefix(text, of)
	}
	return text
}

// newError makes problems of what the router and the validation of requests find.
func newError(status int, message string, errs ...error) huma.StatusError {
	code := map[int]string{
		http.StatusUnauthorized: "unauthenticated", http.StatusForbidden: "forbidden", http.StatusNotFound: "not_found", http.StatusMethodNotAllowed: "method_not_allowed",
		http.StatusRequestTimeout: "timeout", http.StatusRequestEntityTooLarge: "too_large", http.StatusUnsupportedMediaType: "unsupported", http.StatusTooManyRequests: "rate_limited",
		http.StatusInternalServerError: "internal", http.StatusServiceUnavailable: "unavailable",
	}[status]
	if code == "" {
		code = "bad_request"
	}
	p := problem(code, "%s", message)
	p.limit = map[string]string{"too_large": "body", "timeout": "sending"}[code]
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
