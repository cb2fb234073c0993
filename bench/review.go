package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider/inproc"
)

// The first workload of the scenarios with waiting runs: a draft is written, reviewed by a person,
// and published.

// reviewed is its state.
type reviewed struct {
	Topic   string `json:"topic"`
	Text    string `json:"text,omitempty"`
	Verdict string `json:"verdict,omitempty"`
	Status  string `json:"status,omitempty"`
}

const (
	reviewGraph   = inproc.Name + ":content-review"
	reviewInput   = `{"topic":"tea"}`
	reviewVerdict = "approve"
	published     = "published"
)

var contentReview = fermata.NewKind[string, string]("bench-content-review")

// reviewProvider runs the graph with a draft.
func reviewProvider(text string) (*inproc.Provider, error) {
	g := graph.New[reviewed]("content-review")
	g.Node("draft", func(_ context.Context, s reviewed) (reviewed, error) {
		s.Text = text
		return s, nil
	})
	g.Node("human_review", func(ctx context.Context, s reviewed) (_ reviewed, err error) {
		s.Verdict, err = contentReview.Ask(ctx, s.Text)
		return s, err
	})
	g.Node("finalize", func(_ context.Context, s reviewed) (reviewed, error) {
		s.Status = "dropped"
		if s.Verdict == reviewVerdict {
			s.Status = published
		}
		return s, nil
	})
	g.Edge(graph.Start, "draft")
	g.Edge("draft", "human_review")
	g.Edge("human_review", "finalize")
	g.Edge("finalize", graph.End)
	flow, err := g.Compile()
	if err != nil {
		return nil, err
	}
	return inproc.New(inproc.Flow(flow, inproc.FlowConfig[reviewed]{}))
}

// checkAsked fails unless a run waits for the review of a text.
func checkAsked(outcome fermata.Outcome, text string) error {
	waiting, ok := outcome.(fermata.NeedsInput)
	if !ok || len(waiting.Interrupts) != 1 {
		return fmt.Errorf("the run should wait for one answer, but its outcome is %T", outcome)
	}
	var shown string
	if err := json.Unmarshal(waiting.Interrupts[0].Data, &shown); err != nil {
		return err
	}
	if shown != text {
		return fmt.Errorf("it shows %d bytes, want a text of %d", len(shown), len(text))
	}
	return nil
}

// checkPublished fails unless a run has ended correctly.
func checkPublished(outcome fermata.Outcome, text string) error {
	done, ok := outcome.(fermata.Completed)
	if !ok {
		return fmt.Errorf("the run should be completed, but its outcome is %T", outcome)
	}
	var state reviewed
	if err := json.Unmarshal(done.Output, &state); err != nil {
		return err
	}
	if state != (reviewed{Topic: "tea", Text: text, Verdict: reviewVerdict, Status: published}) {
		return fmt.Errorf("it ended as %q, %q, with %d bytes of text", state.Verdict, state.Status, len(state.Text))
	}
	return nil
}

// randomText returns a text of that many bytes without repetition, so that compression does not
// look better than with real data.
func randomText(size int) string {
	random := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for text.Len() < size {
		for range 2 + random.IntN(8) {
			text.WriteByte('a' + byte(random.IntN(26)))
		}
		text.WriteByte(' ')
	}
	return text.String()[:size]
}
