// Package client is a client of the Fermata HTTP API.
//
//	c, err := client.New("http://localhost:8080", token)
//	outcome, err := c.Start(ctx, "inproc:content-review", "demo-1", json.RawMessage(`{"topic":"tea"}`))
//
// All calls are idempotent: starts and decisions have ids and are applied once. So the client
// retries calls without a response, or with status 429, 502, 503 or 504, until the context ends or
// the attempts are used up.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mrand "math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/roundtrip"
)

// ErrPending is returned if a start or resume is recorded, but its outcome is not known yet.
var ErrPending = errors.New("client: pending")

// PendingError is ErrPending with the details. If it has EffectiveAt, a decision is recorded and
// takes effect then; [ActionUndo] withdraws it until then.
type PendingError struct{ api.Pending }

func (e *PendingError) Error() string { return fmt.Sprintf("%v: %q", ErrPending, e.StateKey) }

// Is reports whether target is ErrPending.
func (e *PendingError) Is(target error) bool { return target == ErrPending }

// Client is a client of one server. It is safe for concurrent use.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
	tries int
	// endUser is the person that conversations are for; "" for the caller.
	endUser string
}

// pingTimeout is how long a connection may be silent before it is pinged, and how long the ping may
// take.
const pingTimeout = 15 * time.Second

// streamIdleTimeout is how long an event stream may be silent before the client reconnects. A
// server sends a heartbeat every 15 seconds (limits.heartbeat in its configuration).
const streamIdleTimeout = time.Minute

// New returns a client of the server at a URL that authenticates with token.
func New(base, token string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("client: %q is not an http or https URL", base)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// All calls share one HTTP/2 connection. If it dies silently, for example behind a firewall,
	// each call would otherwise wait for its context.
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingTimeout, PingTimeout: pingTimeout}
	return &Client{base: u, token: token, http: &http.Client{Transport: transport, CheckRedirect: stay}, tries: 5}, nil
}

// NewWithTransport returns a client that sends its requests with a transport, which also
// authenticates them. It does not retry.
func NewWithTransport(base *url.URL, transport http.RoundTripper) *Client {
	return &Client{base: base, http: &http.Client{Transport: transport, CheckRedirect: stay}, tries: 1}
}

// stay does not follow redirects. A server never redirects. A redirect comes from an intermediary,
// and a POST that follows it would arrive as a GET, if at all.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Start starts a run and returns its outcome. The same start with the same state key is applied
// once.
func (c *Client) Start(ctx context.Context, graphID, stateKey string, input json.RawMessage) (fermata.Outcome, error) {
	return c.Chat(ctx, api.Chat{GraphID: graphID, StateKey: stateKey, Input: input})
}

// Chat starts or answers a run. It returns ErrPending if the outcome is not known yet.
func (c *Client) Chat(ctx context.Context, chat api.Chat) (fermata.Outcome, error) {
	return c.outcome(ctx, "/ai/chat", withStateKey(chat))
}

// ChatAsync starts or answers a run without waiting for the outcome; use [Client.Run] or
// [Client.Events] for it.
func (c *Client) ChatAsync(ctx context.Context, chat api.Chat) (pending api.Pending, err error) {
	r := request{method: http.MethodPost, path: "/ai/chat", body: withStateKey(chat), headers: map[string]string{"Prefer": "respond-async"}}
	return pending, c.call(ctx, r, &pending)
}

// withStateKey gives a start a state key if it has none, so that a retry does not start a second
// run.
func withStateKey(chat api.Chat) api.Chat {
	if chat.ResumeID == "" && chat.StateKey == "" {
		chat.StateKey = "key_" + NewID()
	}
	return chat
}

// Decide decides a request. A decision without a resume id gets one, so that retries are safe.
func (c *Client) Decide(ctx context.Context, id string, decide api.Decide) (fermata.Outcome, error) {
	if decide.ResumeID == "" {
		decide.ResumeID = NewID()
	}
	return c.outcome(ctx, "/requests/"+url.PathEscape(id)+"/decision", decide)
}

// DecideWithin is Decide with a limit for the time to wait for the outcome, in whole seconds. It
// returns ErrPending if the decision is recorded and the outcome is not known by then.
func (c *Client) DecideWithin(ctx context.Context, id string, decide api.Decide, wait time.Duration) (fermata.Outcome, error) {
	var raw json.RawMessage
	r := request{
		method: http.MethodPost, path: "/requests/" + url.PathEscape(id) + "/decision", body: decide,
		headers: map[string]string{"Prefer": fmt.Sprintf("wait=%d", int(wait.Seconds()))},
	}
	if err := c.call(ctx, r, &raw); err != nil {
		return nil, err
	}
	return readOutcome(raw)
}

