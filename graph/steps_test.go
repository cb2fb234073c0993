package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/graph"
)

func TestSteps_BranchesOfUnequalLengthAreJoinedOnce(t *testing.T) {
	var c counter
	g := graph.New[notes]("join")
	g.Node("a", write(&c, "a", fieldA))
	g.Node("b", write(&c, "b", fieldB))
	g.Node("join", func(_ context.Context, s notes) (notes, error) {
		c.add("join")
		s.D = s.A + s.B
		return s, nil
	})
	g.Edge(graph.Start, "a")
	g.Edge("a", "join")
	g.Edge("a", "b")
	g.Edge("b", "join")
	g.Edge("join", graph.End)
	out, err := newHarness(t, g).start(notes{})
	if err != nil || out.D != "ab" {
		t.Fatalf("got %+v, %v", out, err)
	}
	c.want(t, map[string]int{"a": 1, "b": 1, "join": 1})
}

func TestSteps_BranchesGoOnWhileASiblingWaits(t *testing.T) {
	var c counter
	g := graph.New[notes]("goes-on")
	g.Node("asks", ask(&c, "asks", fieldA))
	g.Node("b1", write(&c, "b1", fieldB))
	g.Node("b2", write(&c, "b2", fieldC))
	g.Node("join", write(&c, "join", fieldD))
	g.Edge(graph.Start, "asks")
	g.Edge(graph.Start, "b1")
	g.Edge("b1", "b2")
	g.Edge("asks", "join")
	g.Edge("b2", "join")
	g.Edge("join", graph.End)
	h := newHarness(t, g)
	_, err := h.start(notes{})
	open := h.waits(err)
	c.want(t, map[string]int{"asks": 1, "b1": 1, "b2": 1, "join": 0})
	out, err := h.answer(open, "asks?", "yes")
	if err != nil || out.A != "yes" || out.C != "b2" || out.D != "join" {
		t.Fatalf("got %+v, %v", out, err)
	}
	c.want(t, map[string]int{"asks": 2, "b1": 1, "b2": 1, "join": 1})
}

func TestSteps_JoinInsideALoopWaitsForThisRoundOnly(t *testing.T) {
	var c counter
	g := graph.New[notes]("loop")
	g.Node("fork", func(_ context.Context, s notes) (notes, error) {
		c.add("fork")
		s.N++
		return s, nil
	})
	g.Node("quick", write(&c, "quick", fieldB))
	g.Node("asks", func(ctx context.Context, s notes) (notes, error) {
		c.add("asks")
		answer, err := question.Ask(ctx, "round "+string(rune('0'+s.N)))
		s.A = answer
		return s, err
	})
	g.Node("join", write(&c, "join", fieldD))
	g.Edge(graph.Start, "fork")
	g.Edge("fork", "quick")
	g.Edge("fork", "asks")
	g.Edge("quick", "join")
	g.Edge("asks", "join")
	g.Branch("join", func(s notes) string {
		if s.N < 2 {
			return "fork"
		}
		return graph.End
	}, "fork", graph.End)
	h := newHarness(t, g)
	_, err := h.start(notes{})
	first := h.waits(err)
	_, err = h.answer(first, "round 1", "one")
	second := h.waits(err)
	if first[0].ID == second[0].ID {
		t.Error("a later activation must have a new id")
	}
	out, err := h.answer(second, "round 2", "two")
	if err != nil || out.A != "two" || out.N != 2 {
		t.Fatalf("got %+v, %v", out, err)
	}
	c.want(t, map[string]int{"fork": 2, "quick": 2, "join": 2, "asks": 4})
}

