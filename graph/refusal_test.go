package graph_test

import (
	"context"
	"errors"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
)

type redesign struct {
	Plans  int    `json:"plans"`
	Reason string `json:"reason"`
	Done   bool   `json:"done"`
}

func heldPlan(t *testing.T, change func(*graph.Graph[redesign])) *graph.Flow[redesign] {
	t.Helper()
	g := graph.New[redesign]("redesign")
	g.Node("plan", func(_ context.Context, s redesign) (redesign, error) { s.Plans++; return s, nil })
	g.Node("act", func(_ context.Context, s redesign) (redesign, error) { s.Done = true; return s, nil })
	g.Edge(graph.Start, "plan")
	g.Edge("plan", "act")
	g.Edge("act", graph.End)
	g.HoldBefore("act")
	if change != nil {
		change(g)
	}
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return flow
}

func refusedID(t *testing.T, err error) string {
	t.Helper()
	info, ok := fermata.ExtractInterruptInfo(err)
	if !ok || len(info.Interrupts) != 1 {
		t.Fatalf("it does not wait: %v", err)
	}
	return info.Interrupts[0].ID
}

var returned = fermata.Refusal{Decision: fermata.Decision{Verb: fermata.VerbReturn, Reason: "smaller", By: "ann"}}

func TestRefusal_ReturnedHoldContinuesAtTheDeclaredNode(t *testing.T) {
	flow := heldPlan(t, func(g *graph.Graph[redesign]) {
		g.ReturnTo("plan", func(s *redesign, r fermata.Refusal) { s.Reason = r.By + ": " + r.Reason })
	})
	kept := graph.WithStore(memory.NewStore(nil))
	_, err := flow.Run(t.Context(), redesign{}, kept, graph.WithRun("r"))
	for n := range 2 {
		id := refusedID(t, err)
		if _, err = flow.Resume(t.Context(), "r", kept, graph.Answer(id, returned)); n == 1 {
			break
		}
	}
	last, err := flow.Resume(t.Context(), "r", kept, graph.Answer(refusedID(t, err), nil))
	if err != nil || last != (redesign{Plans: 3, Reason: "ann: smaller", Done: true}) {
		t.Errorf("state %+v, %v", last, err)
	}
}

func TestRefusal_HoldFailsWithoutADeclaredNode(t *testing.T) {
	for verb, want := range map[fermata.Verb]error{fermata.VerbReturn: &fermata.ReturnedError{}, fermata.VerbReject: &fermata.RejectedError{}} {
		flow := heldPlan(t, nil)
		kept := graph.WithStore(memory.NewStore(nil))
		_, err := flow.Run(t.Context(), redesign{}, kept, graph.WithRun("r"))
		refusal := returned
		refusal.Verb = verb
		state, err := flow.Resume(t.Context(), "r", kept, graph.Answer(refusedID(t, err), refusal))
		_, isReturned := errors.AsType[*fermata.ReturnedError](err)
		_, isRejected := errors.AsType[*fermata.RejectedError](err)
		if isReturned != (verb == fermata.VerbReturn) || isRejected != (verb == fermata.VerbReject) || state.Done {
			t.Errorf("%s: %+v, %v, want %T", verb, state, err, want)
		}
	}
}

func TestRefusal_ReturnToNamesAKnownNode(t *testing.T) {
	g := graph.New[redesign]("redesign")
	g.Node("plan", func(_ context.Context, s redesign) (redesign, error) { return s, nil })
	g.Edge(graph.Start, "plan")
	g.Edge("plan", graph.End)
	g.ReturnTo("plna", nil)
	if _, err := g.Compile(); err == nil {
		t.Error("a misspelt node is accepted")
	}
}

var size = fermata.NewKind[string, int]("refusal-size")

func TestRefusal_AskReturnsATypedError(t *testing.T) {
	g := graph.New[redesign]("ask")
	g.Node("ask", func(ctx context.Context, s redesign) (redesign, error) {
		_, err := size.Ask(ctx, "how big?")
		if back, ok := errors.AsType[*fermata.ReturnedError](err); ok {
			s.Reason = back.Reason
			return s, nil
		}
		return s, err
	})
	g.Edge(graph.Start, "ask")
	g.Edge("ask", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	kept := graph.WithStore(memory.NewStore(nil))
	_, err = flow.Run(t.Context(), redesign{}, kept, graph.WithRun("r"))
	id := refusedID(t, err)
	approve := fermata.Refusal{Decision: fermata.Decision{Verb: fermata.VerbApprove}}
	if _, err := flow.Resume(t.Context(), "r", kept, graph.Answer(id, approve)); err == nil {
		t.Error("a refusal can approve")
	}
	state, err := flow.Resume(t.Context(), "r", kept, graph.Answer(id, returned))
	if err != nil || state.Reason != "smaller" {
		t.Errorf("state %+v, %v", state, err)
	}
}
