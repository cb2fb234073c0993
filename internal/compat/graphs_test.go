package compat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/gate"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/tool"
)

type draft struct {
	Topic string   `json:"topic"`
	Notes []string `json:"notes,omitempty"`
	Final bool     `json:"final,omitempty"`
}

type verdict struct {
	Action string `json:"action"`
	Note   string `json:"note,omitempty"`
}

// Choices and validation are left to the schema: only action is required.
var (
	review   = fermata.NewKind[draft, verdict]("compat-review")
	question = fermata.NewKind[string, string]("compat-question")
)

type money struct {
	To    string `json:"to"`
	Cents int    `json:"cents"`
}

type transfer struct {
	Money   money  `json:"money"`
	Quote   string `json:"quote,omitempty"`
	Receipt string `json:"receipt,omitempty"`
}

// everything is the state of a graph that waits in each way that a graph can wait.
type everything struct {
	Work      string        `json:"work,omitempty"`
	Left      string        `json:"left,omitempty"`
	Items     []string      `json:"items,omitempty"`
	Stateful  string        `json:"stateful,omitempty"`
	Held      bool          `json:"held,omitempty"`
	Decisions []gate.Record `json:"decisions,omitempty"`
	Forward   bool          `json:"forward,omitempty"`
}

type inner struct {
	In     string `json:"in"`
	Answer string `json:"answer,omitempty"`
}

