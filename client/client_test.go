package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/drawing"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

type memo struct {
	Text string `json:"text"`
}

var sign = fermata.NewKind[string, string]("sign-of-client-test")

// serve runs a real server behind a wrapping handler.
func serve(t *testing.T, front func(http.Handler) http.Handler) *client.Client {
	t.Helper()
	url, key, stop, err := startServer(t.Context(), front)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	c, err := client.New(url, key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// startServer starts a server with one graph, inproc:memo, in which a person signs a memo. stop
// must be called.
func startServer(ctx context.Context, front func(http.Handler) http.Handler) (url, key string, stop func() error, err error) {
	g := graph.New[memo]("memo")
	g.Node("sign", func(ctx context.Context, m memo) (memo, error) {
		name, err := sign.Ask(ctx, m.Text)
		m.Text += name
		return m, err
	})
	g.Edge(graph.Start, "sign")
	g.Edge("sign", graph.End)
	flow, err := g.Compile()
	if err != nil {
		return "", "", nil, err
	}
	p, err := inproc.New(inproc.Flow(flow, inproc.FlowConfig[memo]{}))
	if err != nil {
		return "", "", nil, err
	}
	b, err := seal.New(seal.Key{1})
	if err != nil {
		return "", "", nil, err
	}
	st := memory.NewStore(nil)
	e, err := executor.New(executor.Config{Store: st, Sealer: b, Providers: []provider.Provider{p}, Wait: time.Minute})
	if err != nil {
		return "", "", nil, err
	}
	s, err := server.New(server.Config{Executor: e, Auth: authn.Keys(st)})
	if err != nil {
		return "", "", nil, err
	}
	key, kept, err := authn.NewKey("acme", "ann", authn.RoleAdmin, time.Time{})
	if err == nil {
		err = st.AddCredential(ctx, kept, store.Writes{})
	}
	if err != nil {
		return "", "", nil, err
	}
	h := httptest.NewServer(front(s))
	return h.URL, key, func() error {
		h.Close()
		return e.Stop(context.Background())
	}, nil
}

func plain(h http.Handler) http.Handler { return h }

// A run is reachable with any state key.
func TestClient_StartDecideComplete(t *testing.T) {
	for _, key := range []string{"memo/1 ä?", "...", "a/../b", "a//b", "%2F"} {
		t.Run(key, func(t *testing.T) { startDecideComplete(t, key) })
	}
}

func startDecideComplete(t *testing.T, key string) {
	c := serve(t, plain)
	outcome, err := c.Start(t.Context(), "inproc:memo", key, json.RawMessage(`{"text":"by "}`))
	waiting, ok := outcome.(fermata.NeedsInput)
	if err != nil || !ok || waiting.StateKey != key {
		t.Fatalf("%#v, %v", outcome, err)
	}
	page, err := c.Requests(t.Context(), client.Query{State: "pending"})
	if err != nil || len(page.Items) != 1 || page.Items[0].StateKey != key {
		t.Fatalf("%+v, %v", page, err)
	}
	r := page.Items[0]
	outcome, err = c.Decide(t.Context(), r.ID, api.Decide{Answer: json.RawMessage(`"ann"`), Shown: r.Shown})
	if done, ok := outcome.(fermata.Completed); err != nil || !ok || string(done.Output) != `{"text":"by ann"}` {
		t.Fatalf("%#v, %v", outcome, err)
	}
	view, err := c.Run(t.Context(), key)
	if err != nil || view.Status != "completed" || len(view.Requests) != 1 || view.Requests[0].Decision.By != "ann" {
		t.Errorf("%+v, %v", view, err)
	}
	runs, err := c.Runs(t.Context(), client.Query{Status: "completed"})
	if err != nil || len(runs.Items) != 1 {
		t.Errorf("%+v, %v", runs, err)
	}
	if graphs, err := c.Graphs(t.Context()); err != nil || graphs.Items[0].ID != "inproc:memo" {
		t.Errorf("%+v, %v", graphs, err)
	}
	for what, g := range map[string]func() (api.Graph, error){
		"a graph": func() (api.Graph, error) { return c.Graph(t.Context(), "inproc:memo") },
		"a run's": func() (api.Graph, error) { return c.RunGraph(t.Context(), key) },
	} {
		if got, err := g(); err != nil || got.ID != "inproc:memo" || got.Drawing == nil || got.Drawing.Nodes[0].Kind != drawing.KindStart {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	_, err = c.Decide(t.Context(), r.ID, api.Decide{Answer: json.RawMessage(`"bob"`)})
	if problem, ok := errors.AsType[*api.Problem](err); !ok || problem.Code != "already_decided" || !strings.Contains(err.Error(), "by ann") {
		t.Errorf("too late: %v", err)
	}
	if err := c.Cancel(t.Context(), key); err == nil {
		t.Error("it was cancelled after its end")
	}
}

// A restarting server, or a proxy, loses responses. The client retries, and every call is applied
// once.
func TestClient_RetriesUnansweredRequests(t *testing.T) {
	var calls atomic.Int64
	c := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch calls.Add(1) % 3 {
			case 1: // it is done, but the response is lost
				h.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			case 2:
				w.WriteHeader(http.StatusServiceUnavailable)
			default:
				h.ServeHTTP(w, r)
			}
		})
	})
	if _, err := c.Chat(t.Context(), api.Chat{GraphID: "inproc:memo", Input: json.RawMessage(`{"text":"by "}`)}); err != nil {
		t.Fatal(err)
	}
	page, err := c.Requests(t.Context(), client.Query{State: "all"})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	if _, err := c.Decide(t.Context(), page.Items[0].ID, api.Decide{Answer: json.RawMessage(`"ann"`)}); err != nil {
		t.Error(err)
	}
}

