package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

type innerState struct {
	In, Prepared, Answer string
}

// asking is a graph of three steps whose second asks.
func asking(c *counter) *graph.Graph[innerState] {
	g := graph.New[innerState]("asking")
	g.Node("prepare", func(_ context.Context, s innerState) (innerState, error) {
		c.add("prepare " + s.In)
		s.Prepared = "prepared " + s.In
		return s, nil
	})
	g.Node("ask", func(ctx context.Context, s innerState) (innerState, error) {
		c.add("ask " + s.In)
		answer, err := question.Ask(ctx, s.In+"?")
		s.Answer = answer
		return s, err
	})
	g.Node("after", func(_ context.Context, s innerState) (innerState, error) {
		c.add("after " + s.In)
		s.Answer += "!"
		return s, nil
	})
	g.Edge(graph.Start, "prepare")
	g.Edge("prepare", "ask")
	g.Edge("ask", "after")
	g.Edge("after", graph.End)
	return g
}

// twoAsking is a graph in which two parallel subgraphs wait.
func twoAsking(t testing.TB, c *counter) *graph.Graph[notes] {
	sub := compile(t, asking(c))
	g := graph.New[notes]("two")
	in := func(name string) func(notes) innerState {
		return func(notes) innerState { return innerState{In: name} }
	}
	graph.Sub(g, "left", sub, in("left"), func(s notes, r innerState) notes { s.A = r.Answer; return s })
	graph.Sub(g, "right", sub, in("right"), func(s notes, r innerState) notes { s.B = r.Answer; return s })
	g.Node("join", write(c, "join", fieldC))
	for _, name := range []string{"left", "right"} {
		g.Edge(graph.Start, name)
		g.Edge(name, "join")
	}
	g.Edge("join", graph.End)
	return g
}

// Other frameworks restart one of the two from its beginning, with an empty input.
func TestI14_TwoParallelSubgraphsWaitAndOneIsAnswered(t *testing.T) {
	var c counter
	h := newHarness(t, twoAsking(t, &c))
	_, err := h.start(notes{})
	open := h.waits(err)
	if got := addresses(open); !slices.Contains(got, "runnable:two;node:left;node:ask") || !slices.Contains(got, "runnable:two;node:right;node:ask") {
		t.Fatalf("got %v", got)
	}
	left := find(t, open, "left?")
	if left.Parent.Address.String() != "runnable:two;node:left" || left.Parent.Parent.Address.String() != "runnable:two" {
		t.Fatalf("got parents %v, %v", left.Parent.Address, left.Parent.Parent)
	}
	_, err = h.answer(open, "left?", "yes")
	rest := h.waits(err)
	if len(rest) != 1 || rest[0].ID != find(t, open, "right?").ID {
		t.Fatalf("got %v", infos(rest))
	}
	c.want(t, map[string]int{"prepare left": 1, "prepare right": 1, "ask left": 2, "ask right": 1, "after left": 1, "join": 0})
	out, err := h.answer(rest, "right?", "no")
	if err != nil || out.A != "yes!" || out.B != "no!" || out.C != "join" {
		t.Fatalf("got %+v, %v", out, err)
	}
	c.want(t, map[string]int{"prepare left": 1, "prepare right": 1, "ask left": 2, "ask right": 2, "after left": 1, "after right": 1, "join": 1})
}

func TestSub_NothingOfItIsLeftInTheStoreWhenItIsOver(t *testing.T) {
	var c counter
	h := newHarness(t, twoAsking(t, &c))
	_, err := h.start(notes{})
	open := h.waits(err)
	_, err = h.resume(graph.Answer(open[0].ID, "1"), graph.Answer(open[1].ID, "2"))
	if err != nil {
		t.Fatal(err)
	}
	for part := range h.parts() {
		if strings.Contains(part, "node:") {
			t.Errorf("%s is left", part)
		}
	}
}

// nest wraps a graph in a graph, with a node before and after it.
func nest(t testing.TB, c *counter, depth int, leaf fn) *graph.Flow[notes] {
	g := graph.New[notes](fmt.Sprint("level", depth))
	if depth == 0 {
		g.Node("leaf", leaf)
		g.Edge(graph.Start, "leaf")
		g.Edge("leaf", graph.End)
		return compile(t, g)
	}
	same := func(s notes) notes { return s }
	g.Node("before", func(_ context.Context, s notes) (notes, error) { c.add("before"); s.N++; return s, nil })
	graph.Sub(g, "inner", nest(t, c, depth-1, leaf), func(s notes) notes { return notes{N: s.N} }, func(_, r notes) notes { return same(r) })
	g.Node("after", func(_ context.Context, s notes) (notes, error) { c.add("after"); s.N++; return s, nil })
	g.Edge(graph.Start, "before")
	g.Edge("before", "inner")
	g.Edge("inner", "after")
	g.Edge("after", graph.End)
	return compile(t, g)
}

