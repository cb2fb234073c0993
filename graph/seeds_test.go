package graph_test

import (
	"context"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// The tests of this file show requirements of docs/requirements.md that no other test shows
// directly.

func TestSeed002_BatchResumeWithDataAnswersEachTarget(t *testing.T) {
	var c counter
	h := newHarness(t, oneNode(processes(&c)))
	_, err := h.start(notes{})
	open := h.waits(err)
	ctx := fermata.BatchResumeWithData(t.Context(), map[string]any{open[0].ID: "zero", open[1].ID: "one", open[2].ID: nil})
	out, err := h.flow.Resume(ctx, h.run, graph.WithStore(h.st))
	if err != nil || out.A != "truezero,trueone,false" {
		t.Fatalf("got %q, %v", out.A, err)
	}
}

// A run that is held before three nodes in turn continues exactly at each of them: no node runs
// twice, and the state is complete.
func TestSeed004_HeldRunContinuesAtTheNodeAndRepeatsNothing(t *testing.T) {
	var c counter
	nodes := []string{"plan", "transform_destructive", "schema_mutate", "compliance_export"}
	g := graph.New[notes]("ops")
	before := graph.Start
	for _, name := range nodes {
		g.Node(name, func(_ context.Context, s notes) (notes, error) {
			c.add(name)
			s.A += name + ";"
			return s, nil
		})
		g.Edge(before, name)
		before = name
	}
	g.Edge(before, graph.End)
	g.HoldBefore(nodes[1:]...)
	h := newHarness(t, g)
	out, err := h.start(notes{N: 7})
	for i := 1; i < len(nodes); i++ {
		open := h.waits(err)
		if want := "runnable:ops;hold:before#" + nodes[i]; len(open) != 1 || open[0].Address.String() != want {
			t.Fatalf("it waits at %v, want %s", addresses(open), want)
		}
		want := make(map[string]int)
		for at, name := range nodes {
			want[name] = 0
			if at < i {
				want[name] = 1
			}
		}
		c.want(t, want)
		state, infoErr := fermata.InfoAs[notes](open[0])
		if infoErr != nil || state.N != 7 {
			t.Fatalf("the hold shows %+v, %v", state, infoErr)
		}
		out, err = h.resume(graph.Answer(open[0].ID, nil))
	}
	if want := "plan;transform_destructive;schema_mutate;compliance_export;"; err != nil || out.A != want || out.N != 7 {
		t.Errorf("got %+v, %v", out, err)
	}
	for _, name := range nodes {
		c.want(t, map[string]int{name: 1})
	}
}
