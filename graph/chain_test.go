package graph_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
)

func TestChain_NodesRunInOrderAndWaitWhereTheyAsk(t *testing.T) {
	g := graph.New[watchedState]("chained")
	add := func(name string) {
		g.Node(name, func(_ context.Context, s watchedState) (watchedState, error) { s.Text += name; return s, nil })
	}
	add("a")
	add("c")
	g.Node("b", func(ctx context.Context, s watchedState) (watchedState, error) {
		answer, err := watchedKind.Ask(ctx, "well?")
		s.Text += answer
		return s, err
	})
	g.Chain(graph.Start, "a", "b", "c", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	kept := graph.WithStore(memory.New())
	_, err = flow.Run(t.Context(), watchedState{}, kept)
	info, waits := fermata.ExtractInterruptInfo(err)
	if !waits || info.Interrupts[0].Address.String() != "runnable:chained;node:b" {
		t.Fatal(err)
	}
	state, err := flow.Resume(t.Context(), info.Run, kept, graph.Answer(info.Interrupts[0].ID, "-"))
	if err != nil || state.Text != "a-c" {
		t.Errorf("got %+v, %v", state, err)
	}
}

func TestChain_MistakesAreFoundByCompile(t *testing.T) {
	for want, chain := range map[string][]string{
		"chain of 1":           {"a"},
		"chain of 0":           nil,
		`unknown node "b"`:     {graph.Start, "a", "b", graph.End},
		`"a" is defined twice`: {graph.Start, "a", "a", "a", graph.End},
	} {
		g := graph.New[watchedState]("chained")
		g.Node("a", func(_ context.Context, s watchedState) (watchedState, error) { return s, nil })
		g.Chain(chain...)
		_, err := g.Compile()
		if wrong, ok := errors.AsType[*graph.CompileError](err); !ok || !strings.Contains(wrong.Error(), want) {
			t.Errorf("%q: got %v, want %q", chain, err, want)
		}
	}
}
