package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/analytics"
)

// The actions that [Client.Act] accepts.
const (
	ActionView     = "view"
	ActionClaim    = "claim"
	ActionRelease  = "release"
	ActionUndo     = "undo"
	ActionComment  = "comment"
	ActionClarify  = "clarify"
	ActionReply    = "reply"
	ActionDelegate = "delegate"
	ActionSnooze   = "snooze"
	ActionExtend   = "extend"
	ActionEscalate = "escalate"
	ActionAbandon  = "abandon"
)

// Act applies an action other than a decision to a request, and returns the updated request.
// Retries apply it once.
func (c *Client) Act(ctx context.Context, id, act string, body api.RequestAction) (req api.Request, err error) {
	return c.ActOnce(ctx, id, act, body, NewID())
}

// ActOnce is Act with an idempotency key: the same action with the same key is applied once.
func (c *Client) ActOnce(ctx context.Context, id, act string, body api.RequestAction, key string) (req api.Request, err error) {
	r := request{
		method: http.MethodPost, path: "/requests/" + url.PathEscape(id) + "/" + url.PathEscape(act), body: body,
		headers: map[string]string{"Idempotency-Key": key},
	}
	return req, c.call(ctx, r, &req)
}

// Reveal returns a request with its masked values. The server records in the audit log who saw
// them.
func (c *Client) Reveal(ctx context.Context, id string) (req api.Request, err error) {
	return req, c.call(ctx, request{method: http.MethodPost, path: "/requests/" + url.PathEscape(id) + "/reveal"}, &req)
}

// Answers returns requests that were closed after a cursor, in order and each once, and the cursor
// for the next call. It is for an agent that creates requests ([Client.CreateRequest]) and has no
// webhook. The cursor "" is the beginning, and a limit of 0 is the server's default. A page may be
// empty although there are more; there are no more yet if the cursor has not changed. Store the
// cursor only after processing the page.
func (c *Client) Answers(ctx context.Context, cursor string, limit int) (page api.AnswersPage, err error) {
	query := make(url.Values)
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return page, c.call(ctx, request{path: "/answers", query: query}, &page)
}

// Analytics reports on the requests of the last days. The zone is an IANA time zone for working
// hours, such as Europe/Zurich; "" is UTC. Callers who may not see other people's names get totals.
func (c *Client) Analytics(ctx context.Context, days int, zone string) (report analytics.Report, err error) {
	query := make(url.Values)
	if days > 0 {
		query.Set("days", strconv.Itoa(days))
	}
	if zone != "" {
		query.Set("zone", zone)
	}
	return report, c.call(ctx, request{path: "/analytics", query: query}, &report)
}

// ExplainPolicy explains what the server's policy decides for an action, without executing it. The
// result is the JSON of a policy.Decision, for programs that link that package.
func (c *Client) ExplainPolicy(ctx context.Context, action api.HypotheticalAction) (decision json.RawMessage, err error) {
	return decision, c.call(ctx, request{method: http.MethodPost, path: "/policies/explain", body: action}, &decision)
}

// PolicyText returns the text of a policy: the one in force, or one that decided an action of the
// account.
func (c *Client) PolicyText(ctx context.Context, digest string) (text api.PolicyText, err error) {
	return text, c.call(ctx, request{path: "/policies/" + url.PathEscape(digest)}, &text)
}

// Policy returns the policy in force. Without one, the digest is "".
func (c *Client) Policy(ctx context.Context) (rules api.Policy, err error) {
	return rules, c.call(ctx, request{path: "/policies"}, &rules)
}

// Routes returns the notification routes.
func (c *Client) Routes(ctx context.Context) (routes json.RawMessage, err error) {
	return routes, c.call(ctx, request{path: "/routes"}, &routes)
}

// ReplayPolicy evaluates past rulings with other rules, without executing anything. The result is
// the JSON of a replay.Past, for programs that link that package.
func (c *Client) ReplayPolicy(ctx context.Context, candidate api.ReplayPolicy) (past json.RawMessage, err error) {
	return past, c.call(ctx, request{method: http.MethodPost, path: "/policies/replay", body: candidate}, &past)
}

// CreateGrant creates a bounded grant from an approval of the caller. Calls with the same
// idempotency key create one grant.
func (c *Client) CreateGrant(ctx context.Context, id string, terms api.CreateGrant, key string) (grant api.Grant, err error) {
	r := request{
		method: http.MethodPost, path: "/requests/" + url.PathEscape(id) + "/grant", body: terms,
		headers: map[string]string{"Idempotency-Key": key},
	}
	return grant, c.call(ctx, r, &grant)
}

// Grants lists the grants.
func (c *Client) Grants(ctx context.Context) ([]api.Grant, error) {
	var list struct {
		Items []api.Grant `json:"items"`
	}
	err := c.call(ctx, request{path: "/grants"}, &list)
	return list.Items, err
}

// RevokeGrant revokes a grant. It may be repeated.
func (c *Client) RevokeGrant(ctx context.Context, grant string) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/grants/" + url.PathEscape(grant) + "/revoke"}, nil)
}