func TestSize_ALeafStateAtDepthTenIsStoredOnce(t *testing.T) {
	var c counter
	big := strings.Repeat("x", 64<<10)
	flow := nest(t, &c, 10, func(ctx context.Context, s notes) (notes, error) {
		if target, _, _ := fermata.GetResumeContext[string](ctx); target {
			_, _, kept := fermata.GetInterruptState[string](ctx)
			s.A = fmt.Sprint(len(kept))
			return s, nil
		}
		return s, fermata.StatefulInterrupt(ctx, "deep?", big)
	})
	h := &harness[notes]{t: t, flow: flow, st: memory.New(), run: "deep"}
	_, err := h.start(notes{})
	open := h.waits(err)
	saved, err := h.st.Load(t.Context(), storeKey(h.run))
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for name, data := range saved.Parts {
		size += len(name) + len(data)
	}
	if size > len(big)*11/10+10*1024 {
		t.Fatalf("64 KiB at depth 10 take %d bytes", size)
	}
	out, err := h.resume(graph.Answer(open[0].ID, nil))
	if err != nil || out.A != fmt.Sprint(len(big)) || out.N != 20 {
		t.Fatalf("got %+v, %v", out, err)
	}
	c.want(t, map[string]int{"before": 10, "after": 10})
}

func TestSize_ASaveCostsWhatTheStepChanged(t *testing.T) {
	type state struct {
		Document string
		Count    int
	}
	g := graph.New[state]("counting")
	g.Node("count", func(_ context.Context, s state) (state, error) { s.Count++; return s, nil })
	g.Edge(graph.Start, "count")
	g.Branch("count", func(s state) string {
		if s.Count < 20 {
			return "count"
		}
		return graph.End
	}, "count", graph.End)
	faulty := storetest.NewFaulty(memory.New())
	_, err := compile(t, g).Run(t.Context(), state{Document: strings.Repeat("d", 1<<20)}, graph.WithStore(faulty))
	if err != nil {
		t.Fatal(err)
	}
	if put := faulty.BytesPut(); put > 1<<20+20*1024 {
		t.Fatalf("20 steps that changed a number wrote %d bytes", put)
	}
}

func TestRun_InsideANodeIsPartOfTheRun(t *testing.T) {
	var c counter
	inner := compile(t, asking(&c))
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		c.add("node")
		r, err := inner.Run(ctx, innerState{In: "dynamic"})
		if err != nil {
			return s, err
		}
		second, err := question.Ask(ctx, "and then?")
		s.A, s.B = r.Answer, second
		return s, err
	}))
	_, err := h.start(notes{})
	open := h.waits(err)
	if got := open[0].Address.String(); got != "runnable:one;node:node;runnable:asking;node:ask" {
		t.Fatalf("got %s", got)
	}
	_, err = h.answer(open, "dynamic?", "yes")
	open = h.waits(err)
	out, err := h.answer(open, "and then?", "more")
	if err != nil || out.A != "yes!" || out.B != "more" {
		t.Fatalf("got %+v, %v", out, err)
	}
	c.want(t, map[string]int{"node": 3, "prepare dynamic": 1, "ask dynamic": 2, "after dynamic": 1})
}

type batch struct {
	Items   []string
	Results []string
}

func eachGraph(c *counter) *graph.Graph[batch] {
	g := graph.New[batch]("batch")
	graph.Each(g, "all", func(s batch) []string { return s.Items },
		func(ctx context.Context, item string) (string, error) {
			c.add(item)
			if strings.HasPrefix(item, "quick") {
				return item, nil
			}
			answer, err := question.Ask(ctx, item+"?")
			return item + "=" + answer, err
		},
		func(s batch, results []string) batch { s.Results = results; return s })
	g.Edge(graph.Start, "all")
	g.Edge("all", graph.End)
	return g
}