// Regression: a text was published because its translation was ready, while the review had rejected
// it and was in its second iteration.
func TestI5_AJoinBehindALoopWaitsForTheLoop(t *testing.T) {
	for _, outer := range []bool{false, true} { // the whole may itself be in a loop
		var c counter
		g := graph.New[notes]("behind")
		g.Node("review", func(ctx context.Context, s notes) (notes, error) {
			answer, err := question.Ask(ctx, fmt.Sprintf("ok %d?", s.N))
			s.A = answer
			return s, err
		})
		g.Node("revise", func(_ context.Context, s notes) (notes, error) { s.N++; return s, nil })
		g.Node("translate", write(&c, "translate", fieldB))
		g.Node("publish", write(&c, "publish", fieldC))
		g.Node("start", pass)
		g.Edge(graph.Start, "start")
		g.Edge("start", "review")
		g.Edge("start", "translate")
		g.Branch("review", func(s notes) string {
			if s.A == "yes" {
				return "publish"
			}
			return "revise"
		}, "publish", "revise")
		g.Edge("revise", "review")
		g.Edge("translate", "publish")
		if outer {
			g.Branch("publish", func(notes) string { return graph.End }, "start", graph.End)
		} else {
			g.Edge("publish", graph.End)
		}
		h := newHarness(t, g)
		_, err := h.start(notes{})
		_, err = h.answer(h.waits(err), "ok 0?", "no")
		open := h.waits(err)
		c.want(t, map[string]int{"translate": 1, "publish": 0})
		if _, err := h.answer(open, "ok 1?", "yes"); err != nil {
			t.Fatal(err)
		}
		c.want(t, map[string]int{"publish": 1})
	}
}

// Regression: one branch of an iteration led back while another still waited, and the waiting node
// was entered a second time.
func TestSteps_TheNextRoundBeginsWhenThisOneIsOver(t *testing.T) {
	var c counter
	g := graph.New[notes]("rounds")
	g.Node("head", func(_ context.Context, s notes) (notes, error) { c.add("head"); s.N++; return s, nil })
	g.Node("asks", func(ctx context.Context, s notes) (notes, error) {
		answer, err := question.Ask(ctx, fmt.Sprintf("round %d?", s.N))
		s.A = answer
		return s, err
	})
	g.Node("impatient", write(&c, "impatient", fieldB))
	g.Node("join", write(&c, "join", fieldC))
	g.Edge(graph.Start, "head")
	g.Edge("head", "asks")
	g.Edge("head", "impatient")
	g.Edge("asks", "join")
	g.Branch("impatient", func(s notes) string {
		if s.N < 2 {
			return "head"
		}
		return "join"
	}, "head", "join")
	// so that all of it is one loop
	g.Branch("join", func(notes) string { return graph.End }, "head", graph.End)
	h := newHarness(t, g)
	_, err := h.start(notes{})
	first := h.waits(err)
	c.want(t, map[string]int{"head": 1, "impatient": 1})
	_, err = h.answer(first, "round 1?", "one")
	second := h.waits(err)
	if len(second) != 1 {
		t.Fatalf("got %v", infos(second))
	}
	c.want(t, map[string]int{"head": 2, "impatient": 2, "join": 1})
	out, err := h.answer(second, "round 2?", "two")
	if err != nil || out.A != "two" {
		t.Fatalf("got %+v, %v", out, err)
	}
	c.want(t, map[string]int{"head": 2, "join": 2})
}

func TestSteps_ParallelNodesGetTheStateAsItWas(t *testing.T) {
	g := graph.New[notes]("isolated")
	change := func(field func(*notes) *string) fn {
		return func(_ context.Context, s notes) (notes, error) {
			s.Log[0] = "changed in place" // its own copy
			*field(&s) = "saw " + strings.Join(s.Log[1:], ",")
			s.Log = []string{"start", "x"}
			return s, nil
		}
	}
	g.Node("a", change(fieldA))
	g.Node("b", change(fieldB))
	g.Edge(graph.Start, "a")
	g.Edge(graph.Start, "b")
	g.Edge("a", graph.End)
	g.Edge("b", graph.End)
	input := notes{Log: []string{"start", "x"}}
	out, err := newHarness(t, g).start(input)
	if err != nil || out.A != "saw x" || out.B != "saw x" {
		t.Fatalf("got %+v, %v", out, err)
	}
	if input.Log[0] != "start" {
		t.Error("the caller's input was changed")
	}
}

