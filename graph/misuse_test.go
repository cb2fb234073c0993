package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/limits"
	"github.com/fermata-go/fermata/internal/store/memory"
)

func askingGraph() *graph.Graph[notes] {
	g := graph.New[notes]("asks")
	g.Node("ask", func(ctx context.Context, s notes) (_ notes, err error) {
		s.A, err = question.Ask(ctx, "?")
		return s, err
	})
	g.Edge(graph.Start, "ask")
	g.Edge("ask", graph.End)
	return g
}

// Regression: answers for a new run and an id for a resumed one were ignored.
func TestRun_AnswersAreAnError(t *testing.T) {
	flow := compile(t, askingGraph())
	_, err := flow.Run(t.Context(), notes{}, graph.WithStore(memory.New()), graph.Answer("int_1", "yes"))
	wantErr(t, err, graph.ErrAnswersForNewRun)
	_, err = flow.Run(fermata.ResumeWithData(t.Context(), "int_1", "yes"), notes{}, graph.WithStore(memory.New()))
	wantErr(t, err, graph.ErrAnswersForNewRun)
}

func TestResume_WithRunIsAnError(t *testing.T) {
	h := newHarness(t, askingGraph())
	_, err := h.start(notes{})
	open := h.waits(err)
	_, err = h.resume(graph.Answer(open[0].ID, "yes"), graph.WithRun("other"))
	if err == nil || !strings.Contains(err.Error(), `WithRun("other")`) {
		t.Errorf("got %v", err)
	}
	if out, err := h.resume(graph.Answer(open[0].ID, "yes")); err != nil || out.A != "yes" {
		t.Errorf("the question should still be open: %+v, %v", out, err)
	}
}

func TestRun_StoppedBeforeItBeganReturnsErrStopped(t *testing.T) {
	for _, limit := range []time.Duration{0, graph.NoLimit} {
		h := newHarness(t, askingGraph())
		ctx, stop := graph.WithStop(t.Context())
		stop(limit)
		_, err := h.flow.Run(ctx, notes{}, graph.WithStore(h.st), graph.WithRun(h.run))
		wantErr(t, err, graph.ErrStopped)
		if _, err := h.start(notes{}); len(h.waits(err)) != 1 {
			t.Errorf("it should start now: %v", err)
		}
	}
}

func TestResume_FinishedRunReturnsItsState(t *testing.T) {
	h := newHarness(t, askingGraph())
	_, err := h.start(notes{})
	if _, err := h.answer(h.waits(err), "?", "yes"); err != nil {
		t.Fatal(err)
	}
	_, err = h.resume()
	finished, ok := errors.AsType[*graph.FinishedError](err)
	if !ok || !errors.Is(err, graph.ErrFinished) || finished.Run != h.run || finished.State.(notes).A != "yes" {
		t.Errorf("got %+v, %v", finished, err)
	}
}

