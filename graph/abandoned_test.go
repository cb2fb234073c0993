package graph_test

import (
	"context"
	"errors"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// Code that a node leaves running when it returns must not affect the run.

// Regression: a graph in a goroutine of a node continued after the node had returned, and saved
// into a run that another process may own.
func TestEnded_AnInnerGraphThatWasLeftBehindStopsAndSavesNothing(t *testing.T) {
	var c counter
	begun, returned, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	inner := graph.New[notes]("inner")
	inner.Node("slow", func(ctx context.Context, s notes) (notes, error) {
		close(begun)
		<-returned
		_, err := fermata.Do(ctx, "work", func(context.Context) (string, error) {
			c.add("work")
			return "", nil
		})
		if !errors.Is(err, fermata.ErrEnded) {
			t.Errorf("Do: got %v", err)
		}
		return s, nil
	})
	inner.Node("next", write(&c, "next", fieldA))
	inner.Edge(graph.Start, "slow")
	inner.Edge("slow", "next")
	inner.Edge("next", graph.End)
	flow := compile(t, inner)
	g := graph.New[notes]("outer")
	g.Node("n", func(ctx context.Context, s notes) (notes, error) {
		go func() {
			_, err := flow.Run(ctx, s)
			ended <- err
		}()
		<-begun
		return s, errDown
	})
	g.Edge(graph.Start, "n")
	g.Edge("n", graph.End)
	h := newHarness(t, g)
	_, err := h.start(notes{})
	wantErr(t, err, errDown)
	before := h.version()
	close(returned)

	wantErr(t, <-ended, fermata.ErrEnded)

	if h.version() != before {
		t.Error("the run was changed")
	}
	c.want(t, map[string]int{"work": 0, "next": 0})
}

// Regression: late code reopened an interrupt whose answer it could not use: the result reported an
// open interrupt that was not saved.
func TestEnded_LateCodeCannotReopenAnInterrupt(t *testing.T) {
	waits, looked := make(chan struct{}), make(chan struct{})
	g := graph.New[notes]("left-behind")
	g.Node("n", func(ctx context.Context, s notes) (notes, error) {
		part := fermata.AppendAddressSegment(ctx, "part", "p")
		_, unsure := question.Ask(ctx, "sure?")
		if interrupted, _, _ := fermata.GetInterruptState[string](part); !interrupted {
			return s, errors.Join(unsure, fermata.Interrupt(part, "how many?"))
		}
		go func() {
			<-waits
			if target, _, _ := fermata.GetResumeContext[int](part); target {
				t.Error("it may go on")
			}
			close(looked)
		}()
		return s, unsure
	})
	g.Edge(graph.Start, "n")
	g.Edge("n", graph.End)
	h := newHarness(t, g)
	_, err := h.start(notes{})
	open := h.waits(err)

	_, err = h.resume(graph.Answer(find(t, open, "how many?").ID, "many"), graph.OnStep(func(s graph.Step) {
		if s.State == graph.StepWaiting {
			close(waits)
			<-looked
		}
	}))

	if got := infos(h.waits(err)); len(got) != 1 || got[0] != "sure?" {
		t.Errorf("waits for %v", got)
	}
}

// For the race detector: a waiting node read the interrupts of all others while their code was
// using them.
func TestResume_WrongTypeNextToAWaitingInnerGraph(t *testing.T) {
	for range 10 {
		var c counter
		inner := graph.New[notes]("inner")
		for _, name := range []string{"a", "b"} {
			inner.Node(name, ask(&c, name, fieldA))
			inner.Edge(graph.Start, name)
			inner.Edge(name, graph.End)
		}
		g := graph.New[notes]("outer")
		graph.Sub(g, "sub", compile(t, inner), func(s notes) notes { return s }, func(s, _ notes) notes { return s })
		g.Node("counts", func(ctx context.Context, s notes) (notes, error) {
			if target, _, n := fermata.GetResumeContext[int](ctx); target {
				s.N = n
				return s, nil
			}
			return s, fermata.Interrupt(ctx, "how many?")
		})
		for _, name := range []string{"sub", "counts"} {
			g.Edge(graph.Start, name)
			g.Edge(name, graph.End)
		}
		h := newHarness(t, g)
		_, err := h.start(notes{})
		open := h.waits(err)

		_, err = h.resume(graph.Answer(find(t, open, "how many?").ID, "many"), graph.Answer(find(t, open, "a?").ID, "yes"))

		if got := infos(h.waits(err)); len(got) != 2 {
			t.Fatalf("waits for %v", got)
		}
	}
}
