package executor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/gate"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/tool"
)

// The tests of this file show requirements of docs/requirements.md that no other test shows
// directly.

func TestSeed000_ProviderRefReturnsToTheProviderOnly(t *testing.T) {
	const ref = "thread-4711-canary"
	var log syncBuffer
	var got []string
	p := &scripted{execute: func(n int64, e provider.Execution) (provider.Result, error) {
		got = append(got, e.Run.Ref)
		if n > 1 {
			return provider.Result{Applied: []string{"q"}, Outcome: provider.Completed{Content: "done"}}, nil
		}
		if err := e.Owner.SetRef(t.Context(), ref); err != nil {
			return provider.Result{}, err
		}
		question := provider.Interrupt{ID: "q", Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage(`"ok?"`)}}
		return provider.Result{Outcome: provider.Waiting{Interrupts: []provider.Interrupt{question}}}, nil
	}}
	runs := memory.NewStore(nil)
	e := executorOf(t, runs, p, func(c *executor.Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	asked := mustRun(t, e, scriptedStart())
	view, err := e.GetRun(t.Context(), "acme", "x-1")
	if err != nil {
		t.Fatal(err)
	}
	open, err := e.ListRequests(t.Context(), "acme", store.InboxFilter{})
	if err != nil || len(open) != 1 {
		t.Fatalf("%d open requests, %v", len(open), err)
	}
	listed, err := e.ListRuns(t.Context(), "acme", store.RunFilter{})
	if err != nil || len(listed) != 1 {
		t.Fatalf("%d runs, %v", len(listed), err)
	}
	end := completed(t, mustRun(t, e, word("ann", "x-1", "1", "q", `"yes"`)))
	events, err := e.Events(t.Context(), "acme", end.Run, 0)
	if err != nil {
		t.Fatal(err)
	}
	var export bytes.Buffer
	if _, err := e.ExportAccount(t.Context(), "acme", &export); err != nil {
		t.Fatal(err)
	}
	if want := []string{"", ref}; !slices.Equal(got, want) {
		t.Errorf("the provider received the refs %q, want %q", got, want)
	}
	for name, value := range map[string]any{
		"outcome while waiting": asked, "run": view, "request": open, "list of runs": listed, "outcome": end, "events": events,
		"export": export.String(), "log": log.String(), "stored run": known(t, runs, "x-1"),
	} {
		encoded, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(fmt.Sprintf("%s %+v", encoded, value), ref) {
			t.Errorf("the provider ref is in the %s", name)
		}
	}
}

// A flow, an agent and an agent behind the API are started and resumed by the same call, with the
// state key as the only handle, in another process than the one that started them.
func TestSeed000_EveryProviderResumesThroughTheSameCall(t *testing.T) {
	providers := func() []provider.Provider {
		post := tool.New("post", "Posts it.", func(context.Context, letter) (string, error) { return "posted", nil })
		clerk, err := agent.NewChat(agent.Chat{Name: "clerk", Model: script.New(script.Call("post", `{"text":"x"}`), script.Say("done")), Tools: []*tool.Tool{tool.Approve(post)}})
		if err != nil {
			t.Fatal(err)
		}
		flow := inproc.Flow(reviewFlow(t, new(world)), inproc.FlowConfig[review]{})
		local, err := inproc.New(flow, inproc.Agent(agent.RunnerConfig{Agent: clerk}))
		if err != nil {
			t.Fatal(err)
		}
		remote, err := external.New(external.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return []provider.Provider{local, remote}
	}
	runs := memory.NewStore(nil)
	started := executorOf(t, runs, nil, func(c *executor.Config) { c.Providers = providers() })
	cases := []struct{ key, graph, input, answer string }{
		{"flow", "inproc:content-review", `{"topic":"tea"}`, `{"action":"approve"}`},
		{"agent", "inproc:clerk", `{"query":"post it"}`, yes},
		{"external", "external:request", `{"kind":"k","data":"ok?"}`, `"yes"`},
	}
	for _, c := range cases {
		waiting := waits(t, began(t, started, c.key, c.graph, c.input))
		if waiting.StateKey != c.key || len(waiting.Interrupts) != 1 {
			t.Fatalf("%s: waits with %+v", c.key, waiting)
		}
	}
	if err := started.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	resumed := executorOf(t, runs, nil, func(c *executor.Config) { c.Providers = providers() })
	for _, c := range cases {
		request := executor.RunRequest{Account: "acme", StateKey: c.key, ResumeID: c.key, Actor: "ann", Value: json.RawMessage(c.answer)}
		completed(t, mustRun(t, resumed, addressed(t, resumed, request)))
	}
}

func TestSeed000_StateKeyIsUniquePerAccount(t *testing.T) {
	e := newExecutor(t, memory.NewStore(nil), new(world), nil)
	request := executor.RunRequest{Account: "acme", StateKey: "k", Graph: "inproc:content-review", Input: json.RawMessage(`{"topic":"tea"}`)}
	ours := waits(t, mustRun(t, e, request))
	other := request
	other.Account = "other"
	theirs := waits(t, mustRun(t, e, other))
	if ours.Run == theirs.Run || ours.StateKey != theirs.StateKey {
		t.Errorf("two accounts with one state key: %+v and %+v", ours, theirs)
	}
	request.Input = json.RawMessage(`{"topic":"coffee"}`)
	if outcome, err := e.Run(t.Context(), request); err == nil {
		t.Errorf("a second run with the same state key: %#v", outcome)
	}
	completed(t, mustRun(t, e, answer("k", "1", "approve")))
	if view, err := e.GetRun(t.Context(), "other", "k"); err != nil || view.Status != store.StatusWaiting {
		t.Errorf("the run of the other account is %s, %v", view.Status, err)
	}
}

// The limits are exact: the largest value is accepted, one byte more is rejected.
func TestSeed000_SizesOfDataAndAnswersAreLimited(t *testing.T) {
	text := func(size int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`) }
	for name, c := range map[string]struct {
		data, answer int
		want         string
	}{
		"at the limits":     {256 << 10, 64 << 10, "completed"},
		"too large data":    {256<<10 + 1, 2, "failed"},
		"too large answers": {2, 64<<10 + 1, "open"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
				if len(e.Answers) > 0 {
					return provider.Result{Applied: []string{"q"}, Outcome: provider.Completed{Content: "done"}}, nil
				}
				question := provider.Interrupt{ID: "q", Envelope: fermata.Envelope{Kind: "k", Data: text(c.data)}}
				return provider.Result{Outcome: provider.Waiting{Interrupts: []provider.Interrupt{question}}}, nil
			}}
			e := executorOf(t, memory.NewStore(nil), p, nil)
			got := ""
			switch outcome := mustRun(t, e, scriptedStart()).(type) {
			case fermata.Failed:
				got = "failed"
			case fermata.NeedsInput:
				resumed, err := e.Run(t.Context(), word("ann", "x-1", "1", "q", string(text(c.answer))))
				if _, ok := resumed.(fermata.Completed); ok && err == nil {
					got = "completed"
				} else if doc, docErr := e.RequestDocument(t.Context(), "acme", "q"); err != nil && docErr == nil && doc.Decision == nil {
					got = "open"
				}
			default:
				t.Fatalf("outcome %#v", outcome)
			}
			if got != c.want {
				t.Errorf("the run is %q, want %q", got, c.want)
			}
		})
	}
}

func TestSeed001_EveryGateDecisionIsInTheAuditLog(t *testing.T) {
	type state struct {
		Decisions []gate.Record `json:"decisions"`
	}
	g := graph.New[state]("pipeline")
	g.Node("design", func(_ context.Context, s state) (state, error) { return s, nil })
	g.Edge(graph.Start, "design")
	g.Edge("design", "approveDesign")
	gate.Approval[state]{
		ID: "design_approval", Message: "Review", Decisions: func(s *state) *[]gate.Record { return &s.Decisions }, Forward: graph.End, Backward: "design",
	}.Add(g, "approveDesign")
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	p, err := inproc.New(inproc.Flow(flow, inproc.FlowConfig[state]{}))
	if err != nil {
		t.Fatal(err)
	}
	runs := memory.NewStore(nil)
	e := executorOf(t, runs, p, nil)
	first := waits(t, began(t, e, "g", "inproc:pipeline", `{"decisions":[]}`)).Interrupts[0].ID
	const at = `"approvedAt":"2026-01-01T00:00:00Z"`
	second := waits(t, mustRun(t, e, word("ann", "g", "1", first, `{"approved":false,`+at+`,"feedback":"name the risks"}`))).Interrupts[0].ID
	completed(t, mustRun(t, e, word("bob", "g", "2", second, `{"approved":true,`+at+`}`)))
	kept, err := e.AuditLines(t.Context(), "acme", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var decided []string
	for _, line := range kept {
		var record struct{ Kind string }
		if err := json.Unmarshal(line.Raw, &record); err != nil {
			t.Fatal(err)
		}
		if record.Kind == "request.decided" {
			decided = append(decided, string(line.Raw))
		}
	}
	if len(decided) != 2 || !strings.Contains(decided[0], "ann") || !strings.Contains(decided[0], first) || !strings.Contains(decided[1], "bob") || !strings.Contains(decided[1], second) {
		t.Errorf("audit lines of the two decisions:\n%s", strings.Join(decided, "\n"))
	}
}

// A hold, an approval and a question each expire after 24 hours, with the reason "stale", unless
// the configuration or the question says otherwise.
func TestSeed004_RequestsExpireAfter24Hours(t *testing.T) {
	for name, node := range map[string]func(g *graph.Graph[order]){
		"hold": func(g *graph.Graph[order]) {
			g.Node("drop", func(_ context.Context, o order) (order, error) { return o, nil })
			g.HoldBefore("drop")
		},
		"approval": func(g *graph.Graph[order]) {
			g.Node("drop", func(ctx context.Context, o order) (order, error) {
				_, err := fermata.Approve(ctx, fermata.Action[order]{Name: "drop", Args: o})
				return o, err
			})
		},
		"question": func(g *graph.Graph[order]) {
			g.Node("drop", func(ctx context.Context, o order) (order, error) { return o, fermata.Interrupt(ctx, "drop it?") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := graph.New[order]("drop")
			node(g)
			g.Edge(graph.Start, "drop")
			g.Edge("drop", graph.End)
			flow, err := g.Compile()
			if err != nil {
				t.Fatal(err)
			}
			p, err := inproc.New(inproc.Flow(flow, inproc.FlowConfig[order]{}))
			if err != nil {
				t.Fatal(err)
			}
			e := executorOf(t, memory.NewStore(nil), p, nil)
			id := waits(t, began(t, e, "k", "inproc:drop", `{"table":"users"}`)).Interrupts[0].ID
			doc, err := e.RequestDocument(t.Context(), "acme", id)
			if err != nil {
				t.Fatal(err)
			}
			last := doc.Route.Steps[len(doc.Route.Steps)-1]
			if open := doc.Deadline.Sub(doc.Created); open != 24*time.Hour || last.Expire != "stale" {
				t.Errorf("it is open for %s, and its last step is %+v", open, last)
			}
		})
	}
}

func TestSeed003_PauseWithoutADeadline(t *testing.T) {
	e := newExecutor(t, memory.NewStore(nil), new(world), func(c *executor.Config) { c.RequestTimeout = -1 })
	id := start(t, e, "k").Interrupts[0].ID
	doc, err := e.RequestDocument(t.Context(), "acme", id)
	if err != nil {
		t.Fatal(err)
	}
	if open := doc.Deadline.Sub(doc.Created); open < 100*365*24*time.Hour {
		t.Errorf("the request is open for %s only", open)
	}
}
