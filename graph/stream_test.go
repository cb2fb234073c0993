package graph_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// told collects the events of a stream as text, up to its error.
func told(events iter.Seq2[graph.Event, error]) (list []string, err error) {
	place := func(address string) string {
		return strings.ReplaceAll(strings.TrimPrefix(address, "runnable:told;"), "node:", "")
	}
	for event, err := range events {
		if err != nil {
			return list, err
		}
		switch event := event.(type) {
		case graph.Step:
			list = append(list, place(event.Address)+" "+string(event.State))
		case graph.Output:
			list = append(list, place(event.Address)+": "+event.Text)
		case graph.Finished[watchedState]:
			list = append(list, "finished "+event.State.Text)
		default:
			list = append(list, fmt.Sprintf("unexpected %T", event))
		}
	}
	return list, nil
}

func writer(ctx context.Context, s watchedState) (watchedState, error) {
	whole, err := fermata.Do(ctx, "write", func(ctx context.Context) (string, error) {
		for _, word := range []string{"one ", "two"} {
			graph.Emit(ctx, word)
		}
		return "one two", nil
	})
	if err != nil {
		return s, err
	}
	if _, err := watchedKind.Ask(ctx, "good?"); err != nil {
		return s, err
	}
	graph.Emit(ctx, "!")
	s.Text = whole + "!"
	return s, nil
}

func tellFlow(t *testing.T, node graph.Func[watchedState]) *graph.Flow[watchedState] {
	t.Helper()
	g := graph.New[watchedState]("told")
	g.Node("write", node)
	g.Chain(graph.Start, "write", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return flow
}

func TestStream_YieldsOutputAsItIsWrittenAndThenTheState(t *testing.T) {
	flow, kept := tellFlow(t, writer), graph.WithStore(memory.New())
	list, err := told(flow.Stream(t.Context(), watchedState{}, kept, graph.WithRun("r")))
	info, waits := fermata.ExtractInterruptInfo(err)
	if want := []string{"write started", "write;do:write: one ", "write;do:write: two", "write waits"}; !waits || !slices.Equal(list, want) {
		t.Fatalf("got %q, %v", list, err)
	}
	// the node is entered again; its finished work is not, so its output is not repeated
	list, err = told(flow.StreamResume(t.Context(), "r", kept, graph.Answer(info.Interrupts[0].ID, "yes")))
	if want := []string{"write started", "write: !", "write finished", "finished one two!"}; err != nil || !slices.Equal(list, want) {
		t.Errorf("got %q, %v", list, err)
	}
}

// A chunk reaches the caller while the node still runs.
func TestStream_OutputIsNotHeldBackUntilTheNodeEnds(t *testing.T) {
	seen := make(chan struct{})
	flow := tellFlow(t, func(ctx context.Context, s watchedState) (watchedState, error) {
		graph.Emit(ctx, "early")
		select {
		case <-seen:
			return s, nil
		case <-ctx.Done():
			return s, ctx.Err()
		}
	})
	for event, err := range flow.Stream(t.Context(), watchedState{}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := event.(graph.Output); ok {
			close(seen)
		}
	}
}

func TestStream_OutputOfInnerGraphsReachesTheCaller(t *testing.T) {
	inner := tellFlow(t, func(ctx context.Context, s watchedState) (watchedState, error) {
		graph.Emit(ctx, "deep")
		return s, nil
	})
	same := func(s watchedState) watchedState { return s }
	g := graph.New[watchedState]("told")
	graph.Sub(g, "sub", inner, same, func(_, s watchedState) watchedState { return s })
	g.Node("code", func(ctx context.Context, s watchedState) (watchedState, error) { return inner.Run(ctx, s) })
	g.Chain(graph.Start, "sub", "code", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	list, err := told(flow.Stream(t.Context(), watchedState{}))
	list = slices.DeleteFunc(list, func(line string) bool { return !strings.HasSuffix(line, ": deep") })
	if want := []string{"sub;write: deep", "code;runnable:told;write: deep"}; err != nil || !slices.Equal(list, want) {
		t.Errorf("got %q, %v", list, err)
	}
}

// Leaving the loop stops the run, which can be resumed.
func TestStream_LeavingTheLoopStopsTheRun(t *testing.T) {
	var ended bool
	flow, kept := tellFlow(t, func(ctx context.Context, s watchedState) (watchedState, error) {
		if !ended {
			defer func() { ended = true }()
			graph.Emit(ctx, "x")
			<-ctx.Done()
			return s, ctx.Err()
		}
		return watchedState{Text: "resumed"}, nil
	}), graph.WithStore(memory.New())
	for event := range flow.Stream(t.Context(), watchedState{}, kept, graph.WithRun("r")) {
		if _, ok := event.(graph.Output); ok {
			break
		}
	}
	if !ended {
		t.Fatal("the loop was left before the node ended")
	}
	if state, err := flow.Resume(t.Context(), "r", kept); err != nil || state.Text != "resumed" {
		t.Errorf("got %+v, %v", state, err)
	}
}

func TestStream_ErrorsComeLast(t *testing.T) {
	boom := errors.New("boom")
	flow := tellFlow(t, func(_ context.Context, s watchedState) (watchedState, error) { return s, boom })
	list, err := told(flow.Stream(t.Context(), watchedState{}))
	if want := []string{"write started", "write failed"}; !errors.Is(err, boom) || !slices.Equal(list, want) {
		t.Errorf("got %q, %v", list, err)
	}
	if _, err := told(flow.StreamResume(t.Context(), "none", graph.WithStore(memory.New()))); !errors.Is(err, graph.ErrUnknownRun) {
		t.Errorf("got %v", err)
	}
}

// The observers that the caller sets itself are called too.
func TestStream_KeepsTheObserversOfTheCaller(t *testing.T) {
	var steps, chunks int
	flow := tellFlow(t, func(ctx context.Context, s watchedState) (watchedState, error) { graph.Emit(ctx, "x"); return s, nil })
	list, err := told(flow.Stream(t.Context(), watchedState{}, graph.OnStep(func(graph.Step) { steps++ }), graph.OnOutput(func(graph.Output) { chunks++ })))
	if err != nil || len(list) != 4 || steps != 2 || chunks != 1 {
		t.Errorf("got %q, %v; %d steps, %d chunks", list, err, steps, chunks)
	}
}

func TestEmit_WithoutARunOrAnObserverDoesNothing(t *testing.T) {
	graph.Emit(t.Context(), "x")
	flow := tellFlow(t, func(ctx context.Context, s watchedState) (watchedState, error) { graph.Emit(ctx, "x"); return s, nil })
	if _, err := flow.Run(t.Context(), watchedState{}); err != nil {
		t.Error(err)
	}
}
