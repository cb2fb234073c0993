package graph_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// besideGate has a node of LatestState that asks about A, next to "asks", whose answer changes A.
// "drop" acts on the newest A.
func besideGate(c *counter) *graph.Graph[notes] {
	g := graph.New[notes]("beside")
	g.Node("asks", ask(c, "asks", fieldA))
	g.Node("gate", func(ctx context.Context, s notes) (notes, error) {
		c.add("enter gate")
		answer, err := question.Ask(ctx, "drop "+s.A+"?")
		s.B = answer
		return s, err
	}, graph.LatestState())
	g.Node("drop", func(_ context.Context, s notes) (notes, error) {
		s.C = s.B + ": dropped " + s.A
		return s, nil
	})
	g.Edge(graph.Start, "asks")
	g.Edge(graph.Start, "gate")
	g.Edge("asks", graph.End)
	g.Edge("gate", "drop")
	g.Edge("drop", graph.End)
	return g
}

// nested returns a graph that runs another one as its only node.
func nested(t testing.TB, inner *graph.Graph[notes]) *graph.Graph[notes] {
	g := graph.New[notes]("outer")
	graph.Sub(g, "inner", compile(t, inner), func(s notes) notes { return s }, func(_, s notes) notes { return s })
	g.Edge(graph.Start, "inner")
	g.Edge("inner", graph.End)
	return g
}

func TestI6_AGateWhoseStateChangedIsAskedAgainWithTheDifference(t *testing.T) {
	for _, sub := range []bool{false, true} {
		var c counter
		g := besideGate(&c)
		if sub {
			g = nested(t, g)
		}
		h := newHarness(t, g)
		_, err := h.start(notes{A: "tmp"})
		open := h.waits(err)
		before := find(t, open, "drop tmp?")
		_, err = h.answer(open, "asks?", "users")
		now := find(t, h.waits(err), "drop users?")
		want := []fermata.Change{{Pointer: "", Before: []byte(`"drop tmp?"`), After: []byte(`"drop users?"`)}}
		if now.ID == before.ID || now.Supersedes != before.ID || cmp.Diff(want, now.Changes) != "" {
			t.Errorf("got id %s (before %s), supersedes %q, changes %s", now.ID, before.ID, now.Supersedes, now.Changes)
		}
		version := h.version()
		_, err = h.resume(graph.Answer(before.ID, "yes"))
		wantErr(t, err, graph.ErrSuperseded)
		if h.version() != version {
			t.Error("an answer to the old version changed the run")
		}
		out, err := h.resume(graph.Answer(now.ID, "yes"))
		if err != nil || out.C != "yes: dropped users" {
			t.Errorf("got %+v, %v", out, err)
		}
	}
}

func TestI6_AGateThatShowsTheSameKeepsItsID(t *testing.T) {
	var c counter
	h := newHarness(t, besideGate(&c))
	_, err := h.start(notes{A: "tmp"})
	open := h.waits(err)
	_, err = h.answer(open, "asks?", "tmp")
	if now := find(t, h.waits(err), "drop tmp?"); now.ID != find(t, open, "drop tmp?").ID || now.Supersedes != "" {
		t.Errorf("got %+v", now)
	}
	c.want(t, map[string]int{"asks": 2, "enter gate": 1})
}

// Both are answered in one call: the approver has not seen the other answer.
func TestI6_AnAnswerToAGateIsRejectedIfAnotherAnswerChangesWhatItShowed(t *testing.T) {
	var c counter
	h := newHarness(t, besideGate(&c))
	_, err := h.start(notes{A: "tmp"})
	open := h.waits(err)
	gate := find(t, open, "drop tmp?")
	_, err = h.resume(graph.Answer(gate.ID, "yes"), graph.Answer(find(t, open, "asks?").ID, "users"))
	waiting, ok := errors.AsType[*fermata.InterruptError](err)
	if !ok || len(waiting.BadAnswers) != 1 || waiting.BadAnswers[0].ID != gate.ID || !errors.Is(waiting.BadAnswers[0].Err, graph.ErrSuperseded) {
		t.Fatalf("got %v", err)
	}
	now := find(t, h.waits(err), "drop users?")
	if now.Supersedes != gate.ID {
		t.Errorf("got %+v", now)
	}
	if out, err := h.resume(graph.Answer(now.ID, "yes")); err != nil || out.C != "yes: dropped users" {
		t.Errorf("got %+v, %v", out, err)
	}
}

// The gate is asked once, about the result of the branch that works next to it.
func TestLatestState_NodeIsEnteredAfterTheOtherBranches(t *testing.T) {
	var c counter
	g := besideGate(&c)
	g.Node("works", func(_ context.Context, s notes) (notes, error) { s.A = "old " + s.A; return s, nil })
	g.Edge(graph.Start, "works")
	g.Edge("works", graph.End)
	h := newHarness(t, g)
	_, err := h.start(notes{A: "tmp"})
	find(t, h.waits(err), "drop old tmp?")
}