// The limits of a server apply in the library, too: otherwise a program fails when it is deployed.
func TestLimits_OfAnswersAndDataApplyInTheLibrary(t *testing.T) {
	h := newHarness(t, askingGraph())
	_, err := h.start(notes{})
	open := h.waits(err)
	_, err = h.resume(graph.Answer(open[0].ID, strings.Repeat("a", limits.MaxAnswerBytes-1)))
	if bad, ok := errors.AsType[*fermata.AnswerError](err); !ok || bad.ID != open[0].ID || !strings.Contains(err.Error(), "65537 bytes") {
		t.Errorf("got %v", err)
	}
	if _, err := h.resume(graph.Answer(open[0].ID, strings.Repeat("a", limits.MaxAnswerBytes-2))); err != nil {
		t.Errorf("got %v", err)
	}
	for name, ask := range map[string]func(ctx context.Context, text string) error{
		"a question": func(ctx context.Context, text string) error { _, err := question.Ask(ctx, text); return err },
		"an info":    func(ctx context.Context, text string) error { return fermata.Interrupt(ctx, text) },
	} {
		g := graph.New[notes]("large")
		g.Node("ask", func(ctx context.Context, s notes) (notes, error) { return s, ask(ctx, s.A) })
		g.Edge(graph.Start, "ask")
		g.Edge("ask", graph.End)
		_, err := newHarness(t, g).start(notes{A: strings.Repeat("a", limits.MaxDataBytes-1)})
		if large, ok := errors.AsType[*fermata.DataSizeError](err); !ok || large.Size != limits.MaxDataBytes+1 {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := newHarness(t, g).start(notes{A: strings.Repeat("a", limits.MaxDataBytes-2)}); !isWaiting(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A hold shows the complete state. A state modifier can make it small enough.
func TestHold_LargeStateIsAnErrorUntilItIsSmaller(t *testing.T) {
	size := func(n int) int {
		data, _ := json.Marshal(notes{A: strings.Repeat("a", n), N: n})
		return len(data)
	}
	build := func() *graph.Graph[notes] {
		g := graph.New[notes]("large")
		g.Node("grow", func(_ context.Context, s notes) (notes, error) {
			s.A = strings.Repeat("a", s.N)
			return s, nil
		})
		g.Node("next", func(_ context.Context, s notes) (notes, error) { return s, nil })
		g.Edge(graph.Start, "grow")
		g.Edge("grow", "next")
		g.Edge("next", graph.End)
		return g
	}
	for name, hold := range map[string]func(g *graph.Graph[notes]){
		"before": func(g *graph.Graph[notes]) { g.HoldBefore("next") },
		"after":  func(g *graph.Graph[notes]) { g.HoldAfter("grow") },
	} {
		t.Run(name, func(t *testing.T) {
			g := build()
			hold(g)
			h := newHarness(t, g)
			_, err := h.start(notes{N: limits.MaxDataBytes})
			large, ok := errors.AsType[*fermata.DataSizeError](err)
			if !ok || large.Size <= limits.MaxDataBytes || !strings.Contains(err.Error(), "hold "+name) {
				t.Fatalf("got %.300v", err)
			}
			if _, err := h.resume(); err == nil || isWaiting(err) {
				t.Errorf("got %.300v", err)
			}
			_, err = h.resume(graph.WithStateModifier(func(_ fermata.Address, s any) error {
				s.(*notes).A = "short"
				return nil
			}))
			open := h.waits(err)
			if got := open[0].Info.(notes).A; got != "short" {
				t.Errorf("the hold shows %.20q", got)
			}
			if out, err := h.resume(graph.Answer(open[0].ID, nil)); err != nil || out.A != "short" {
				t.Errorf("got %.20q, %v", out.A, err)
			}
		})
	}
	g := build()
	g.HoldBefore("next")
	n := limits.MaxDataBytes - (size(limits.MaxDataBytes) - limits.MaxDataBytes)
	if _, err := newHarness(t, g).start(notes{N: n}); !isWaiting(err) {
		t.Errorf("a state of %d bytes: got %.300v", size(n), err)
	}
}

func isWaiting(err error) bool { _, waits := fermata.ExtractInterruptInfo(err); return waits }

func TestAnswer_IntegerWithAFractionOfZeroIsAccepted(t *testing.T) {
	type order struct{ Cents int }
	kind := fermata.NewKind[string, order]("test-order")
	g := graph.New[notes]("orders")
	g.Node("ask", func(ctx context.Context, s notes) (notes, error) {
		answer, err := kind.Ask(ctx, "?")
		s.N = answer.Cents
		return s, err
	})
	g.Edge(graph.Start, "ask")
	g.Edge("ask", graph.End)
	h := newHarness(t, g)
	_, err := h.start(notes{})
	if out, err := h.answer(h.waits(err), "?", json.RawMessage(`{"Cents":1000.0}`)); err != nil || out.N != 1000 {
		t.Errorf("got %+v, %v", out, err)
	}
}
