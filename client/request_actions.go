package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/fermata-go/fermata/analytics"
	"github.com/fermata-go/fermata/api"
)

// The acts that [Client.Act] takes.
const (
	ActionView     = "view"
	ActionClaim    = "claim"
	ActionRelease  = "release"
	ActionComment  = "comment"
	ActionClarify  = "question"
	ActionReply    = "reply"
	ActionDelegate = "delegate"
	ActionSnooze   = "snooze"
	ActionExtend   = "extend"
	ActionEscalate = "escalate"
	ActionAbandon  = "escape"
)

// Act does something with a request that decides nothing, and returns what the request is then. However often it has to be sent, it counts once.
func (c *Client) Act(ctx context.Context, id, act string, body api.RequestAction) (asked api.Request, err error) {
	r := request{
		method: http.MethodPost, path: "/requests/" + url.PathEscape(id) + "/" + url.PathEscape(act), body: body,
		headers: map[string]string{"Idempotency-Key": NewID()},
	}
	return asked, c.call(ctx, r, &asked)
}

// Answers returns what was settled behind a cursor, in order and each once, and the cursor for the next call: for an agent that asks ([Client.CreateRequest]) and
// cannot be called. "" is the beginning, and a limit of 0 leaves that to the server. A page may be empty although there is more; there is no more yet if the
// cursor stays as it is. Keep it only when you have dealt with the page.
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

// Analytics says what came of the requests of so many days. The zone is where people work, as Europe/Zurich; "" is UTC. Who may not see others by name
// sees them counted.
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

// ExplainPolicy says what the rules of the server would say of an action, and why; nothing is done. It is the JSON of a policy.Decision, for whoever wants to
// link that package.
func (c *Client) ExplainPolicy(ctx context.Context, action api.HypotheticalAction) (decision json.RawMessage, err error) {
	return decision, c.call(ctx, request{method: http.MethodPost, path: "/policies/explain", body: action}, &decision)
}

// Policy returns the text of a policy: the one in force, or one by which an action of the account was judged.
func (c *Client) PolicyText(ctx context.Context, digest string) (text api.PolicyText, err error) {
	return text, c.call(ctx, request{path: "/policies/" + url.PathEscape(digest)}, &text)
}

// Rules returns the rules in force. Without any, the digest is "".
func (c *Client) Policy(ctx context.Context) (rules api.Policy, err error) {
	return rules, c.call(ctx, request{path: "/policies"}, &rules)
}

// ReplayPolicy says what other rules would have said of what was ruled; nothing is done. It is the JSON of a replay.HistoryReport, for whoever wants to link that
// package.
func (c *Client) ReplayPolicy(ctx context.Context, candidate api.ReplayPolicy) (past json.RawMessage, err error) {
	return past, c.call(ctx, request{method: http.MethodPost, path: "/policies/replay", body: candidate}, &past)
}

// Remember has an approval of the caller remembered within bounds. However often it has to be sent, one grant is made of it.
func (c *Client) CreateGrant(ctx context.Context, id string, terms api.CreateGrant) (made api.Grant, err error) {
	r := request{
		method: http.MethodPost, path: "/requests/" + url.PathEscape(id) + "/remember", body: terms,
		headers: map[string]string{"Idempotency-Key": NewID()},
	}
	return made, c.call(ctx, r, &made)
}

// Grants lists what is remembered.
func (c *Client) Grants(ctx context.Context) ([]api.Grant, error) {
	var list struct {
		Items []api.Grant `json:"items"`
	}
	err := c.call(ctx, request{path: "/grants"}, &list)
	return list.Items, err
}

// Revoke takes a grant back. It may be repeated.
func (c *Client) RevokeGrant(ctx context.Context, grant string) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/grants/" + url.PathEscape(grant) + "/revoke"}, nil)
}
