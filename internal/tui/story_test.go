package tui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

type table struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"`
	Done string `json:"done,omitempty"`
}

// env is a real server with one graph, which drops tables after approval.
type env struct {
	ann, bob *client.Client
	dropped  atomic.Int32
	down     atomic.Bool // the server is unreachable
}

func newEnv(t *testing.T) *env {
	t.Helper()
	w := new(env)
	g := graph.New[table]("drop-table")
	g.Node("drop", func(ctx context.Context, s table) (table, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[table]{Name: "drop-table", Args: s, Summary: fmt.Sprintf("Drop %s with %d rows.", s.Name, s.Rows)})
		if err != nil {
			return s, err
		}
		s.Done, err = fermata.Effect(ctx, yes, func(_ context.Context, s table, _ string) (string, error) {
			w.dropped.Add(1)
			return "gone: " + s.Name, nil
		})
		return s, err
	})
	g.Edge(graph.Start, "drop")
	g.Edge("drop", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	p, err := inproc.New(inproc.Flow(flow, inproc.FlowConfig[table]{Content: func(s table) string { return s.Done }}))
	if err != nil {
		t.Fatal(err)
	}
	w.serve(t, p)
	return w
}

func (w *env) serve(t *testing.T, p provider.Provider) {
	t.Helper()
	b, err := seal.New(seal.Key{1})
	if err != nil {
		t.Fatal(err)
	}
	st := memory.NewStore(nil)
	e, err := executor.New(executor.Config{Store: st, Sealer: b, Providers: []provider.Provider{p}, Wait: time.Minute, Desk: executor.DeskConfig{DefaultPage: []string{"oncall:default"}}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{Executor: e, Auth: authn.Keys(st)})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.down.Load() {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		s.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() {
		h.Close()
		if err := e.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for name, c := range map[string]**client.Client{"ann": &w.ann, "bob": &w.bob} {
		key, kept, err := authn.NewKey("acme", name, authn.RoleAdmin, time.Time{})
		if err == nil {
			err = st.AddCredential(t.Context(), kept, store.Writes{})
		}
		if err != nil {
			t.Fatal(err)
		}
		if *c, err = client.New(h.URL, key); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *env) start(t *testing.T, key, input string) string {
	t.Helper()
	outcome, err := w.ann.Start(t.Context(), "inproc:drop-table", key, json.RawMessage(input))
	waiting, ok := outcome.(fermata.NeedsInput)
	if err != nil || !ok {
		t.Fatalf("%#v, %v", outcome, err)
	}
	return waiting.Interrupts[0].ID
}

// terminal is the running program: keys go in, frames and bytes come out.
type terminal struct {
	t    *testing.T
	keys io.WriteCloser
	done chan error

	mu      sync.Mutex
	out     bytes.Buffer
	frame   string
	changed chan struct{}
}

// recordingModel passes its frames to the terminal.
type recordingModel struct {
	*model
	seen func(string)
}

func (w recordingModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	_, cmd := w.model.Update(msg)
	return w, cmd
}

func (w recordingModel) View() tea.View {
	v := w.model.View()
	w.seen(ansi.Strip(v.Content))
	return v
}

func open(t *testing.T, c *client.Client) *terminal {
	t.Helper()
	in, keys := io.Pipe()
	term := &terminal{t: t, keys: keys, done: make(chan error, 1), changed: make(chan struct{}, 1)}
	config := Config{Server: c, Poll: 20 * time.Millisecond, In: in, Out: term}.withDefaults()
	ctx, stop := context.WithCancel(context.Background())
	m := recordingModel{newModel(config, newCalls(ctx, config)), term.see}
	go func() {
		term.done <- run(ctx, config, m, tea.WithWindowSize(80, 24), tea.WithEnvironment([]string{"TERM=xterm-256color", "NO_COLOR=1"}))
	}()
	t.Cleanup(func() {
		stop()
		keys.Close()
	})
	return term
}

func (term *terminal) Write(data []byte) (int, error) {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.out.Write(data)
}

func (term *terminal) see(frame string) {
	term.mu.Lock()
	term.frame = frame
	term.mu.Unlock()
	select {
	case term.changed <- struct{}{}:
	default:
	}
}

// sees waits until all texts are on the screen.
func (term *terminal) sees(texts ...string) {
	term.t.Helper()
	patience := time.After(3 * time.Minute)
	for {
		term.mu.Lock()
		frame := term.frame
		term.mu.Unlock()
		missing := ""
		for _, text := range texts {
			if !strings.Contains(frame, text) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-term.changed:
		case <-patience:
			term.t.Fatalf("there is no %q on\n%s", missing, frame)
		}
	}
}

func (term *terminal) press(keys string) {
	term.t.Helper()
	if _, err := io.WriteString(term.keys, keys); err != nil {
		term.t.Fatal(err)
	}
}

// An agent asks, a person at a terminal approves, and the run completes; the agent's text does not
// affect the terminal.
func TestStory_APersonApprovesAndTheRunCompletes(t *testing.T) {
	w := newEnv(t)
	term := open(t, w.ann)
	term.sees("There are no open requests")
	w.start(t, "drop-users", `{"name":"users\u001b]52;c;eHg=\u0007","rows":9007199254740993}`)
	term.sees("Inbox 1 open", "drop-users")
	term.press("\r")
	term.sees(`name: "users\u001b]52;c;eHg=\u0007"`, "rows: 9007199254740993", "[a] approve")
	term.press("a")
	term.sees("This will be sent", `verb: "approve"`)
	if n := w.dropped.Load(); n != 0 {
		t.Fatal("the table was dropped before the confirmation")
	}
	term.press("y")
	term.sees(`Approved. drop-users completed: gone: users\u001b]52;c;eHg=\u0007`, "Inbox 0 open")
	view, err := w.ann.Run(t.Context(), "drop-users")
	if err != nil || view.Status != "completed" || view.Requests[0].Decision.By != "ann" || w.dropped.Load() != 1 {
		t.Errorf("%+v, %v, dropped %d times", view, err, w.dropped.Load())
	}
	term.press("q")
	if err := <-term.done; err != nil {
		t.Error(err)
	}
	if out := term.out.String(); !strings.Contains(out, "drop-users") || strings.Contains(out, "\x1b]52") || strings.Contains(out, "\x1b[38;") || strings.Contains(out, "\x1b[31m") {
		t.Errorf("the terminal received %q", out)
	}
}

func TestStory_AnotherPersonDecidesFirst(t *testing.T) {
	w := newEnv(t)
	id := w.start(t, "drop-users", `{"name":"users","rows":3}`)
	term := open(t, w.ann)
	term.sees("drop-users")
	term.press("\r")
	term.sees("[r] reject")
	term.press("r")
	term.press("not today")
	term.sees("not today")
	if _, err := w.bob.Decide(t.Context(), id, api.Decide{Answer: json.RawMessage(`{"verb":"approve"}`)}); err != nil {
		t.Fatal(err)
	}
	term.sees("Already decided: approve by bob", "not today", "can no longer be sent")
}

// The edited arguments are used.
func TestStory_ApproveWithEdits(t *testing.T) {
	w := newEnv(t)
	w.start(t, "drop-users", `{"name":"users","rows":9007199254740993}`)
	term := open(t, w.ann)
	term.sees("drop-users")
	term.press("\r")
	term.sees("[e] approve with edits")
	term.press("e")
	term.sees("▸ name")
	term.press("\x15") // ^u
	term.press("users_old")
	term.sees("│ users_old")
	term.press("\x13") // ^s
	term.sees(`was  "users"`, `is   "users_old"`)
	term.press("y")
	term.sees("Approved with edits. drop-users completed: gone: users_old")
}

func TestStory_ServerRestarts(t *testing.T) {
	w := newEnv(t)
	w.start(t, "drop-users", `{"name":"users","rows":3}`)
	term := open(t, w.ann)
	term.sees("live", "drop-users")
	w.down.Store(true)
	term.sees("OFFLINE", "drop-users")
	w.down.Store(false)
	term.sees("live", "drop-users")
}

func TestRun_EndsWithItsContext(t *testing.T) {
	w := newEnv(t)
	in, keys := io.Pipe()
	defer keys.Close()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, Config{Server: w.ann, In: in, Out: io.Discard}) }()
	stop()
	if err := <-done; err != context.Canceled {
		t.Error(err)
	}
}

// Escalation decides nothing: the request stays open.
func TestStory_Escalate(t *testing.T) {
	w := newEnv(t)
	id := w.start(t, "drop-users", `{"name":"users","rows":3}`)
	term := open(t, w.ann)
	term.sees("drop-users")
	term.press("\r")
	term.sees("[x] escalate")
	term.press("x")
	term.sees("▸ reason")
	term.press("ask the owner\r")
	term.sees("This will be sent", `text: "ask the owner"`)
	term.press("y")
	term.sees("Escalated", "[a] approve")
	r, err := w.bob.Request(t.Context(), id)
	if err != nil || r.State != statePending || r.Activity == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	if !slices.ContainsFunc(r.Activity.History, func(h api.HistoryEntry) bool { return h.Event == "escalated" && h.By == "ann" }) {
		t.Errorf("%+v", r.Activity.History)
	}
}