// CreateRequest creates a request of an external agent. Without a state key, it returns the open
// request of the agent with the same kind and data, if there is one. With AllowDuplicate the
// request gets a state key, so that a repeated call does not create another one.
func (c *Client) CreateRequest(ctx context.Context, ask api.CreateRequest) (fermata.Outcome, error) {
	if ask.StateKey == "" && ask.AllowDuplicate {
		ask.StateKey = "ask_" + NewID()
	}
	return c.outcome(ctx, "/requests", ask)
}

// NewID returns a unique id.
func NewID() string { return strings.ToLower(rand.Text()) }

func (c *Client) outcome(ctx context.Context, path string, body any) (fermata.Outcome, error) {
	var raw json.RawMessage
	if err := c.call(ctx, request{method: http.MethodPost, path: path, body: body}, &raw); err != nil {
		return nil, err
	}
	return readOutcome(raw)
}

// readOutcome decodes an outcome. It returns ErrPending for a pending one.
func readOutcome(raw []byte) (fermata.Outcome, error) {
	var tag struct {
		Status string
		api.Pending
	}
	if err := json.Unmarshal(raw, &tag); err != nil {
		return nil, fmt.Errorf("client: decode response: %w", err)
	}
	if tag.Status == api.StatusPending {
		return nil, &PendingError{tag.Pending}
	}
	return fermata.UnmarshalOutcome(raw)
}

// Query filters a list; see the API for the parameters of each list.
type Query struct {
	Status, State, Kind, GraphID, Cursor string
	// Search and Order are for requests. Order is oldest or newest.
	Search, Order string
	Limit         int
}

func (q Query) values() url.Values {
	v := make(url.Values)
	for name, value := range map[string]string{"status": q.Status, "state": q.State, "kind": q.Kind, "graphId": q.GraphID, "cursor": q.Cursor, "q": q.Search, "order": q.Order} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return v
}

// Runs returns a page of the account's runs, newest first.
func (c *Client) Runs(ctx context.Context, q Query) (page api.Page[api.Run], err error) {
	return page, c.call(ctx, request{path: "/runs", query: q.values()}, &page)
}

// RunView is a run with its outcome and its requests.
type RunView struct {
	api.Run
	// Outcome is nil while the run is active.
	Outcome  fermata.Outcome
	Requests []api.Request
	// Problem is why the run failed, is parked or is tried again; nil if there is none.
	Problem *api.RunProblem
	// Receipt says what an external agent did; nil if it sent none.
	Receipt *api.Receipt
}

// Run returns a run.
func (c *Client) Run(ctx context.Context, stateKey string) (RunView, error) {
	var answer struct {
		api.Run
		Outcome  json.RawMessage
		Requests []api.Request
		Problem  *api.RunProblem
		Receipt  *api.Receipt
	}
	if err := c.call(ctx, request{path: "/runs/" + url.PathEscape(stateKey)}, &answer); err != nil {
		return RunView{}, err
	}
	view := RunView{Run: answer.Run, Requests: answer.Requests, Problem: answer.Problem, Receipt: answer.Receipt}
	var err error
	if answer.Outcome != nil {
		view.Outcome, err = fermata.UnmarshalOutcome(answer.Outcome)
	}
	return view, err
}

// Cancel cancels a run.
func (c *Client) Cancel(ctx context.Context, stateKey string) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/runs/" + url.PathEscape(stateKey) + "/cancel"}, nil)
}

// Retry continues a parked or failed run from its last step.
func (c *Client) Retry(ctx context.Context, stateKey string) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/runs/" + url.PathEscape(stateKey) + "/retry"}, nil)
}

// SendReceipt says what an external agent did after the decision on its approval. The same receipt
// can be sent again.
func (c *Client) SendReceipt(ctx context.Context, stateKey string, receipt api.SendReceipt) (kept api.Receipt, err error) {
	return kept, c.call(ctx, request{method: http.MethodPost, path: "/runs/" + url.PathEscape(stateKey) + "/receipt", body: receipt}, &kept)
}

// Requests returns a page of requests.
func (c *Client) Requests(ctx context.Context, q Query) (page api.Page[api.Request], err error) {
	return page, c.call(ctx, request{path: "/requests", query: q.values()}, &page)
}

// RequestCounts returns the numbers of requests in the lists of the inbox.
func (c *Client) RequestCounts(ctx context.Context) (counts api.RequestCounts, err error) {
	return counts, c.call(ctx, request{path: "/requests/counts"}, &counts)
}

// Request returns one request.
func (c *Client) Request(ctx context.Context, id string) (req api.Request, err error) {
	return req, c.call(ctx, request{path: "/requests/" + url.PathEscape(id)}, &req)
}

// Graphs lists the graphs and agents that can be run.
func (c *Client) Graphs(ctx context.Context) (page api.Page[api.Graph], err error) {
	return page, c.call(ctx, request{path: "/graphs"}, &page)
}

// Graph returns a graph with its drawing.
func (c *Client) Graph(ctx context.Context, graphID string) (graph api.Graph, err error) {
	return graph, c.call(ctx, request{path: "/graphs/" + url.PathEscape(graphID)}, &graph)
}