func TestClient_EventsSurviveLostConnections(t *testing.T) {
	var streams atomic.Int64
	c := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/events") && streams.Add(1) == 1 {
				h.ServeHTTP(&cutAfter{ResponseWriter: w, messages: 2}, r)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	if _, err := c.Start(t.Context(), "inproc:memo", "memo-1", json.RawMessage(`{"text":"by "}`)); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for event, err := range c.Events(t.Context(), "memo-1", "") {
		if err != nil {
			t.Fatal(err)
		}
		if event.Step == nil {
			kinds = append(kinds, event.Type)
		}
		if event.Type == "waiting" {
			if _, err := c.Chat(t.Context(), api.Chat{StateKey: "memo-1", ResumeID: "1", ResumeValue: json.RawMessage(`"ann"`)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := strings.ReplaceAll(strings.Join(kinds, " "), "outcome ", "")
	if got != "created asked waiting decided completed outcome" || streams.Load() < 2 {
		t.Errorf("it saw %s on %d connections", kinds, streams.Load())
	}
	for _, err := range c.Events(t.Context(), "unknown", "") {
		if problem, ok := errors.AsType[*api.Problem](err); !ok || problem.Code != "not_found" {
			t.Errorf("an unknown run: %v", err)
		}
	}
}

// Events seen of an earlier run with the same state key do not hide events of the new one.
func TestClient_EventsAfterEventOfPreviousRun(t *testing.T) {
	c := serve(t, plain)
	first := func(after string) (event client.Event) {
		for event, err := range c.Events(t.Context(), "memo-1", after) {
			if err != nil {
				t.Fatal(err)
			}
			return event
		}
		return event
	}
	if _, err := c.Start(t.Context(), "inproc:memo", "memo-1", json.RawMessage(`{"text":"by "}`)); err != nil {
		t.Fatal(err)
	}
	before := first("")
	if _, err := c.Chat(t.Context(), api.Chat{GraphID: "inproc:memo", StateKey: "memo-1", Input: json.RawMessage(`{"text":"for "}`), Supersede: true}); err != nil {
		t.Fatal(err)
	}
	if created := first(before.ID); created.Type != "created" || created.ID == before.ID {
		t.Errorf("behind %+v comes %+v", before, created)
	}
	if asked := first(first(before.ID).ID); asked.Type != "asked" {
		t.Errorf("and then %+v", asked)
	}
}

// A server that is full or shutting down returns a problem instead of a stream, or within one. The
// client repeats the request after the Retry-After delay.
func TestClient_RejectedStreamIsRetried(t *testing.T) {
	const unavailable = `{"status":503,"code":"unavailable","title":"Unknown or not done"}`
	for name, refuse := range map[string]func(w http.ResponseWriter){
		"instead of it": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, unavailable)
		},
		"in it": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: problem\ndata: "+unavailable+"\n\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var at []time.Time
			c := serve(t, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if at = append(at, time.Now()); len(at) == 1 {
						refuse(w)
						return
					}
					h.ServeHTTP(w, r)
				})
			})
			var outcome fermata.Outcome
			for event, err := range c.ChatEvents(t.Context(), api.Chat{GraphID: "inproc:memo", StateKey: "memo-1", Input: json.RawMessage(`{"text":"by "}`)}) {
				if err != nil {
					t.Fatal(err)
				}
				outcome = event.Outcome
			}
			if _, ok := outcome.(fermata.NeedsInput); !ok || len(at) != 2 {
				t.Fatalf("%+v after %d connections", outcome, len(at))
			}
			if waited := at[1].Sub(at[0]); name == "instead of it" && waited < time.Second {
				t.Errorf("it waited %v instead of a second", waited)
			}
		})
	}
}

