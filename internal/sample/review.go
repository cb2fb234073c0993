package sample

import (
	"context"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// article is the state of a review. Only the topic is required.
type article struct {
	Topic     string   `json:"topic"`
	Draft     draft    `json:"draft,omitzero"`
	Warnings  []string `json:"warnings,omitempty"`
	Feedback  []string `json:"feedback,omitempty"`
	Revisions int      `json:"revisions,omitempty"`
	Verdict   verdict  `json:"verdict,omitzero"`
	Rejected  string   `json:"rejected,omitempty"`
	Published bool     `json:"published,omitempty"`
}

// content returns the result of the review as text.
func (a article) content() string {
	if a.Rejected != "" {
		return "Not published: " + a.Rejected
	}
	return a.Draft.Content
}

// draft is a draft text.
type draft struct {
	ID      string `json:"id"`
	Content string `json:"content"`
}

var review = fermata.NewKind[question, verdict]("content-review")

// question is what the reviewer sees.
type question struct {
	Reason           string            `json:"reason"`
	Draft            draft             `json:"draft"`
	Warnings         []string          `json:"warnings"`
	SuggestedActions []suggestedAction `json:"suggestedActions"`
}

// suggestedAction is a possible answer, shown as a button.
type suggestedAction struct {
	ID        string `json:"id"`
	Label     string `json:"label"`
	Action    action `json:"action"`
	IsPrimary bool   `json:"isPrimary,omitempty"`
}

// verdict is the reviewer's answer.
type verdict struct {
	Action        action `json:"action"`
	Feedback      string `json:"feedback,omitempty"`
	EditedContent string `json:"editedContent,omitempty"`
}

type action string

const (
	approve action = "approve"
	revise  action = "revise"
	reject  action = "reject"
)

// Choices lists the allowed actions.
func (action) Choices() []string { return []string{string(approve), string(revise), string(reject)} }

// maxRevisions is how often a text is revised before it must be approved or is rejected.
const maxRevisions = 5

// contentReview is
//
//	draft ──▶ auto_check ──pass──▶ human_review ──approve──▶ finalize ──▶ end
//	             ▲  └──fail──▶ end    │      └──reject──▶ end
//	             └─────── revise ◀────┘
func contentReview() (*graph.Flow[article], error) {
	g := graph.New[article]("content-review")
	g.Node("draft", func(_ context.Context, a article) (article, error) {
		a.write()
		return a, nil
	})
	g.Node("auto_check", autoCheck)
	g.Node("human_review", humanReview)
	g.Node("revise", func(_ context.Context, a article) (article, error) {
		a.Revisions++
		a.Feedback = append(a.Feedback, a.Verdict.Feedback)
		a.write()
		return a, nil
	})
	g.Node("finalize", func(_ context.Context, a article) (article, error) {
		if a.Verdict.EditedContent != "" {
			a.Draft.Content = a.Verdict.EditedContent
		}
		a.Published = true
		return a, nil
	})
	g.Edge(graph.Start, "draft")
	g.Edge("draft", "auto_check")
	g.Branch("auto_check", routeAfterCheck, "human_review", graph.End)
	g.Branch("human_review", routeAfterReview, "finalize", "revise", graph.End)
	g.Edge("revise", "auto_check")
	g.Edge("finalize", graph.End)
	return g.Compile()
}

// write writes the draft from the topic and the feedback so far.
func (a *article) write() {
	a.Draft = draft{ID: fmt.Sprintf("draft-%d", a.Revisions+1), Content: fmt.Sprintf("Five things about %s.", a.Topic)}
	for _, wish := range a.Feedback {
		if wish != "" {
			a.Draft.Content += fmt.Sprintf(" Now with %s.", wish)
		}
	}
}

// autoCheck rejects drafts that must not be published, before a person reviews them.
func autoCheck(_ context.Context, a article) (article, error) {
	a.Warnings = nil
	if strings.TrimSpace(a.Topic) == "" {
		a.Rejected = "it is about nothing"
	}
	if len(a.Draft.Content) < 40 {
		a.Warnings = append(a.Warnings, "it is short")
	}
	return a, nil
}

func humanReview(ctx context.Context, a article) (article, error) {
	reply, err := review.Ask(ctx, question{
		Reason: "Content ready for review", Draft: a.Draft, Warnings: append([]string{}, a.Warnings...),
		SuggestedActions: []suggestedAction{
			{ID: "approve", Label: "Approve & publish", Action: approve, IsPrimary: true},
			{ID: "revise", Label: "Request changes", Action: revise},
			{ID: "reject", Label: "Reject", Action: reject},
		},
	})
	if err != nil {
		return a, err
	}
	a.Verdict = reply
	switch {
	case reply.Action == reject:
		a.Rejected = "the reviewer did not want it"
		if reply.Feedback != "" {
			a.Rejected = reply.Feedback
		}
	case reply.Action == revise && a.Revisions >= maxRevisions:
		a.Rejected = fmt.Sprintf("it was still not right after %d revisions", maxRevisions)
	}
	return a, nil
}

func routeAfterCheck(a article) string {
	if a.Rejected != "" {
		return graph.End
	}
	return "human_review"
}

// routeAfterReview leads to finalize only for an explicit approval.
func routeAfterReview(a article) string {
	switch {
	case a.Rejected != "":
		return graph.End
	case a.Verdict.Action == approve:
		return "finalize"
	case a.Verdict.Action == revise:
		return "revise"
	}
	return graph.End
}
