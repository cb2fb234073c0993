package graph_test

import (
	"context"
	"errors"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/store/memory"
)

type draftState struct {
	Topic   string
	Draft   string
	Verdict string
	Log     []string
}

var review = fermata.NewKind[string, string]("test-review")

func TestAsk_WaitsAndGoesOnWithTheAnswer(t *testing.T) {
	drafts := 0
	g := graph.New[draftState]("review")
	g.Node("draft", func(_ context.Context, s draftState) (draftState, error) {
		drafts++
		s.Draft = "about " + s.Topic
		s.Log = append(s.Log, "draft")
		return s, nil
	})
	g.Node("review", func(ctx context.Context, s draftState) (draftState, error) {
		v, err := review.Ask(ctx, s.Draft)
		if err != nil {
			return s, err
		}
		s.Verdict = v
		s.Log = append(s.Log, "review")
		return s, nil
	})
	g.Edge(graph.Start, "draft")
	g.Edge("draft", "review")
	g.Branch("review", func(s draftState) string {
		if s.Verdict == "approve" {
			return graph.End
		}
		return "draft"
	}, "draft", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	st := memory.New()
	_, err = flow.Run(t.Context(), draftState{Topic: "x"}, graph.WithStore(st), graph.WithRun("r1"))
	info, ok := fermata.ExtractInterruptInfo(err)
	if !ok || len(info.Interrupts) != 1 {
		t.Fatalf("got %v", err)
	}
	first := info.Interrupts[0]
	if first.Address.String() != "runnable:review;node:review" || first.Info != "about x" {
		t.Fatalf("got %+v", first)
	}
	_, err = flow.Resume(t.Context(), "r1", graph.WithStore(st), graph.Answer(first.ID, "revise"))
	info, ok = fermata.ExtractInterruptInfo(err)
	if !ok || info.Interrupts[0].ID == first.ID {
		t.Fatalf("got %v", err)
	}
	if _, err := flow.Resume(t.Context(), "r1", graph.WithStore(st), graph.Answer(first.ID, "approve")); !errors.Is(err, graph.ErrAlreadyAnswered) {
		t.Fatalf("got %v", err)
	}
	out, err := flow.Resume(fermata.ResumeWithData(t.Context(), info.Interrupts[0].ID, "approve"), "r1", graph.WithStore(st))
	if err != nil {
		t.Fatal(err)
	}
	if out.Verdict != "approve" || drafts != 2 || len(out.Log) != 4 {
		t.Fatalf("got %+v after %d drafts", out, drafts)
	}
	if _, err := flow.Resume(t.Context(), "r1", graph.WithStore(st)); !errors.Is(err, graph.ErrFinished) {
		t.Fatalf("got %v", err)
	}
	saved, _ := st.Load(t.Context(), storeKey("r1"))
	for name, data := range saved.Parts {
		t.Logf("%s = %s", name, data)
	}
}
