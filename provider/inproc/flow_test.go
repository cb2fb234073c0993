package inproc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/provider/providertest"
)

func newStore(*testing.T) store.Store { return memory.NewStore(nil) }

func TestFlow_PassesTheSuite(t *testing.T) {
	providertest.Run(t, providertest.Subject{Store: newStore, New: func(t *testing.T, world *providertest.World) provider.Provider {
		return newProvider(t, reviewFlow(t, world), pairFlow(t, world), dropFlow(t, world))
	}})
}

func newProvider(t *testing.T, graphs ...inproc.Graph) *inproc.Provider {
	t.Helper()
	p, err := inproc.New(graphs...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func compiled[S any](t *testing.T, g *graph.Graph[S]) inproc.Graph {
	t.Helper()
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Flow(flow, inproc.FlowConfig[S]{})
}

type verdict struct {
	Action   string `json:"action"`
	Feedback string `json:"feedback,omitempty"`
}

func (v verdict) Validate() error {
	switch v.Action {
	case "approve", "revise":
		return nil
	}
	return fmt.Errorf("%q is not an action", v.Action)
}

var contentReview = fermata.NewKind[string, verdict]("content-review")

type review struct {
	Topic  string `json:"topic"`
	Draft  string `json:"draft,omitempty"`
	Action string `json:"action,omitempty"`
}

func reviewFlow(t *testing.T, world *providertest.World) inproc.Graph {
	t.Helper()
	g := graph.New[review]("content-review")
	g.Node("draft", func(ctx context.Context, s review) (review, error) {
		s.Draft = "about " + s.Topic
		return s, world.Work(ctx, "draft")
	})
	g.Node("human_review", func(ctx context.Context, s review) (review, error) {
		v, err := contentReview.Ask(ctx, s.Draft)
		if err != nil {
			return s, err
		}
		s.Action = v.Action
		s.Draft += v.Feedback
		return s, nil
	})
	g.Node("publish", func(ctx context.Context, s review) (review, error) { return s, world.Work(ctx, "publish") })
	g.Edge(graph.Start, "draft")
	g.Edge("draft", "human_review")
	g.Branch("human_review", func(s review) string {
		if s.Action == "approve" {
			return "publish"
		}
		return "human_review"
	}, "publish", "human_review")
	g.Edge("publish", graph.End)
	return compiled(t, g)
}

type pair struct {
	Topic string `json:"topic"`
	Left  bool   `json:"left,omitempty"`
	Right bool   `json:"right,omitempty"`
}

func pairFlow(t *testing.T, world *providertest.World) inproc.Graph {
	t.Helper()
	g := graph.New[pair]("pair")
	for _, side := range []string{"left", "right"} {
		g.Node(side, func(ctx context.Context, s pair) (pair, error) {
			if _, err := contentReview.Ask(ctx, side); err != nil {
				return s, err
			}
			s.Left, s.Right = side == "left", side == "right"
			return s, world.Work(ctx, side)
		})
		g.Edge(graph.Start, side)
		g.Edge(side, graph.End)
	}
	return compiled(t, g)
}

type order struct {
	Table   string `json:"table"`
	Receipt string `json:"receipt,omitempty"`
}

func dropFlow(t *testing.T, world *providertest.World) inproc.Graph {
	t.Helper()
	g := graph.New[order]("drop")
	g.Node("drop", func(ctx context.Context, o order) (order, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[string]{Name: "drop-table", Args: o.Table})
		if err != nil {
			return o, err
		}
		o.Receipt, err = fermata.Effect(ctx, yes, func(ctx context.Context, _, _ string) (string, error) {
			return "dropped", world.Work(ctx, "drop")
		})
		return o, err
	})
	g.Edge(graph.Start, "drop")
	g.Edge("drop", graph.End)
	return compiled(t, g)
}

// cut is a state store that fails after a number of saves.
type cut struct {
	store.Checkpoints
	saves int
}

func (c *cut) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	if c.saves--; c.saves < 0 {
		return 0, errors.New("the disk is full")
	}
	return c.Checkpoints.Save(ctx, key, base, delta)
}

// A node may hide a store failure in its own error. The run must not fail.
func TestFlow_ANodeThatHidesAnErrorOfTheStoreIsNotAtFault(t *testing.T) {
	g := graph.New[order]("careless")
	g.Node("only", func(ctx context.Context, o order) (order, error) {
		if _, err := fermata.Do(ctx, "look", func(context.Context) (int, error) { return 1, nil }); err != nil {
			return o, errors.New("it did not work out")
		}
		return o, nil
	})
	g.Edge(graph.Start, "only")
	g.Edge("only", graph.End)
	p := newProvider(t, compiled(t, g))
	e := execution(t, "careless", `{"table":"users"}`)
	whole := e.Run.State
	e.Run.State = &cut{whole, 1} // the run can start, and no more
	if result, err := p.Execute(t.Context(), e); err == nil {
		t.Errorf("it came to %#v", result.Outcome)
	}
	e.Run.State = whole
	result, err := p.Execute(t.Context(), e)
	if _, ok := result.Outcome.(provider.Completed); err != nil || !ok {
		t.Errorf("%#v, %v", result, err)
	}
}

// strict is a ledger that approves nothing.
type strict struct{ keeper }

func (s strict) Ledger() fermata.Ledger { return s }

func (strict) Begin(context.Context, fermata.Intent) (fermata.LedgerEntry, bool, error) {
	return fermata.LedgerEntry{}, false, store.ErrNotApproved
}

func (strict) End(context.Context, fermata.Intent, fermata.LedgerEntry) error {
	return store.ErrNotFound
}

// An effect that the ledger rejects would be rejected again: the run fails, and nothing is done.
func TestI4_ARunWhoseEffectTheLedgerRefusesHasFailed(t *testing.T) {
	done := false
	g := graph.New[order]("drop")
	g.Node("drop", func(ctx context.Context, o order) (order, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[string]{Name: "drop-table", Args: o.Table})
		if err != nil {
			return o, err
		}
		o.Receipt, err = fermata.Effect(ctx, yes, func(context.Context, string, string) (string, error) {
			done = true
			return "", nil
		})
		return o, err
	})
	g.Edge(graph.Start, "drop")
	g.Edge("drop", graph.End)
	p := newProvider(t, compiled(t, g))
	e := execution(t, "drop", `{"table":"users"}`)
	e.Owner = strict{}
	result, err := p.Execute(t.Context(), e)
	waiting, ok := result.Outcome.(provider.Waiting)
	if err != nil || !ok {
		t.Fatalf("%#v, %v", result, err)
	}
	e.Answers = []provider.Answer{{InterruptID: waiting.Interrupts[0].ID, Data: json.RawMessage(`{"verb":"approve"}`)}}
	result, err = p.Execute(t.Context(), e)
	if failed, ok := result.Outcome.(provider.Failed); err != nil || !ok || failed.Code != "node_failed" || done {
		t.Errorf("%#v, %v, done: %t", result, err, done)
	}
}
