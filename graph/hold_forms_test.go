package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// TestHold_TakesBackAStateInEveryFormOfItsType covers states that are not structs, and the Go forms
// of an answer.
func TestHold_TakesBackAStateInEveryFormOfItsType(t *testing.T) {
	type note struct{ Text string }
	edited := note{"edited"}
	untyped := any("edited")
	t.Run("struct", func(t *testing.T) {
		handBack(t, note{"draft"}, `{"Text":"edited"}`, edited, &edited, json.RawMessage(`{"Text":"edited"}`), map[string]any{"Text": "edited"})
		refuse(t, note{"draft"}, (*note)(nil), 7, json.RawMessage(`{}`))
	})
	t.Run("pointer", func(t *testing.T) {
		at := &edited
		handBack(t, &note{"draft"}, `{"Text":"edited"}`, at, &at, edited, json.RawMessage(`{"Text":"edited"}`))
		refuse(t, &note{"draft"}, (**note)(nil), "edited")
	})
	t.Run("number", func(t *testing.T) {
		seven := 7
		handBack(t, 1, `7`, seven, &seven, json.RawMessage(`7`), int64(7))
		refuse(t, 1, (*int)(nil), "seven", json.RawMessage(`7.5`))
	})
	t.Run("anything", func(t *testing.T) {
		handBack(t, any("draft"), `"edited"`, "edited", &untyped, json.RawMessage(`"edited"`))
		refuse(t, any("draft"), (*any)(nil))
	})
	t.Run("unchanged", func(t *testing.T) {
		handBack(t, note{"draft"}, `{"Text":"draft"}`, nil, json.RawMessage(`null`))
		handBack(t, any("draft"), `"draft"`, nil, json.RawMessage(`null`))
		handBack(t, map[string]string{"a": "draft"}, `{"a":"draft"}`, nil, json.RawMessage(`null`))
	})
}

// Regression: null from another process releases a hold. For a graph that a node's own code runs it
// was an empty state: a struct was asked for repeatedly, and any other state was emptied.
func TestHold_OfAGraphThatANodeRunsGoesOnWithNull(t *testing.T) {
	goesOnInside(t, notes{A: "draft"})
	goesOnInside(t, map[string]string{"a": "draft"})
	goesOnInside(t, any("draft"))
}

func goesOnInside[S any](t *testing.T, input S) {
	t.Helper()
	inner := graph.New[S]("inner")
	inner.Node("pass", func(_ context.Context, s S) (S, error) { return s, nil })
	inner.Edge(graph.Start, "pass")
	inner.Edge("pass", graph.End)
	inner.HoldBefore("pass")
	innerFlow := compile(t, inner)
	var out S
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (_ notes, err error) {
		out, err = innerFlow.Run(ctx, input)
		return s, err
	}))
	_, err := h.start(notes{})
	_, err = h.resume(graph.Answer(h.waits(err)[0].ID, json.RawMessage(`null`)))
	if d := cmp.Diff(any(input), any(out)); d != "" || err != nil {
		t.Errorf("%T: %v, (-want +got)\n%s", input, err, d)
	}
}

// handBack answers a hold with each of these, and expects the run to end with this state.
func handBack[S any](t *testing.T, input S, want string, answers ...any) {
	t.Helper()
	for _, answer := range answers {
		flow, st, id := held(t, input)
		got, err := flow.Resume(t.Context(), "r", graph.WithStore(st), graph.Answer(id, answer))
		data, _ := json.Marshal(got)
		if err != nil || string(data) != want {
			t.Errorf("%T %v: %s, %v; want %s", answer, answer, data, err, want)
		}
	}
}

// refuse answers a hold with each of these, and expects it to stay open.
func refuse[S any](t *testing.T, input S, answers ...any) {
	t.Helper()
	for _, answer := range answers {
		flow, st, id := held(t, input)
		if got, err := flow.Resume(t.Context(), "r", graph.WithStore(st), graph.Answer(id, answer)); err == nil {
			t.Errorf("%T %v was accepted, and the run ended with %v", answer, answer, got)
		}
		if seen, err := flow.Inspect(t.Context(), "r", graph.WithStore(st)); err != nil || len(seen.Interrupts) != 1 {
			t.Errorf("%T %v: after it the run waits for %d answers, %v", answer, answer, len(seen.Interrupts), err)
		}
	}
}

// held returns a run that waits before its only node.
func held[S any](t *testing.T, input S) (*graph.Flow[S], *memory.Checkpoints, string) {
	t.Helper()
	g := graph.New[S]("held")
	g.Node("pass", func(_ context.Context, s S) (S, error) { return s, nil })
	g.Edge(graph.Start, "pass")
	g.Edge("pass", graph.End)
	g.HoldBefore("pass")
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	st := memory.New()
	_, err = flow.Run(t.Context(), input, graph.WithStore(st), graph.WithRun("r"))
	info, waits := fermata.ExtractInterruptInfo(err)
	if !waits {
		t.Fatalf("it does not wait: %v", err)
	}
	return flow, st, info.Interrupts[0].ID
}

// brittle is a state with unreliable JSON methods.
type brittle struct{ Text string }

func (s *brittle) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &s.Text); err == nil && s.Text == "boom" {
		panic(s.Text)
	}
	return nil
}

func (s brittle) MarshalJSON() ([]byte, error) { return json.Marshal(s.Text) }

func TestHold_AStateThatPanicsWhenItIsReadLeavesItOpen(t *testing.T) {
	flow, st, id := held(t, brittle{"draft"})
	_, err := flow.Resume(t.Context(), "r", graph.WithStore(st), graph.Answer(id, brittle{"boom"}))
	if _, ok := errors.AsType[*graph.PanicError](err); !ok {
		t.Errorf("got %v", err)
	}
	if got, err := flow.Resume(t.Context(), "r", graph.WithStore(st), graph.Answer(id, brittle{"edited"})); err != nil || got.Text != "edited" {
		t.Errorf("got %v, %v", got, err)
	}
}