// RunGraph returns the graph of a run; its drawing marks the waiting nodes.
func (c *Client) RunGraph(ctx context.Context, stateKey string) (graph api.Graph, err error) {
	return graph, c.call(ctx, request{path: "/runs/" + url.PathEscape(stateKey) + "/graph"}, &graph)
}

// Kinds lists the interrupt kinds.
func (c *Client) Kinds(ctx context.Context) (page api.Page[api.Kind], err error) {
	return page, c.call(ctx, request{path: "/kinds"}, &page)
}

// Me returns the principal of the token.
func (c *Client) Me(ctx context.Context) (me api.Me, err error) {
	return me, c.call(ctx, request{path: "/me"}, &me)
}

// maxResponse is the maximum response size in bytes.
const maxResponse = 16 << 20

// request is a request to send; the method defaults to GET.
type request struct {
	method, path string
	query        url.Values
	body         any
	headers      map[string]string
}

// call sends a request, with retries. An error of the server is an [*api.Problem].
func (c *Client) call(ctx context.Context, r request, answer any) error {
	for try := 1; ; try++ {
		retryAfter, err := c.attempt(ctx, r, answer)
		if err == nil || retryAfter < 0 || try == c.tries || ctx.Err() != nil {
			return err
		}
		if pauseErr := pause(ctx, max(retryAfter, time.Duration(1<<try)*50*time.Millisecond)); pauseErr != nil {
			return errors.Join(err, pauseErr)
		}
	}
}

// pause sleeps for d plus some jitter, so that not all clients return at once.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d + mrand.N(d/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// noRetry is returned instead of a retry delay.
const noRetry = -1

func (c *Client) attempt(ctx context.Context, r request, answer any) (retryAfter time.Duration, err error) {
	response, err := c.send(ctx, r)
	if err != nil {
		return retryAfterSendError(err), err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil { // the same text as net/http has for a connection that broke earlier
		return 0, &url.Error{Op: "read the response of", URL: response.Request.URL.Redacted(), Err: err}
	}
	switch {
	case response.StatusCode >= http.StatusMultipleChoices:
		return responseError(response, data)
	case answer == nil && response.StatusCode == http.StatusNoContent:
		return noRetry, nil
	case answer == nil: // an intermediary's page must not be mistaken for success
		return noRetry, unexpectedResponse(response)
	}
	if raw, ok := answer.(*[]byte); ok {
		*raw = data
		return noRetry, nil
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return noRetry, fmt.Errorf("client: decode response: %w", err)
	}
	return noRetry, nil
}

// ErrInvalidID is returned if an id is empty, "." or "..". Nothing was sent.
var ErrInvalidID = errors.New(`client: invalid id: it is empty, "." or ".."`)

func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	for name := range strings.SplitSeq(r.path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return nil, ErrInvalidID
		}
	}
	u := c.base.JoinPath(api.Prefix)
	u.RawPath, u.Path = u.EscapedPath()+r.path, u.Path+unescaped(r.path)
	u.RawQuery = r.query.Encode()
	var body io.Reader
	if r.body != nil {
		data, err := roundtrip.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errEncode, err)
		}
		body = bytes.NewReader(data)
	}
	h, err := http.NewRequestWithContext(ctx, cmp.Or(r.method, http.MethodGet), u.String(), body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		h.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		h.Header.Set("Authorization", "Bearer "+c.token)
	}
	for name, value := range r.headers {
		h.Header.Set(name, value)
	}
	return c.http.Do(h)
}

// errEncode is returned for a request that JSON cannot represent.
var errEncode = errors.New("client: encode request")

// retryAfterSendError returns when to retry after a send error: never, if the request cannot be
// encoded or has an invalid id.
func retryAfterSendError(err error) time.Duration {
	if errors.Is(err, errEncode) || errors.Is(err, ErrInvalidID) {
		return noRetry
	}
	return 0
}

func unescaped(path string) string {
	plain, err := url.PathUnescape(path)
	if err != nil { // it was escaped here
		return path
	}
	return plain
}

// responseError converts an error response, and returns when to retry.
func responseError(response *http.Response, data []byte) (retryAfter time.Duration, err error) {
	problem := new(api.Problem)
	if json.Unmarshal(data, problem) != nil || problem.Code == "" { // from an intermediary
		problem = &api.Problem{Status: response.StatusCode, Code: "http", Detail: response.Status}
	}
	if isRetryable(response.StatusCode) && problem.Code != "agent_limit" { // which takes too long
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return time.Duration(min(max(0, seconds), 60)) * time.Second, problem
	}
	return noRetry, problem
}

// unexpectedResponse reports a success response that is not from a Fermata server.
func unexpectedResponse(response *http.Response) error {
	return &api.Problem{Status: response.StatusCode, Code: "http", Detail: "not a response of a Fermata server: " + response.Status}
}

// isRetryable reports whether a request with this response status may succeed later.
func isRetryable(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		return true
	}
	return false
}
