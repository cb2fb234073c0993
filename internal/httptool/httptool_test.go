package httptool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/httptool"
	"github.com/fermata-go/fermata/internal/outbound"
	"github.com/fermata-go/fermata/store/memory"
	"github.com/fermata-go/fermata/tool"
)

const parameters = `{"type":"object","required":["order"],"properties":{"order":{"type":"string"},"lang":{"type":"string"},"euros":{"type":"number"},"tags":{"type":"array"}},"additionalProperties":false}`

const secret = `Bearer s3"c/r<t`

// newTool returns a tool that reads from a server at this machine.
func newTool(t *testing.T, server *httptest.Server, change func(*httptool.Config)) *tool.Tool {
	t.Helper()
	client, err := outbound.NewClient(outbound.Config{Allow: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	c := httptool.Config{
		Name: "get_order", Description: "Returns an order.", Parameters: json.RawMessage(parameters), Method: http.MethodGet, URL: server.URL + "/orders/{order}?v=2",
		Header: http.Header{"Authorization": {secret}}, Secrets: []string{secret, ""}, Timeout: time.Second, MaxResponse: 40, Client: client,
	}
	if change != nil {
		change(&c)
	}
	made, err := httptool.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// echo answers with the request.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // the answer shows what is missing
	fmt.Fprintf(w, "%s %s %q %s", r.Method, r.RequestURI, body, r.Header.Get("Content-Type"))
}

func TestCall_SendsArgumentsInURLQueryAndBody(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	const args = `{"order":"A 1","lang":"d&e","euros":1.50,"tags":["a"]}`
	for method, want := range map[string]string{
		http.MethodGet:  `GET /orders/A%201?euros=1.50&lang=d%26e&tags=%5B%22a%22%5D&v=2 "" `,
		http.MethodPost: `POST /orders/A%201?v=2 "{\"euros\":1.50,\"lang\":\"d\\u0026e\",\"tags\":[\"a\"]}" application/json`,
	} {
		made := newTool(t, server, func(c *httptool.Config) { c.Method, c.MaxResponse = method, 1000 })
		got, err := made.Call(t.Context(), json.RawMessage(args))
		if err != nil || got.Failed || got.Text != want {
			t.Errorf("%s: %+v, %v, want %s", method, got, err, want)
		}
	}
}

// A failure of a tool that reads is for the model. Secrets and texts of the network are not.
func TestCall_FailuresOfReadsAreForTheModel(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch strings.TrimPrefix(r.URL.Path, "/orders/") {
		case "missing":
			http.Error(w, "no such order", http.StatusNotFound)
		case "leak":
			fmt.Fprint(w, "you sent ", r.Header.Get("Authorization"))
		case "token":
			fmt.Fprint(w, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), " is expired")
		case "json":
			fmt.Fprint(w, `{"a":"Bearer s3\"c\/r<t"}`)
		case "html":
			fmt.Fprint(w, `{"b":"s3\"c/r\u003ct"}`)
		case "cut":
			fmt.Fprint(w, strings.Repeat("-", 35), r.Header.Get("Authorization"))
		case "cut-token":
			fmt.Fprint(w, strings.Repeat("-", 35), `s3\"c/r<t`)
		case "long":
			fmt.Fprint(w, strings.Repeat("0123456789", 5))
		case "empty":
			w.WriteHeader(http.StatusNoContent)
		case "moved":
			http.Redirect(w, r, "/orders/leak", http.StatusFound)
		case "slow":
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	for order, want := range map[string]tool.Result{
		"missing":   {Text: "get_order failed with status 404: no such order\n", Failed: true},
		"leak":      {Text: "you sent (secret)"},
		"token":     {Text: "(secret) is expired"},
		"json":      {Text: `{"a":"(secret)"}`},
		"html":      {Text: `{"b":"(secret)"}`},
		"cut":       {Text: strings.Repeat("-", 35) + "\n(The response is longer than 40 bytes; the rest is missing.)"},
		"cut-token": {Text: strings.Repeat("-", 35) + "\n(The response is longer than 40 bytes; the rest is missing.)"},
		"long":      {Text: "0123456789012345678901234567890123456789\n(The response is longer than 40 bytes; the rest is missing.)"},
		"empty":     {Text: "(The response is empty, with status 204.)"},
		"slow":      {Text: "get_order failed: 127.0.0.1 was not reached: it timed out.", Failed: true},
		"..":        {Text: `get_order was not called: a segment of the path would be "." or "..".`, Failed: true},
		"../a":      {Text: "get_order was not called: an argument in the path contains a slash, a backslash or a control character.", Failed: true},
	} {
		made := newTool(t, server, func(c *httptool.Config) { c.Timeout = 200 * time.Millisecond })
		if got, err := made.Call(t.Context(), json.RawMessage(`{"order":"`+order+`"}`)); err != nil || got != want {
			t.Errorf("%s: %+v, %v", order, got, err)
		}
	}
	made := newTool(t, server, nil)
	if got, err := made.Call(t.Context(), json.RawMessage(`{"order":"moved"}`)); err != nil || !got.Failed || !strings.HasPrefix(got.Text, "get_order failed with status 302") || strings.Contains(got.Text, "you sent") {
		t.Errorf("a redirect: %+v, %v", got, err)
	}
	if got, err := made.Call(t.Context(), json.RawMessage(`{"order":"a","other":1}`)); err != nil || !got.Failed || !strings.Contains(got.Text, "arguments are invalid") {
		t.Errorf("an unknown argument: %+v, %v", got, err)
	}
}

// An argument cannot replace a part of the query that the configuration has.
func TestCall_RefusesArgumentsThatCollideWithTheQuery(t *testing.T) {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	defer server.Close()
	for query, args := range map[string]string{"?lang=de&v=2": `{"order":"a","lang":"en"}`, "?Lang": `{"order":"a","lang":"en"}`, "?lang={order}": `{"order":"a","lang":"en"}`} {
		made := newTool(t, server, func(c *httptool.Config) { c.URL = server.URL + "/orders/{order}" + query })
		got, err := made.Call(t.Context(), json.RawMessage(args))
		if want := "get_order was not called: the query of its URL has lang already."; err != nil || !got.Failed || got.Text != want || calls > 0 {
			t.Errorf("%s: %+v, %v after %d calls, want %s", query, got, err, calls, want)
		}
	}
}

// A host that is not public is not called, whatever its name resolves to.
func TestCall_RefusesAddressesThatAreNotPublic(t *testing.T) {
	called := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer server.Close()
	made := newTool(t, server, func(c *httptool.Config) {
		c.Client, _ = outbound.NewClient(outbound.Config{})
	})
	if got, err := made.Call(t.Context(), json.RawMessage(`{"order":"a"}`)); err != nil || !got.Failed || called || !strings.Contains(got.Text, "only https is allowed") {
		t.Errorf("%+v, %v, called %v", got, err, called)
	}
}

// A tool that writes is not called outside of a run, where nothing can approve it.
func TestI4_WriteNeedsAnApproval(t *testing.T) {
	called := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer server.Close()
	made := newTool(t, server, func(c *httptool.Config) { c.Method, c.Write = http.MethodPost, true })
	if _, err := made.Call(t.Context(), json.RawMessage(`{"order":"a"}`)); !errors.Is(err, fermata.ErrNoRun) || called {
		t.Errorf("%v, called %v", err, called)
	}
}

// The approver sees what the preview says, and sees it again if it has changed before the call.
func TestPreview_IsShownAndReadAgain(t *testing.T) {
	items, calls := 3, 0
	const uri = "/orders/a/preview?full=1"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.RequestURI {
		case "GET " + uri:
			fmt.Fprintf(w, `{"items":%d}`, items)
		case "POST /orders/a":
			calls++
		default:
			t.Errorf("%s %s", r.Method, r.URL)
		}
	}))
	defer server.Close()
	made := newTool(t, server, func(c *httptool.Config) {
		c.Method, c.Write, c.Preview = http.MethodPost, true, server.URL+"/orders/{order}/preview?full=1"
		c.URL = server.URL + "/orders/{order}"
	})
	flow := flowOf(t, made, `{"order":"a","lang":"de","euros":3}`)
	kept := graph.WithStore(memory.New())
	_, err := flow.Run(t.Context(), "", kept, graph.WithRun("r"))
	for _, want := range []string{`{"items":3}`, `{"items":1}`} {
		info, waits := fermata.ExtractInterruptInfo(err)
		if !waits || calls > 0 {
			t.Fatalf("%v after %d calls", err, calls)
		}
		asked, bad := fermata.InfoAs[fermata.ApprovalRequest](info.Interrupts[0])
		if bad != nil || string(asked.Target) != want {
			t.Errorf("the approver sees %s, want %s (%v)", asked.Target, want, bad)
		}
		items = 1
		_, err = flow.Resume(t.Context(), "r", kept, graph.Answer(info.Interrupts[0].ID, fermata.Decision{Verb: fermata.VerbApprove}))
	}
	if err != nil || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// A redirect of a write says nothing about what has happened: many services answer so after they
