// Package client speaks to a Fermata server.
//
//	c, err := client.New("http://localhost:8080", token)
//	outcome, err := c.Start(ctx, "inproc:content-review", "demo-1", json.RawMessage(`{"topic":"tea"}`))
//
// Every call can be repeated: starts and decisions have ids, and count once. So the client repeats by itself what a server did not
// answer, or answered with 429, 502, 503 or 504, until the context ends or it has tried for long enough.
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

// ErrPending says that what was asked for is recorded and under way, and that nobody waited for the outcome.
var ErrPending = errors.New("client: under way")

// Client speaks to a server. It may be used by several goroutines.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
	tries int
}

// pingTimeout is how long a connection may be silent before it is asked whether it lives, and how long it has for its answer.
const pingTimeout = 15 * time.Second

// streamIdleTimeout is how long a stream of events may say nothing at all before another connection is made. A server says every 15 seconds that it is there
// (limits.heartbeat in its settings).
const streamIdleTimeout = time.Minute

// New makes a client of a server at a URL, for whoever the token belongs to.
func New(base, token string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("client: %q is no http or https URL", base)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// All calls share one connection over HTTP/2. If it goes dead without a word, as behind a firewall that forgets it, each of them would wait for its context.
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingTimeout, PingTimeout: pingTimeout}
	// A server sends nobody elsewhere. Whoever does stands in between, and a POST that follows it would arrive as a GET, if at all.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{base: u, token: token, http: &http.Client{Transport: transport, CheckRedirect: stay}, tries: 5}, nil
}

// Start starts a run, and returns how far it has come. The same start with the same state key counts once.
func (c *Client) Start(ctx context.Context, graphID, stateKey string, input json.RawMessage) (fermata.Outcome, error) {
	return c.Chat(ctx, api.Chat{GraphID: graphID, StateKey: stateKey, Input: input})
}

// Chat starts or answers a run. ErrPending says that it is under way.
func (c *Client) Chat(ctx context.Context, chat api.Chat) (fermata.Outcome, error) {
	return c.outcome(ctx, "/ai/chat", withStateKey(chat))
}

// Begin starts or answers a run, and does not wait for what becomes of it: [Client.Run] and [Client.Events] say that.
func (c *Client) ChatAsync(ctx context.Context, chat api.Chat) (pending api.Pending, err error) {
	r := request{method: http.MethodPost, path: "/ai/chat", body: withStateKey(chat), headers: map[string]string{"Prefer": "respond-async"}}
	return pending, c.call(ctx, r, &pending)
}

// withStateKey gives a start without a state key one: or, repeated, it would be a second run.
func withStateKey(chat api.Chat) api.Chat {
	if chat.ResumeID == "" && chat.StateKey == "" {
		chat.StateKey = "key_" + NewID()
	}
	return chat
}

// Decide decides on a request. A decision without a resume id gets one, so that repeating it here is safe.
func (c *Client) Decide(ctx context.Context, id string, decide api.Decide) (fermata.Outcome, error) {
	if decide.ResumeID == "" {
		decide.ResumeID = NewID()
	}
	return c.outcome(ctx, "/requests/"+url.PathEscape(id)+"/decision", decide)
}

// Ask asks for a decision. Without a state key it gets one.
func (c *Client) CreateRequest(ctx context.Context, ask api.CreateRequest) (fermata.Outcome, error) {
	if ask.StateKey == "" {
		ask.StateKey = "ask_" + NewID()
	}
	return c.outcome(ctx, "/requests", ask)
}

// NewID makes an id that nobody else has.
func NewID() string { return strings.ToLower(rand.Text()) }

func (c *Client) outcome(ctx context.Context, path string, body any) (fermata.Outcome, error) {
	var raw json.RawMessage
	if err := c.call(ctx, request{method: http.MethodPost, path: path, body: body}, &raw); err != nil {
		return nil, err
	}
	return readOutcome(raw)
}

// readOutcome reads an outcome; ErrPending if it is none yet.
func readOutcome(raw []byte) (fermata.Outcome, error) {
	var tag struct{ Status, StateKey string }
	if err := json.Unmarshal(raw, &tag); err != nil {
		return nil, fmt.Errorf("client: the server's answer: %w", err)
	}
	if tag.Status == api.StatusPending {
		return nil, fmt.Errorf("%w: %q", ErrPending, tag.StateKey)
	}
	return fermata.UnmarshalOutcome(raw)
}

// Query says which items of a list are wanted; see the server's API for what each list takes.
type Query struct {
	Status, State, Kind, GraphID, Cursor string
	Limit                                int
}

func (q Query) values() url.Values {
	v := make(url.Values)
	for name, value := range map[string]string{"status": q.Status, "state": q.State, "kind": q.Kind, "graphId": q.GraphID, "cursor": q.Cursor} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return v
}

// Runs returns a page of the runs of the account, the newest first.
func (c *Client) Runs(ctx context.Context, q Query) (page api.Page[api.Run], err error) {
	return page, c.call(ctx, request{path: "/runs", query: q.values()}, &page)
}

// RunView is a run with what it came to and what it asked.
type RunView struct {
	api.Run
	// Outcome is nil while it is under way.
	Outcome  fermata.Outcome
	Requests []api.Request
}

// Run returns a run.
func (c *Client) Run(ctx context.Context, stateKey string) (RunView, error) {
	var answer struct {
		api.Run
		Outcome  json.RawMessage
		Requests []api.Request
	}
	if err := c.call(ctx, request{path: "/runs/" + url.PathEscape(stateKey)}, &answer); err != nil {
		return RunView{}, err
	}
	view := RunView{Run: answer.Run, Requests: answer.Requests}
	var err error
	if answer.Outcome != nil {
		view.Outcome, err = fermata.UnmarshalOutcome(answer.Outcome)
	}
	return view, err
}