// A chat is followed to its outcome; a lost connection loses only steps and tokens.
func TestClient_ChatEvents(t *testing.T) {
	var streams atomic.Int64
	c := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept") == "text/event-stream" && streams.Add(1) == 1 {
				h.ServeHTTP(&cutAfter{ResponseWriter: w, messages: 5}, r)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	chat := func(chat api.Chat) (durable string, steps int, outcome fermata.Outcome) {
		for event, err := range c.ChatEvents(t.Context(), chat) {
			switch {
			case err != nil:
				t.Fatal(err)
			case event.Step != nil:
				steps++
			case event.Interrupt != nil && event.Interrupt.RequestID == "":
				t.Errorf("%+v", event.Interrupt)
			default:
				durable, outcome = durable+event.Type+" ", event.Outcome
			}
		}
		return durable, steps, outcome
	}
	durable, steps, outcome := chat(api.Chat{GraphID: "inproc:memo", StateKey: "memo-1", Input: json.RawMessage(`{"text":"by "}`)})
	if waiting, ok := outcome.(fermata.NeedsInput); !ok || durable != "created asked waiting interrupt outcome " || steps == 0 || waiting.Interrupts[0].Deadline == nil || streams.Load() != 2 {
		t.Errorf("it saw %s and %d steps on %d connections: %+v", durable, steps, streams.Load(), outcome)
	}
	durable, _, outcome = chat(api.Chat{StateKey: "memo-1", ResumeID: "1", ResumeValue: json.RawMessage(`"ann"`)})
	if _, ok := outcome.(fermata.Completed); !ok || durable != "decided completed outcome " {
		t.Errorf("it saw %s: %+v", durable, outcome)
	}
	for _, err := range c.ChatEvents(t.Context(), api.Chat{StateKey: "unknown", ResumeID: "1", ResumeValue: json.RawMessage(`"ann"`)}) {
		if problem, ok := errors.AsType[*api.Problem](err); !ok || problem.Code != "not_found" {
			t.Errorf("an unknown run: %v", err)
		}
	}
}

func TestClient_ChatAsyncReturnsPending(t *testing.T) {
	c := serve(t, plain)
	pending, err := c.ChatAsync(t.Context(), api.Chat{GraphID: "inproc:memo", Input: json.RawMessage(`{"text":"by "}`)})
	if err != nil || pending.StateKey == "" || pending.RunID == "" {
		t.Fatalf("%+v, %v", pending, err)
	}
	for event, err := range c.Events(t.Context(), pending.StateKey, "") {
		if err != nil {
			t.Fatal(err)
		}
		if event.Outcome != nil {
			break
		}
	}
	if view, err := c.Run(t.Context(), pending.StateKey); err != nil || view.RunID != pending.RunID || view.Status != "waiting" {
		t.Errorf("%+v, %v", view, err)
	}
	if me, err := c.Me(t.Context()); err != nil || me.Principal != "ann" || me.Account != "acme" || me.Roles[0] != "admin" || me.Strength != "token" {
		t.Errorf("%+v, %v", me, err)
	}
	if kinds, err := c.Kinds(t.Context()); err != nil || len(kinds.Items) == 0 {
		t.Errorf("%+v, %v", kinds, err)
	}
}

// cutAfter closes the connection after some messages.
type cutAfter struct {
	http.ResponseWriter
	messages int
}

func (c *cutAfter) Write(data []byte) (int, error) {
	if c.messages--; c.messages < 0 {
		panic(http.ErrAbortHandler)
	}
	return c.ResponseWriter.Write(data)
}

func (c *cutAfter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func TestNew_InvalidURLIsAnError(t *testing.T) {
	for _, bad := range []string{"", "localhost:8080", "ftp://x", "http://"} {
		if _, err := client.New(bad, ""); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// JSON cannot represent invalid UTF-8. A replacement character would be another key, or another
// answer.
func TestClient_SendsNoExtraHeaders(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Error("something was sent")
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer h.Close()
	c, err := client.New(h.URL, "key")
	if err != nil {
		t.Fatal(err)
	}
	for what, call := range map[string]func() error{
		"a state key": func() error { _, err := c.Start(t.Context(), "inproc:memo", "\xff", nil); return err },
		"a comment": func() error {
			_, err := c.Act(t.Context(), "int_1", client.ActionComment, api.RequestAction{Text: "gr\xfc\xdfe"})
			return err
		},
		"a decision": func() error { _, err := c.Decide(t.Context(), "int_1", api.Decide{ResumeID: "\xff"}); return err },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// fermata cancel "$UNSET": for runs//cancel a server could only answer that there is nothing.
func TestClient_EmptyIDIsAnError(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("something was sent") }))
	defer h.Close()
	c, err := client.New(h.URL, "key")
	if err != nil {
		t.Fatal(err)
	}
	for what, call := range map[string]func() error{
		"cancel": func() error { return c.Cancel(t.Context(), "") },
		"look":   func() error { _, err := c.Request(t.Context(), ""); return err },
		"decide": func() error { _, err := c.Decide(t.Context(), "", api.Decide{ResumeID: "1"}); return err },
		"revoke": func() error { return c.RevokeGrant(t.Context(), "") },
		"comment": func() error {
			_, err := c.Act(t.Context(), "", client.ActionComment, api.RequestAction{Text: "hm"})
			return err
		},
		"dots": func() error { return errors.Join(c.Cancel(t.Context(), "."), c.Cancel(t.Context(), "..")) },
		"follow": func() error {
			for _, err := range c.Events(t.Context(), "", "") {
				return err
			}
			return nil
		},
	} {
		if err := call(); !errors.Is(err, client.ErrInvalidID) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
