// Package problems has the error responses of the HTTP API: RFC 9457 problems with stable codes.
package problems

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/fermata-go/fermata/api"
)

// Problem is an api.Problem with response details.
type Problem struct {
	api.Problem
	// RetryAfter is the value of the Retry-After header; 0 means none.
	RetryAfter time.Duration `json:"-"`
	// Limit is the limit that rejected the request, if any.
	Limit string `json:"-"`
	// Rejected is set if the request was rejected before the operation; it is counted as such.
	Rejected bool `json:"-"`
	// Cause is the internal error; logged only.
	Cause error `json:"-"`
}

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns the Retry-After and WWW-Authenticate headers.
func (p *Problem) GetHeaders() http.Header {
	h := make(http.Header)
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
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
	{"not_retryable", 409, "Run not retryable", "The run is neither parked nor failed, its failure is final, or it kept no state; the detail says why."},
	{"question_closed", 409, "Question closed", "The question was answered or has ended. Nothing was changed; read the conversation again."},
	{"expired", 410, "Expired", "The deadline has passed."},
	{"superseded", 410, "Superseded", "The run no longer waits for this request."},
	{"digest_mismatch", 412, "Request changed", "The request differs from what you were shown. Read it again and decide with a new resume id."},
	{"resume_id_reused", 422, "Resume id reused", "This resume id was used for another decision. Use a new one."},
	{"idempotency_key_reused", 422, "Idempotency key reused", "This Idempotency-Key was used for another call. Use a new one."},
	{"invalid_conditions", 422, "Invalid conditions", "The conditions of the approval are invalid or do not hold now; the detail says why. The request is still open, and the attempt is in the audit log."},
	{"not_eligible", 403, "Not an eligible approver", "You are not an eligible approver for this request; the detail says why."},
	{"identity_mismatch", 403, "Identity mismatch", "The answer names another person or group than you, or changes the record of decisions. Leave such fields out: the server writes who decided and when. Nothing was changed, and the attempt is in the audit log."},
	{"delegate_not_eligible", 422, "Delegate not eligible", "The person named in to is not an eligible approver of the request; the detail says why. Nothing was changed."},
	{"action_not_allowed", 409, "Action not allowed", "The request does not allow this action now; the detail says why."},
	{"stronger_auth_required", 403, "Stronger authentication required", "The rules of the request require a stronger authentication for this; minAuth is the minimum. Sign in with it, and send the same call again."},
	{"not_confirmed", 422, "Not confirmed", "The rules of the request require that the approver types the name of the object: show activity.confirm of the request to them, and send what they typed in confirm. The request is still open."},
	{"earlier_stage", 409, "Earlier stage open", "An earlier stage of the approval chain has to agree first; the detail names it. Try again then."},
	{"decision_pending", 409, "Decision pending", "A decision was made and takes effect at the end of its undo window. Its voter can withdraw it until then."},
	{"no_policy", 404, "No policy", "The server has no policy; every action needs approval."},
	{"rate_limited", 429, "Too many requests", "Retry after the Retry-After delay."},
	{"agent_limit", 429, "Too many requests of one agent", "The agent has created too many requests in the last hour. Retry after the Retry-After delay."},
	{"too_many_open", 429, "Too many open requests", "The account has too many open requests. Wait until some are decided."},
	{"too_many_runs", 429, "Too many active runs", "The account has too many active runs. Wait until some wait or end."},
	{"unreadable", 500, "Data cannot be decrypted", "Stored data cannot be decrypted: a key is missing, or the data was changed or partly deleted. It is kept unchanged; the server log has the cause. Nothing was changed, and a retry does not help."},
	{"internal", 500, "Internal error", "An internal error occurred. Retry with the same id; it is applied once."},
	{"unavailable", 503, "Unavailable, result unknown", "Retry with the same id; it is applied once."},
}

// New returns a problem with a code of Codes.
func New(code, detail string, args ...any) *Problem {
	for _, c := range Codes {
		if c.Code == code {
			return &Problem{Problem: api.Problem{Status: c.Status, Code: code, Title: c.Title, Detail: fmt.Sprintf(detail, args...)}}
		}
	}
	return New("internal", "no code %s", code)
}

// Overloaded returns the problem of a temporary failure; the client may retry after a second.
func Overloaded(detail string) *Problem {
	p := New("unavailable", "%s", detail)
	p.RetryAfter = time.Second
	return p
}

// Write writes a problem response outside of the operations.
func Write(w http.ResponseWriter, p *Problem) {
	maps.Copy(w.Header(), p.GetHeaders())
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // a disconnected client does not read it
}
