package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider/inproc"
)

// HandOverGraph is the name of the graph of [HandOver]; its id on a server is "inproc:" and the
// name.
const HandOverGraph = "conversation-hand-over"

// HandedOver is a question that the user did not answer clearly, with the conversation. A person
// sees it in the inbox.
type HandedOver struct {
	Question   dialog.Question `json:"question"`
	Transcript []string        `json:"transcript"`
}

// PersonAnswer is the answer of a person for the user: an option, yes, fields or a text.
type PersonAnswer struct {
	Option string            `json:"option,omitempty"`
	Yes    bool              `json:"yes,omitempty"`
	Text   string            `json:"text,omitempty"`
	Fields map[string]string `json:"fields,omitempty"`
}

// ValidateFor rejects an option that the question does not have, and an empty answer.
func (a PersonAnswer) ValidateFor(asked HandedOver) error {
	q := asked.Question
	switch {
	case a.Option != "" && !slices.ContainsFunc(q.Options, func(o dialog.Option) bool { return o.ID == a.Option }):
		return fmt.Errorf("the question has no option %q", a.Option)
	case q.Kind == dialog.Disambiguation && a.Option == "":
		return fmt.Errorf("choose an option")
	case q.Kind == dialog.Clarification && a.Option == "" && a.Text == "":
		return fmt.Errorf("answer with a text")
	}
	return nil
}

// Person is the kind of the requests that ask a person to answer for a user.
var Person = fermata.NewKind[HandedOver, PersonAnswer]("conversation-hand-over")

type handOver struct {
	Asked HandedOver    `json:"asked"`
	Given *PersonAnswer `json:"given,omitempty"`
}

// HandOver returns the graph that asks a person. Register it with the provider of the agents.
func HandOver() (inproc.Graph, error) {
	g := graph.New[handOver](HandOverGraph)
	g.Node("ask", func(ctx context.Context, s handOver) (handOver, error) {
		given, err := Person.Ask(ctx, s.Asked)
		if err != nil {
			return s, err
		}
		s.Given = &given
		return s, nil
	})
	g.Edge(graph.Start, "ask")
	g.Edge("ask", graph.End)
	flow, err := g.Compile()
	if err != nil {
		return nil, err
	}
	return inproc.Flow(flow, inproc.FlowConfig[handOver]{Description: "Asks a person to answer a question of an agent for its user."}), nil
}

// maxTranscript is the size of a transcript in bytes of JSON. The request also has the question.
const maxTranscript = 64 << 10

// transcriptOf returns the last lines of a conversation, after "…" if there are earlier ones.
func transcriptOf(lines []dialog.Line) []string {
	var texts []string
	size := 0
	for _, line := range slices.Backward(lines) {
		text := string(line.From) + ": " + line.Text
		data, _ := json.Marshal(text) // a string
		if size += len(data) + 1; size > maxTranscript {
			texts = append(texts, "…")
			break
		}
		texts = append(texts, text)
	}
	slices.Reverse(texts)
	return texts
}