// Cancel ends a run.
func (c *Client) Cancel(ctx context.Context, stateKey string) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/runs/" + url.PathEscape(stateKey) + "/cancel"}, nil)
}

// Retry lets a parked run go on.
func (c *Client) Retry(ctx context.Context, stateKey string) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/runs/" + url.PathEscape(stateKey) + "/retry"}, nil)
}

// Requests returns a page of what people are asked, the oldest first.
func (c *Client) Requests(ctx context.Context, q Query) (page api.Page[api.Request], err error) {
	return page, c.call(ctx, request{path: "/requests", query: q.values()}, &page)
}

// Request returns one request.
func (c *Client) Request(ctx context.Context, id string) (asked api.Request, err error) {
	return asked, c.call(ctx, request{path: "/requests/" + url.PathEscape(id)}, &asked)
}

// Graphs lists what can be run.
func (c *Client) Graphs(ctx context.Context) (page api.Page[api.Graph], err error) {
	return page, c.call(ctx, request{path: "/graphs"}, &page)
}

// Graph returns something that can be run, with a drawing.
func (c *Client) Graph(ctx context.Context, graphID string) (graph api.Graph, err error) {
	return graph, c.call(ctx, request{path: "/graphs/" + url.PathEscape(graphID)}, &graph)
}

// GraphOf returns the graph of a run, with the nodes marked in its drawing at which the run waits.
func (c *Client) RunGraph(ctx context.Context, stateKey string) (graph api.Graph, err error) {
	return graph, c.call(ctx, request{path: "/runs/" + url.PathEscape(stateKey) + "/graph"}, &graph)
}

// Kinds lists what can be asked.
func (c *Client) Kinds(ctx context.Context) (page api.Page[api.Kind], err error) {
	return page, c.call(ctx, request{path: "/kinds"}, &page)
}

// Me says who the token belongs to.
func (c *Client) Me(ctx context.Context) (me api.Me, err error) {
	return me, c.call(ctx, request{path: "/me"}, &me)
}

// maxResponse is how much of an answer is read.
const maxResponse = 16 << 20

// request is what is sent; the method is GET if there is none.
type request struct {
	method, path string
	query        url.Values
	body         any
	headers      map[string]string
}

// call makes a request, again and again if need be. An error of the server is an [*api.Problem].
func (c *Client) call(ctx context.Context, r request, answer any) error {
	for try := 1; ; try++ {
		again, err := c.attempt(ctx, r, answer)
		if err == nil || again < 0 || try == c.tries || ctx.Err() != nil {
			return err
		}
		if pauseErr := pause(ctx, max(again, time.Duration(1<<try)*50*time.Millisecond)); pauseErr != nil {
			return errors.Join(err, pauseErr)
		}
	}
}

// pause waits for a while, and somewhat longer, so that not all who wait come back at once.
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

// noRetry is in the place of a pause after which to try again.
const noRetry = -1

func (c *Client) attempt(ctx context.Context, r request, answer any) (again time.Duration, err error) {
	response, err := c.send(ctx, r)
	if err != nil {
		return retryAfterSendError(err), err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil { // as net/http says it of a connection that broke before
		return 0, &url.Error{Op: "read the answer of", URL: response.Request.URL.Redacted(), Err: err}
	}
	switch {
	case response.StatusCode >= http.StatusMultipleChoices:
		return responseError(response, data)
	case answer == nil && response.StatusCode == http.StatusNoContent:
		return noRetry, nil
	case answer == nil: // a page in the place of the answer must not be taken for the word that it was done
		return noRetry, unexpectedResponse(response)
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return noRetry, fmt.Errorf("client: the server's answer: %w", err)
	}
	return noRetry, nil
}

// ErrInvalidID says that a run, a request or whatever else a call is about was named with an empty text, or with dots that mean another place. Nothing was sent.
var ErrInvalidID = errors.New("client: the id of what this is about is . or .., or empty")

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
			return nil, fmt.Errorf("client: what was to be sent is no JSON: %w", err)
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
	h.Header.Set("Authorization", "Bearer "+c.token)
	for name, value := range r.headers {
		h.Header.Set(name, value)
	}
	return c.http.Do(h)
}

// retryAfterSendError is after which time to try again what could not be sent: never, if it is no JSON, or about nothing.
func retryAfterSendError(err error) time.Duration {
	if _, ours := errors.AsType[*json.MarshalerError](err); ours || errors.Is(err, roundtrip.ErrNotUTF8) || errors.Is(err, ErrInvalidID) {
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

// responseError is what a server says in the place of an answer, and after which time it makes sense to ask again.
func responseError(response *http.Response, data []byte) (again time.Duration, err error) {
	problem := new(api.Problem)
	if json.Unmarshal(data, problem) != nil || problem.Code == "" { // somebody in between
		problem = &api.Problem{Status: response.StatusCode, Code: "http", Detail: response.Status}
	}
	if isRetryable(response.StatusCode) {
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return time.Duration(min(max(0, seconds), 60)) * time.Second, problem
	}
	return noRetry, problem
}

// unexpectedResponse says that what came is not what a Fermata server answers, although it looks like success.
func unexpectedResponse(response *http.Response) error {
	return &api.Problem{Status: response.StatusCode, Code: "http", Detail: "this is no answer of a Fermata server: " + response.Status}
}

// isRetryable reports whether what was answered with a status may work later.
func isRetryable(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		return true
	}
	return false
}
