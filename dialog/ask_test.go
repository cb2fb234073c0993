package dialog

import (
	"context"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
)

type mailState struct {
	To   string `json:"to"`
	Gave Answer `json:"gave,omitzero"`
}

// The question is an interrupt of the run, with its stored data byte for byte.
func TestAsk_WaitsInARunAndReturnsTheAnswer(t *testing.T) {
	const stored = "{\"b\": 1,  \"a\": [\"<ü>\"]}\n"
	g := graph.New[mailState]("mail")
	g.Node("whom", func(ctx context.Context, s mailState) (mailState, error) {
		answer, err := Ask(ctx, Question{Kind: Clarification, Text: "Which recipient?", Agent: "mail", Node: "whom", StoredData: stored, ToolResults: stored})
		s.Gave = answer
		return s, err
	})
	g.Edge(graph.Start, "whom")
	g.Edge("whom", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	saved := graph.WithStore(memory.New())
	_, err = flow.Run(ctx, mailState{}, saved, graph.WithRun("run-1"))
	info, ok := fermata.ExtractInterruptInfo(err)
	if !ok {
		t.Fatalf("the run does not wait: %v", err)
	}
	open := info.Interrupts[0]
	q, err := Request.Question(open)
	if err != nil || q.StoredData != stored || q.ToolResults != stored {
		t.Fatalf("question %+v, %v", q, err)
	}
	s, err := flow.Resume(fermata.ResumeWithData(ctx, open.ID, Answer{Text: "Anna", Method: ByText, At: time.Unix(1, 0).UTC()}), "run-1", saved)
	if err != nil || s.Gave.Text != "Anna" {
		t.Fatalf("%+v, %v", s, err)
	}
}
