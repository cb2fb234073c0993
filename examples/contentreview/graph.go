package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// MaxRevisions is the maximum number of revisions. A further revision request rejects the text.
const MaxRevisions = 3

// State is the state of the run. It is saved as JSON while the run waits.
type State struct {
	Topic string `json:"topic"`
	// File is where an approved text is published.
	File      string   `json:"file"`
	Draft     Draft    `json:"draft"`
	Warnings  []string `json:"warnings"`
	Feedback  []string `json:"feedback"`
	Revisions int      `json:"revisions"`
	// Verdict is the reviewer's last answer.
	Verdict Verdict `json:"verdict"`
	// Rejected is why the text must not be published, Published where it was published. One of them
	// is set at the end.
	Rejected  string `json:"rejected"`
	Published string `json:"published"`
	Trail     []Step `json:"trail"`
}

// Step is an entry in the history of the run.
type Step struct {
	At   time.Time `json:"at"`
	Node string    `json:"node"`
	Note string    `json:"note"`
}

func (s *State) note(node, format string, args ...any) {
	s.Trail = append(s.Trail, Step{At: time.Now().UTC(), Node: node, Note: fmt.Sprintf(format, args...)})
}

// New returns the graph:
//
//	draft ──▶ auto_check ──pass──▶ human_review ──approve──▶ finalize ──▶ end
//	             ▲  └──fail──▶ end    │      └──reject──▶ end
//	             └─────── revise ◀────┘
func New() (*graph.Flow[State], error) {
	g := graph.New[State]("content-review")
	g.Node("draft", draft)
	g.Node("auto_check", autoCheck)
	g.Node("human_review", humanReview)
	g.Node("revise", revise)
	g.Node("finalize", finalize)
	g.Edge(graph.Start, "draft")
	g.Edge("draft", "auto_check")
	g.Branch("auto_check", routeAfterCheck, "human_review", graph.End)
	g.Branch("human_review", routeAfterReview, "finalize", "revise", graph.End)
	g.Edge("revise", "auto_check")
	g.Edge("finalize", graph.End)
	return g.Compile()
}

func draft(_ context.Context, s State) (State, error) {
	s.Draft = Draft{ID: "draft-1", Content: compose(s.Topic, nil)}
	s.note("draft", "wrote %s", s.Draft.ID)
	return s, nil
}

func autoCheck(_ context.Context, s State) (State, error) {
	var violation string
	s.Warnings, violation = inspect(s.Draft.Content)
	switch {
	case violation != "":
		s.Rejected = "the automatic check found that " + violation
		s.note("auto_check", "failed: %s", violation)
	case len(s.Warnings) > 0:
		s.note("auto_check", "passed, warnings: %d", len(s.Warnings))
	default:
		s.note("auto_check", "passed")
	}
	return s, nil
}

// routeAfterCheck: pass or fail.
func routeAfterCheck(s State) string {
	if s.Rejected != "" {
		return graph.End
	}
	return "human_review"
}

// humanReview is entered twice: to ask, and again with the answer, a second or a month later.
func humanReview(ctx context.Context, s State) (State, error) {
	verdict, err := Review.Ask(ctx, question(s))
	if err != nil {
		return s, err
	}
	s.Verdict = verdict
	s.note("human_review", "%s%s", verdict.Action, quoted(verdict.Feedback))
	switch {
	case verdict.Action == Reject:
		s.Rejected = cmp.Or(verdict.Feedback, "the reviewer did not want it")
	case verdict.Action == Revise && s.Revisions >= MaxRevisions:
		s.Rejected = fmt.Sprintf("it was still not right after %d revisions", MaxRevisions)
	}
	return s, nil
}

func question(s State) Question {
	again := "Request changes"
	if s.Revisions >= MaxRevisions {
		again = fmt.Sprintf("Request changes (rejects: %d revisions are the limit)", MaxRevisions)
	}
	return Question{
		Reason: "Content ready for review", Draft: s.Draft, Warnings: s.Warnings,
		SuggestedActions: []SuggestedAction{
			{ID: "approve", Label: "Approve & publish", Action: Approve, IsPrimary: true},
			{ID: "revise", Label: again, Action: Revise},
			{ID: "reject", Label: "Reject", Action: Reject},
		},
	}
}

// routeAfterReview: approve, revise or reject. Only an approve leads to finalize.
func routeAfterReview(s State) string {
	switch {
	case s.Rejected != "":
		return graph.End
	case s.Verdict.Action == Approve:
		return "finalize"
	case s.Verdict.Action == Revise:
		return "revise"
	}
	return graph.End
}

func revise(_ context.Context, s State) (State, error) {
	s.Revisions++
	s.Feedback = append(s.Feedback, s.Verdict.Feedback)
	s.Draft = Draft{ID: fmt.Sprintf("draft-%d", s.Revisions+1), Content: compose(s.Topic, s.Feedback)}
	s.note("revise", "wrote %s (revision %d of %d)", s.Draft.ID, s.Revisions, MaxRevisions)
	return s, nil
}

// Article is the argument of publishing: the policy decides on exactly these values, and exactly
// these are used.
type Article struct {
	File string `json:"file"`
	Text string `json:"text"`
}

// finalize is the only node with an external effect.
func finalize(ctx context.Context, s State) (State, error) {
	approved, err := fermata.Approve(ctx, fermata.Action[Article]{
		Name: "publish", Summary: "Publish " + s.Draft.ID,
		Args: Article{File: s.File, Text: cmp.Or(s.Verdict.EditedContent, s.Draft.Content)},
	})
	if err != nil {
		return s, err
	}
	// If the process dies here, the resumed run writes the same text to the same file.
	s.Published, err = fermata.Effect(ctx, approved, publish, fermata.Idempotent())
	if err != nil {
		return s, err
	}
	s.note("finalize", "published %s", s.Draft.ID)
	return s, nil
}

func publish(_ context.Context, a Article, _ string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(a.File), 0o755); err != nil {
		return "", err
	}
	return a.File, os.WriteFile(a.File, []byte(a.Text+"\n"), 0o644)
}

// Reviewed is the policy of the run. It allows publish without a second question, because only a
// person's approval leads to finalize. Without this policy [fermata.Approve] would ask.
var Reviewed = fermata.PolicyFunc(func(_ context.Context, a fermata.ActionRequest) (fermata.Ruling, error) {
	if a.Action == "publish" {
		return fermata.Ruling{Verdict: fermata.Allow, Rule: "reviewed", Reason: "a person approved this text"}, nil
	}
	return fermata.Ruling{Verdict: fermata.AskPerson}, nil
})

func quoted(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(": “%s”", text)
}
