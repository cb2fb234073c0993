// Package sample holds the graphs that the demo shows: a text that a person reviews, and a table that an agent would like to drop.
package sample

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider/inproc"
)

// Graphs are all of them.
func Graphs() ([]inproc.Graph, error) {
	review, err := contentReview()
	if err != nil {
		return nil, err
	}
	drop, err := dropTable()
	if err != nil {
		return nil, err
	}
	return []inproc.Graph{
		inproc.Flow(review, inproc.FlowConfig[article]{
			Description: "Writes a text and has a person review it, until they approve or reject it.", Content: func(a article) string { return a.Draft },
		}),
		inproc.Flow(drop, inproc.FlowConfig[table]{
			Description: "Drops a table (not a real one), if a person approves.", Content: func(t table) string { return t.Receipt },
		}),
	}, nil
}

// article is the state of a review. Only the topic has to be given.
type article struct {
	Topic     string   `json:"topic"`
	Draft     string   `json:"draft,omitempty"`
	Feedback  []string `json:"feedback,omitempty"`
	Verdict   verdict  `json:"verdict,omitzero"`
	Published bool     `json:"published,omitempty"`
}

var review = fermata.NewKind[question, verdict]("content-review")

// question is what the reviewer sees.
type question struct {
	Reason string `json:"reason"`
	Topic  string `json:"topic"`
	Draft  string `json:"draft"`
	Round  int    `json:"round"`
}

// verdict is what the reviewer says.
type verdict struct {
	Action        action `json:"action"`
	Feedback      string `json:"feedback,omitempty"`
	EditedContent string `json:"editedContent,omitempty"`
}

type action string

// Choices lists the actions, so that no other word passes for an answer.
func (action) Choices() []string { return []string{"approve", "revise", "reject"} }

// Validate checks what the types alone cannot say.
func (v verdict) Validate() error {
	if v.Action == "revise" && strings.TrimSpace(v.Feedback) == "" {
		return errors.New("to revise, feedback must say what should change")
	}
	return nil
}

// contentReview is
//
//	draft ──▶ human_review ──approve──▶ publish ──▶ end
//	  ▲            │  └──reject──▶ end
//	  └── revise ──┘
func contentReview() (*graph.Flow[article], error) {
	g := graph.New[article]("content-review")
	g.Node("draft", func(_ context.Context, a article) (article, error) {
		a.Draft = fmt.Sprintf("Five things about %s.", a.Topic)
		for _, wish := range a.Feedback {
			a.Draft += fmt.Sprintf(" Now with %s.", wish)
		}
		return a, nil
	})
	g.Node("human_review", func(ctx context.Context, a article) (article, error) {
		said, err := review.Ask(ctx, question{Reason: "Content ready for review", Topic: a.Topic, Draft: a.Draft, Round: len(a.Feedback) + 1})
		if err != nil {
			return a, err
		}
		if a.Verdict = said; said.Action == "revise" {
			a.Feedback = append(a.Feedback, said.Feedback)
		}
		return a, nil
	})
	g.Node("publish", func(_ context.Context, a article) (article, error) {
		if a.Verdict.EditedContent != "" {
			a.Draft = a.Verdict.EditedContent
		}
		a.Published = true
		return a, nil
	})
	g.Edge(graph.Start, "draft")
	g.Edge("draft", "human_review")
	g.Branch("human_review", func(a article) string {
		switch a.Verdict.Action {
		case "approve":
			return "publish"
		case "revise":
			return "draft"
		}
		return graph.End
	}, "publish", "draft", graph.End)
	g.Edge("publish", graph.End)
	return g.Compile()
}

// table is the state of a drop.
type table struct {
	Name    string `json:"name"`
	Rows    int    `json:"rows,omitempty"`
	Receipt string `json:"receipt,omitempty"`
}

// dropTable asks before it acts, and acts once.
func dropTable() (*graph.Flow[table], error) {
	g := graph.New[table]("drop-table")
	g.Node("drop", func(ctx context.Context, t table) (table, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[table]{
			Name: "drop-table", Args: t, Fixed: true, Summary: fmt.Sprintf("Drop the table %s with %d rows. It cannot be brought back.", t.Name, t.Rows),
		})
		if err != nil {
			return t, err
		}
		t.Receipt, err = fermata.Effect(ctx, yes, func(_ context.Context, t table, key string) (string, error) {
			return fmt.Sprintf("the table %s is gone (%s)", t.Name, key), nil
		})
		return t, err
	})
	g.Edge(graph.Start, "drop")
	g.Edge("drop", graph.End)
	return g.Compile()
}