func twoWriters(merged bool) *graph.Graph[notes] {
	g := graph.New[notes]("conflict")
	for _, name := range []string{"left", "right"} {
		g.Node(name, func(_ context.Context, s notes) (notes, error) {
			s.Log = append(s.Log, name)
			return s, nil
		})
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	if merged {
		graph.MergeField(g, "Log", graph.Append[[]string])
	}
	return g
}

func TestMerge_TwoNodesThatChangedOneFieldAreNamed(t *testing.T) {
	h := newHarness(t, twoWriters(false))
	_, err := h.start(notes{Log: []string{"base"}})
	conflict, ok := errors.AsType[*graph.ConflictError](err)
	if !ok || conflict.Field != "Log" || conflict.Nodes != [2]string{"left", "right"} {
		t.Fatalf("got %v", err)
	}
	h.flow = compile(t, twoWriters(true))
	out, err := h.resume()
	if err != nil || !slices.Equal(out.Log, []string{"base", "left", "right"}) {
		t.Fatalf("after the merge function was added: %v, %v", out.Log, err)
	}
}

func TestMerge_FunctionMergesAgainstTheCommonBase(t *testing.T) {
	g := graph.New[notes]("sum")
	for i, name := range []string{"x", "y", "z"} {
		g.Node(name, func(_ context.Context, s notes) (notes, error) {
			s.N += i + 1
			return s, nil
		})
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	graph.MergeField(g, "N", graph.Sum[int])
	out, err := newHarness(t, g).start(notes{N: 10})
	if err != nil || out.N != 16 {
		t.Fatalf("got %d, %v", out.N, err)
	}
}

func TestMerge_WaitingNodeIsMergedAgainstItsBaseState(t *testing.T) {
	build := func(merge bool) *graph.Graph[notes] {
		g := graph.New[notes]("late")
		g.Node("late", func(ctx context.Context, s notes) (notes, error) {
			answer, err := question.Ask(ctx, "late?")
			s.Log = append(s.Log, answer)
			return s, err
		})
		g.Node("early", func(_ context.Context, s notes) (notes, error) {
			s.Log = append(s.Log, "early")
			return s, nil
		})
		g.Edge(graph.Start, "late")
		g.Edge(graph.Start, "early")
		g.Edge("late", graph.End)
		g.Edge("early", graph.End)
		if merge {
			graph.MergeField(g, "Log", graph.Append[[]string])
		}
		return g
	}
	h := newHarness(t, build(true))
	_, err := h.start(notes{Log: []string{"base"}})
	out, err := h.answer(h.waits(err), "late?", "late")
	if err != nil || !slices.Equal(out.Log, []string{"base", "early", "late"}) {
		t.Fatalf("got %v, %v", out.Log, err)
	}
	h = newHarness(t, build(false))
	_, err = h.start(notes{Log: []string{"base"}})
	_, err = h.answer(h.waits(err), "late?", "late")
	if conflict, ok := errors.AsType[*graph.ConflictError](err); !ok || conflict.Nodes != [2]string{"early", "late"} {
		t.Fatalf("got %v", err)
	}
}

func TestSteps_ALoopWithoutEndIsStopped(t *testing.T) {
	g := graph.New[notes]("endless")
	g.MaxSteps(7)
	g.Node("again", func(_ context.Context, s notes) (notes, error) {
		s.N++
		return s, nil
	})
	g.Edge(graph.Start, "again")
	g.Branch("again", func(notes) string { return "again" }, "again", graph.End)
	h := newHarness(t, g)
	_, err := h.start(notes{})
	limit, ok := errors.AsType[*graph.StepLimitError](err)
	if !ok || limit.Limit != 7 {
		t.Fatalf("got %v", err)
	}
	snapshot, err := h.flow.Inspect(t.Context(), h.run, graph.WithStore(h.st))
	if err != nil || snapshot.State.N != 7 || snapshot.Status != graph.StatusFailed {
		t.Fatalf("got %+v, %v", snapshot, err)
	}
}

func TestSteps_MaxParallelIsKept(t *testing.T) {
	g := graph.New[notes]("limited")
	g.MaxParallel(2)
	running, most := make(chan struct{}, 100), make(chan int, 100)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		g.Node(name, func(_ context.Context, s notes) (notes, error) {
			running <- struct{}{}
			most <- len(running)
			<-running
			return s, nil
		})
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	if _, err := newHarness(t, g).start(notes{}); err != nil {
		t.Fatal(err)
	}
	close(most)
	for n := range most {
		if n > 2 {
			t.Fatalf("%d nodes ran concurrently", n)
		}
	}
}