type bookInput struct {
	City string `json:"city"`
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func flow[S any](t *testing.T, g *graph.Graph[S], config inproc.FlowConfig[S]) inproc.Graph {
	t.Helper()
	return inproc.Flow(must[*graph.Flow[S]](t)(g.Compile()), config)
}

// single is a graph with one node.
func single[S any](t *testing.T, name string, config inproc.FlowConfig[S], node graph.Func[S]) inproc.Graph {
	t.Helper()
	g := graph.New[S](name)
	g.Node("only", node)
	g.Edge(graph.Start, "only")
	g.Edge("only", graph.End)
	return flow(t, g, config)
}

// graphs are those of the provider inproc.
func graphs(t *testing.T) []inproc.Graph {
	t.Helper()
	return []inproc.Graph{
		reviewGraph(t), transferGraph(t), everythingGraph(t), clerk(t),
		single(t, "failing", inproc.FlowConfig[draft]{}, func(context.Context, draft) (draft, error) {
			return draft{}, errors.New("no paper left")
		}),
		single(t, "short", inproc.FlowConfig[money]{}, func(ctx context.Context, m money) (money, error) {
			_, err := fermata.Approve(ctx, fermata.Action[money]{Name: "short", Args: m, Summary: "Approve within a minute"})
			return m, err
		}),
	}
}

func reviewGraph(t *testing.T) inproc.Graph {
	t.Helper()
	g := graph.New[draft]("review")
	g.Node("human_review", func(ctx context.Context, d draft) (draft, error) {
		v, err := review.Ask(ctx, d)
		if err != nil {
			return d, err
		}
		d.Final = v.Action == "approve"
		d.Notes = append(d.Notes, v.Action+":"+v.Note)
		return d, nil
	})
	g.Edge(graph.Start, "human_review")
	g.Branch("human_review", func(d draft) string {
		if d.Final {
			return graph.End
		}
		return "human_review"
	}, "human_review", graph.End)
	return flow(t, g, inproc.FlowConfig[draft]{
		Description: "Asks about a draft until it is approved.",
		Content:     func(d draft) string { return d.Topic + " " + strings.Join(d.Notes, ",") },
	})
}

func transferGraph(t *testing.T) inproc.Graph {
	t.Helper()
	return single(t, "transfer", inproc.FlowConfig[transfer]{
		Description: "Transfers money after approval.",
		Content:     func(s transfer) string { return s.Receipt },
		Explain: func(_ context.Context, s transfer, _ provider.Clarification) (string, error) {
			return fmt.Sprintf("The quote is %s.", s.Money.To), nil
		},
	}, func(ctx context.Context, s transfer) (transfer, error) {
		var err error
		if s.Quote, err = fermata.Do(ctx, "quote", func(context.Context) (string, error) { return "quote for " + s.Money.To, nil }); err != nil {
			return s, err
		}
		approved, err := fermata.Approve(ctx, fermata.Action[money]{Name: "transfer", Args: s.Money, Summary: "Transfer money to " + s.Money.To})
		if err != nil {
			return s, err
		}
		s.Receipt, err = fermata.Effect(ctx, approved, func(_ context.Context, m money, _ string) (string, error) {
			return fmt.Sprintf("%d cents to %s", m.Cents, m.To), nil
		})
		return s, err
	})
}

func everythingGraph(t *testing.T) inproc.Graph {
	t.Helper()
	sub := graph.New[inner]("inner")
	sub.Node("ask", func(ctx context.Context, s inner) (inner, error) {
		answer, err := question.Ask(ctx, "subgraph "+s.In+"?")
		s.Answer = s.In + "=" + answer
		return s, err
	})
	sub.Edge(graph.Start, "ask")
	sub.Edge("ask", graph.End)

	g := graph.New[everything]("everything")
	g.Node("work", func(ctx context.Context, s everything) (everything, error) {
		done, err := fermata.Do(ctx, "once", func(context.Context) (string, error) { return "computed", nil })
		if err != nil {
			return s, err
		}
		answer, err := question.Ask(ctx, "work?")
		s.Work = done + "=" + answer
		return s, err
	})
	graph.Sub(g, "left", must[*graph.Flow[inner]](t)(sub.Compile()),
		func(everything) inner { return inner{In: "left"} },
		func(s everything, r inner) everything { s.Left = r.Answer; return s })
	graph.Each(g, "each", func(everything) []string { return []string{"a", "b"} },
		func(ctx context.Context, item string) (string, error) {
			if item == "a" {
				return "a", nil
			}
			answer, err := question.Ask(ctx, "item b?")
			return item + "=" + answer, err
		},
		func(s everything, r []string) everything { s.Items = r; return s })
	g.Node("stateful", func(ctx context.Context, s everything) (everything, error) {
		if target, _, data := fermata.GetResumeContext[string](ctx); target {
			_, _, kept := fermata.GetInterruptState[string](ctx)
			s.Stateful = kept + "=" + data
			return s, nil
		}
		return s, fermata.StatefulInterrupt(ctx, "stateful?", "kept")
	})
	g.Node("held", func(_ context.Context, s everything) (everything, error) { s.Held = true; return s, nil })
	g.HoldBefore("held")
	gate.Approval[everything]{
		ID: "release", Message: "Release it?", Status: func(everything) string { return "ready" },
		Decisions: func(s *everything) *[]gate.Record { return &s.Decisions }, Forward: "forward", Backward: "backward",
	}.Add(g, "gate")
	g.Node("forward", func(_ context.Context, s everything) (everything, error) { s.Forward = true; return s, nil })
	g.Node("backward", func(_ context.Context, s everything) (everything, error) { return s, nil })
	for _, name := range []string{"work", "left", "each", "stateful", "held", "gate"} {
		g.Edge(graph.Start, name)
	}
	for _, name := range []string{"work", "left", "each", "stateful", "held", "forward", "backward"} {
		g.Edge(name, graph.End)
	}
	return flow(t, g, inproc.FlowConfig[everything]{Description: "Waits in each way that a graph can wait."})
}

func clerk(t *testing.T) inproc.Graph {
	t.Helper()
	book := tool.Approve(tool.New("book", "Books a trip.", func(_ context.Context, in bookInput) (string, error) {
		return "booked " + in.City, nil
	}))
	a, err := agent.NewChat(agent.Chat{
		Name: "clerk", Description: "Books trips.", Tools: []*tool.Tool{book},
		Model: script.New(script.Call("book", `{"city":"Paris"}`), script.Say("The trip to Paris is booked.")),
	})
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Agent(agent.RunnerConfig{Agent: a})
}

// unreliable is a provider that fails on a fresh installation and works after a restart.
type unreliable struct {
	provider.Provider
	broken bool
}

func (*unreliable) Name() string { return "unreliable" }

type cancelKey struct{}

// Execute parks a run of the graph "jammed". An execution that was cancelled is retried.
func (u *unreliable) Execute(ctx context.Context, e provider.Execution) (provider.Result, error) {
	if e.Run.Graph == "jammed" && u.broken {
		return provider.Result{}, fmt.Errorf("%w: paper jam", provider.ErrPark)
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	result, err := u.Provider.Execute(context.WithValue(inner, cancelKey{}, cancel), e)
	if err != nil && inner.Err() != nil && ctx.Err() == nil {
		err = &fermata.RetryError{After: time.Second, Err: err}
	}
	return result, err
}

// unreliableGraphs are those of the provider unreliable.
func unreliableGraphs(t *testing.T, broken bool) []inproc.Graph {
	t.Helper()
	return []inproc.Graph{
		single(t, "jammed", inproc.FlowConfig[draft]{Content: func(d draft) string { return "printed " + d.Topic }},
			func(_ context.Context, d draft) (draft, error) { d.Final = true; return d, nil }),
		single(t, "doubt", inproc.FlowConfig[transfer]{Content: func(s transfer) string { return s.Receipt }},
			func(ctx context.Context, s transfer) (transfer, error) {
				approved, err := fermata.Approve(ctx, fermata.Action[money]{Name: "transfer", Args: s.Money, Summary: "Transfer money to " + s.Money.To})
				if err != nil {
					return s, err
				}
				s.Receipt, err = fermata.Effect(ctx, approved, func(ctx context.Context, m money, _ string) (string, error) {
					if broken { // the execution ends before the target answers
						ctx.Value(cancelKey{}).(context.CancelFunc)()
						return "", ctx.Err()
					}
					return fmt.Sprintf("%d cents to %s", m.Cents, m.To), nil
				})
				return s, err
			}),
	}
}