// have done it.
func TestWrite_RedirectIsInDoubt(t *testing.T) {
	for _, status := range []int{300, 301, 302, 303, 304, 307, 308} {
		calls := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls++
			w.Header().Set("Location", "/done")
			w.WriteHeader(status)
		}))
		made := newTool(t, server, func(c *httptool.Config) { c.Method, c.Write = http.MethodPost, true })
		flow, kept := flowOf(t, made, `{"order":"a"}`), graph.WithStore(memory.New())
		_, err := flow.Run(t.Context(), "", kept, graph.WithRun("r"))
		info, _ := fermata.ExtractInterruptInfo(err)
		if info == nil {
			t.Fatal(err)
		}
		_, err = flow.Resume(t.Context(), "r", kept, graph.Answer(info.Interrupts[0].ID, fermata.Decision{Verb: fermata.VerbApprove}))
		info, _ = fermata.ExtractInterruptInfo(err)
		if info == nil || info.Interrupts[0].Kind != fermata.EffectInDoubt.Name() || calls != 1 {
			t.Errorf("%d: %v after %d calls", status, err, calls)
		}
		server.Close()
	}
}

// flowOf returns a flow that makes one call.
func flowOf(t *testing.T, made *tool.Tool, args string) *graph.Flow[string] {
	t.Helper()
	g := graph.New[string]("g")
	g.Node("n", func(ctx context.Context, s string) (string, error) {
		got, err := made.Call(ctx, json.RawMessage(args))
		return got.Text, err
	})
	g.Edge(graph.Start, "n")
	g.Edge("n", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return flow
}
