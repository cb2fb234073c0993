package sample

import (
	"context"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// incident is the state of an incident that needs a restore.
type incident struct {
	Service string `json:"service"`
	Backup  string `json:"backup,omitempty"`
}

var choice = fermata.NewKind[choiceQuestion, choiceAnswer]("choice")

// choiceQuestion is a question with a list of possible answers.
type choiceQuestion struct {
	Question string         `json:"question"`
	Options  []choiceOption `json:"options"`
}

type choiceOption struct {
	ID     string `json:"id"`
	Label  string `json:"label"`
	Detail string `json:"detail,omitempty"`
}

// choiceAnswer names one of the options.
type choiceAnswer struct {
	Choice string `json:"choice"`
}

// ValidateFor rejects an answer that is not an option.
func (a choiceAnswer) ValidateFor(q choiceQuestion) error {
	ids := make([]string, len(q.Options))
	for i, o := range q.Options {
		if o.ID == a.Choice {
			return nil
		}
		ids[i] = o.ID
	}
	return fmt.Errorf("%q is not one of the options %s", a.Choice, strings.Join(ids, ", "))
}

// restoreBackup asks which backup to restore.
func restoreBackup() (*graph.Flow[incident], error) {
	g := graph.New[incident]("restore-backup")
	g.Node("choose", func(ctx context.Context, i incident) (incident, error) {
		answer, err := choice.Ask(ctx, choiceQuestion{
			Question: fmt.Sprintf("Which backup of %s should be restored?", i.Service),
			Options: []choiceOption{
				{ID: "02:00", Label: "Last night, 02:00", Detail: "complete, loses six hours of orders"},
				{ID: "07:45", Label: "This morning, 07:45", Detail: "taken during the incident, not verified"},
				{ID: "none", Label: "None", Detail: "repair by hand"},
			},
		})
		i.Backup = answer.Choice
		return i, err
	})
	g.Edge(graph.Start, "choose")
	g.Edge("choose", graph.End)
	return g.Compile()
}