func TestEach_ItemsWaitOnTheirOwnAndKeepTheirOrder(t *testing.T) {
	var c counter
	h := newHarness(t, eachGraph(&c))
	_, err := h.start(batch{Items: []string{"a", "quick", "b", "c"}})
	open := h.waits(err)
	want := []string{"runnable:batch;node:all;item:0", "runnable:batch;node:all;item:2", "runnable:batch;node:all;item:3"}
	if got := addresses(open); !slices.Equal(got, want) {
		t.Fatalf("got %v", got)
	}
	_, err = h.answer(open, "c?", "3")
	rest := h.waits(err)
	c.want(t, map[string]int{"a": 1, "quick": 1, "b": 1, "c": 2})
	out, err := h.resume(graph.Answer(find(t, rest, "a?").ID, "1"), graph.Answer(find(t, rest, "b?").ID, "2"))
	if err != nil || !slices.Equal(out.Results, []string{"a=1", "quick", "b=2", "c=3"}) {
		t.Fatalf("got %v, %v", out.Results, err)
	}
	c.want(t, map[string]int{"a": 2, "quick": 1, "b": 2, "c": 2})
}

func TestEach_OnlyTheFailedItemIsRepeated(t *testing.T) {
	var c counter
	broken := true
	g := graph.New[batch]("failing")
	graph.Each(g, "all", func(s batch) []string { return s.Items },
		func(_ context.Context, item string) (string, error) {
			c.add(item)
			if broken && item == "bad" {
				return "", errors.New("no luck")
			}
			return strings.ToUpper(item), nil
		},
		func(s batch, results []string) batch { s.Results = results; return s })
	g.Edge(graph.Start, "all")
	g.Edge("all", graph.End)
	h := newHarness(t, g)
	if _, err := h.start(batch{Items: []string{"x", "bad", "y"}}); err == nil {
		t.Fatal("want an error")
	}
	broken = false
	out, err := h.resume()
	if err != nil || !slices.Equal(out.Results, []string{"X", "BAD", "Y"}) {
		t.Fatalf("got %v, %v", out.Results, err)
	}
	c.want(t, map[string]int{"x": 1, "y": 1, "bad": 2})
}

func TestEachFlow_EveryItemIsAGraph(t *testing.T) {
	var c counter
	type many struct{ All []innerState }
	g := graph.New[many]("many")
	graph.EachFlow(g, "each", func(s many) []innerState { return s.All }, compile(t, asking(&c)),
		func(s many, r []innerState) many { s.All = r; return s })
	g.Edge(graph.Start, "each")
	g.Edge("each", graph.End)
	h := newHarness(t, g)
	_, err := h.start(many{All: []innerState{{In: "x"}, {In: "y"}, {In: "z"}}})
	open := h.waits(err)
	if open[1].Address.String() != "runnable:many;node:each;item:1;node:ask" {
		t.Fatalf("got %v", addresses(open))
	}
	_, err = h.answer(open, "y?", "2")
	open = h.waits(err)
	c.want(t, map[string]int{"prepare x": 1, "prepare y": 1, "ask x": 1, "ask y": 2, "after y": 1, "ask z": 1})
	out, err := h.resume(graph.Answer(find(t, open, "x?").ID, "1"), graph.Answer(find(t, open, "z?").ID, "3"))
	got, _ := json.Marshal(out)
	if err != nil || string(got) != `{"All":[{"In":"x","Prepared":"prepared x","Answer":"1!"},{"In":"y","Prepared":"prepared y","Answer":"2!"},{"In":"z","Prepared":"prepared z","Answer":"3!"}]}` {
		t.Fatalf("got %s, %v", got, err)
	}
	c.want(t, map[string]int{"prepare x": 1, "prepare y": 1, "prepare z": 1})
}

// Each finished item is checked for a swallowed interrupt: only its own, not those of all others.
func TestSize_AFanOutOfWhichHalfWaitsCostsWhatItsItemsCost(t *testing.T) {
	type list struct{ Items []int }
	g := graph.New[list]("fan-out")
	graph.Each(g, "each item of a long list", func(s list) []int { return s.Items }, func(ctx context.Context, item int) (string, error) {
		if item%2 == 0 {
			return question.Ask(ctx, "ok?")
		}
		return "done", nil
	}, func(s list, _ []string) list { return s })
	g.MaxParallel(1) // the waiting ones have asked when the others finish
	g.Edge(graph.Start, "each item of a long list")
	g.Edge("each item of a long list", graph.End)
	cost := func(n int) uint64 {
		h := newHarness(t, g)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := h.start(list{numbers(n)})
		h.waits(err)
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	if few, many := cost(400), cost(3200); many > 12*few {
		t.Errorf("8 times as many items cost %d allocations instead of %d", many, few)
	}
}

func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
