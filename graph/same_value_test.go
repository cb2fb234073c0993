package graph_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// stampedState has values that differ from their JSON round trip.
type stampedState struct {
	Seen    time.Time
	Hits    []hit
	Facts   map[string]any
	Hook    func() `json:"-"`
	Changes int
}

type hit struct {
	Tags []string `json:",omitempty"`
	At   time.Time
}

func (s stampedState) String() string {
	return fmt.Sprintf("%v %#v %#v %v", s.Seen, s.Hits, s.Facts, s.Hook != nil)
}

func stamp() stampedState {
	return stampedState{
		Seen: time.Now(), Hits: []hit{{Tags: []string{}, At: time.Now()}}, Hook: func() {},
		Facts: map[string]any{"n": 1, "at": time.Now(), "hit": hit{Tags: []string{}}},
	}
}

// Regression: the first entry of a node got the Go values of the node before, the second the
// decoded JSON. The question changed, and its answer was dropped.
func TestI14_StateIsTheSameOnFirstEntryAndReEntry(t *testing.T) {
	write := func(_ context.Context, s stampedState) (stampedState, error) { return stamp(), nil }
	same := func(_ context.Context, s stampedState) (stampedState, error) { return s, nil }
	line := func(first graph.Func[stampedState]) *graph.Graph[stampedState] {
		g := graph.New[stampedState]("line")
		g.Node("first", first)
		g.Edge(graph.Start, "first")
		g.Edge("first", "ask")
		return g
	}
	inSubgraph := func() *graph.Graph[stampedState] {
		inner := graph.New[stampedState]("inner")
		inner.Node("write", write)
		inner.Edge(graph.Start, "write")
		inner.Edge("write", graph.End)
		g := graph.New[stampedState]("outer")
		graph.Sub(g, "first", compile(t, inner), func(s stampedState) stampedState { return stamp() }, func(_, s stampedState) stampedState { s.Seen = time.Now(); return s })
		g.Edge(graph.Start, "first")
		g.Edge("first", "ask")
		return g
	}
	merging := func() *graph.Graph[stampedState] {
		g := graph.New[stampedState]("merging")
		for _, name := range []string{"a", "b"} {
			g.Node(name, func(_ context.Context, s stampedState) (stampedState, error) {
				s.Seen = s.Seen.Add(time.Hour)
				return s, nil
			})
			g.Edge(graph.Start, name)
			g.Edge(name, "ask")
		}
		graph.MergeField(g, "Seen", func(_, _, _ time.Time) (time.Time, error) { return time.Now(), nil })
		return g
	}
	for name, test := range map[string]struct {
		g       *graph.Graph[stampedState]
		options []graph.Option
	}{
		"of a node":           {line(write), nil},
		"of a node, unsaved":  {line(write), []graph.Option{graph.SaveOnWait()}},
		"of the input":        {line(same), nil},
		"of a subgraph":       {inSubgraph(), nil},
		"of a merge function": {merging(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var seen string
			test.g.Node("ask", func(ctx context.Context, s stampedState) (stampedState, error) {
				seen = s.String()
				_, err := question.Ask(ctx, seen)
				return s, err
			})
			test.g.Edge("ask", graph.End)
			h := newHarness(t, test.g)
			_, err := h.start(stamp(), test.options...)
			info, waits := fermata.ExtractInterruptInfo(err)
			if !waits {
				t.Fatal(err)
			}
			first := seen
			out, err := h.resume(graph.Answer(info.Interrupts[0].ID, "yes"))
			if err != nil || first != seen || out.String() != seen || out.Hook != nil {
				t.Errorf("first %s,\nthen  %s,\nended %s, %v", first, seen, out, err)
			}
		})
	}
}

// A caller's change is also seen as JSON from the start: the answer to the question of the modified
// state counts.
func TestStateModifier_ResultIsTheSameOnReEntry(t *testing.T) {
	g := graph.New[stampedState]("modified")
	g.Node("ask", func(ctx context.Context, s stampedState) (stampedState, error) {
		_, err := question.Ask(ctx, s.String())
		return s, err
	})
	g.Edge(graph.Start, "ask")
	g.Edge("ask", graph.End)
	h := newHarness(t, g)
	_, err := h.start(stampedState{})
	first, _ := fermata.ExtractInterruptInfo(err)
	_, err = h.resume(graph.Answer(first.Interrupts[0].ID, "yes"), graph.WithStateModifier(func(_ fermata.Address, state any) error {
		*state.(*stampedState) = stamp()
		return nil
	}))
	second, waits := fermata.ExtractInterruptInfo(err)
	if !waits {
		t.Fatal(err)
	}
	if _, err := h.resume(graph.Answer(second.Interrupts[0].ID, "yes")); err != nil {
		t.Error(err)
	}
}

type looseState struct {
	Facts map[string]any
	Any   any
}

// Regression: errors.New("boom") in an untyped field was "" in the next node, also without a save.
func TestState_UntypedValueThatJSONWouldLoseIsRejected(t *testing.T) {
	boom := errors.New("boom")
	for name, test := range map[string]struct {
		bad  looseState
		want string
	}{
		"in a map":       {looseState{Facts: map[string]any{"why": []any{boom}}}, `state field Facts: it["why"][0] holds a errors.errorString, whose field s is not exported and would be lost`},
		"in a struct":    {looseState{Any: hit{}}, ""},
		"as the value":   {looseState{Any: boom}, "state field Any: it holds a errors.errorString"},
		"in a typed map": {looseState{Any: map[string]error{"why": boom}}, `state field Any: it["why"] holds`},
		"not UTF-8":      {looseState{Facts: map[string]any{"name": "a\xff"}}, `state field Facts: it["name"] is not valid UTF-8`},
		"a channel":      {looseState{Any: make(chan int)}, "state field Any: it holds a chan int, which cannot be saved"},
	} {
		t.Run(name, func(t *testing.T) {
			g := graph.New[looseState]("loose")
			g.Node("first", func(_ context.Context, s looseState) (looseState, error) {
				if s.Facts == nil && s.Any == nil {
					return test.bad, nil
				}
				return s, nil
			})
			g.Edge(graph.Start, "first")
			g.Edge("first", graph.End)
			flow := compile(t, g)
			for where, start := range map[string]func() error{
				"a result":             func() error { _, err := newHarness(t, g).start(looseState{}); return err },
				"a result, not stored": func() error { _, err := flow.Run(t.Context(), looseState{}); return err },
				"the input":            func() error { _, err := flow.Run(t.Context(), test.bad); return err },
			} {
				err := start()
				if test.want == "" && err == nil {
					continue
				}
				if _, ok := errors.AsType[*fermata.EncodeError](err); !ok || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s: got %v", where, err)
				}
			}
		})
	}
}
