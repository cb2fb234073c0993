package graph_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
)

type watchedState struct {
	Text string `json:"text"`
}

var watchedKind = fermata.NewKind[string, string]("asked-of-watch-test")

// The observer is called for every node that is entered and left, with its state.
func TestOnStep_ReportsEveryNode(t *testing.T) {
	g := graph.New[watchedState]("watched")
	g.Node("draft", func(_ context.Context, s watchedState) (watchedState, error) { return s, nil })
	g.Node("ask", func(ctx context.Context, s watchedState) (watchedState, error) {
		answer, err := watchedKind.Ask(ctx, "well?")
		s.Text = answer
		return s, err
	})
	g.Node("fail", func(_ context.Context, s watchedState) (watchedState, error) { return s, errors.New("no") })
	g.Edge(graph.Start, "draft")
	g.Edge("draft", "ask")
	g.Edge("ask", "fail")
	g.Edge("fail", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	options := []graph.Option{graph.WithStore(memory.New()), graph.OnStep(func(s graph.Step) {
		told = append(told, strings.TrimPrefix(s.Address, "runnable:watched;node:")+" "+string(s.State))
	})}
	_, err = flow.Run(t.Context(), watchedState{}, append(options, graph.WithRun("r"))...)
	info, waits := fermata.ExtractInterruptInfo(err)
	if want := []string{"draft started", "draft finished", "ask started", "ask waits"}; !waits || !slices.Equal(told, want) {
		t.Fatalf("%v, told: %q", err, told)
	}
	told = nil
	_, err = flow.Resume(t.Context(), "r", append(options, graph.Answer(info.Interrupts[0].ID, "yes"))...)
	if want := []string{"ask started", "ask finished", "fail started", "fail failed"}; err == nil || !slices.Equal(told, want) {
		t.Errorf("%v, told: %q", err, told)
	}
}

// Regression: with a single node, the panic of the observer reached the caller, and the run stayed
// marked as running.
func TestI17_APanicOfWhoWatchesIsAnErrorOfTheRun(t *testing.T) {
	for _, state := range []graph.StepState{graph.StepStarted, graph.StepFinished} {
		var c counter
		h := newHarness(t, oneNode(write(&c, "node", fieldA)))
		_, err := h.start(notes{}, graph.OnStep(func(s graph.Step) {
			if s.State == state {
				panic("boom")
			}
		}))
		if _, ok := errors.AsType[*graph.PanicError](err); !ok {
			t.Fatalf("%s: got %v", state, err)
		}
		if s, err := h.resume(); err != nil || s.A == "" {
			t.Errorf("%s: got %+v, %v", state, s, err)
		}
	}
}
