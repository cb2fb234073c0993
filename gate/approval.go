package gate

import (
	"context"
	"fmt"
	"slices"

	"github.com/fermata-go/fermata/graph"
)

// Approval describes one gate in a graph over the state S.
type Approval[S any] struct {
	// ID names the gate in questions and records, as "design_approval". It must be set, and be unique in its graph.
	ID string
	// Message tells the person what to look at.
	Message string
	// Status says what the person is to decide on: the thing itself, a summary, a digest. It must go by the state alone. A yes
	// counts only for the status that was shown. The default is an empty status, and then a yes counts for whatever is there.
	Status func(state S) string
	// Decisions returns the place in the state where the trail is kept. It must be set. Gates may share one.
	Decisions func(state *S) *[]Record
	// Forward is the node after a yes. Backward is the node after a no, and wherever there is no decision.
	Forward, Backward string
}

// Add puts the gate into a graph: a node of this name, and the branch after it. It panics if the gate is not fully described,
// so that a gate which would not hold does not get into a program.
func (a Approval[S]) Add(g *graph.Graph[S], node string, options ...graph.NodeOption) {
	if mistake := a.invalid(); mistake != "" {
		panic(fmt.Sprintf("gate: the gate at node %q %s", node, mistake))
	}
	g.Node(node, a.Ask, options...)
	g.Branch(node, a.Route, a.Forward, a.Backward)
}

func (a Approval[S]) invalid() string {
	switch {
	case a.ID == "":
		return "has no ID"
	case a.Decisions == nil:
		return "has no Decisions: where in the state is the trail kept?"
	case a.Forward == "":
		return "has no Forward: which node comes after a yes?"
	case a.Backward == "":
		return "has no Backward: which node comes after a no?"
	case a.Forward == a.Backward:
		return fmt.Sprintf("leads to %q after a yes and after a no: it would hold nothing back", a.Forward)
	}
	return ""
}

// Ask is what the node does, a [graph.Func]: it waits for the decision and writes it down.
func (a Approval[S]) Ask(ctx context.Context, state S) (S, error) {
	trail := a.trail(&state)
	if trail == nil {
		return state, fmt.Errorf("gate: %q has no place to keep its decision", a.ID)
	}
	question := Question{Gate: a.ID, Message: a.Message}
	if a.Status != nil {
		question.CurrentStatus = a.Status(state)
	}
	signal, err := Kind.Ask(ctx, question)
	if err != nil {
		return state, err
	}
	*trail = append(*trail, Record{
		Gate: a.ID, Approved: signal.Approved, At: signal.ApprovedAt.UTC(), Feedback: signal.Feedback, By: signal.ApprovedBy,
	})
	return state, nil
}

// Route is where the branch leads, a [graph.Route]: Forward if the last decision of this gate is a yes, else Backward.
func (a Approval[S]) Route(state S) string {
	if last, ok := a.Last(state); ok && last.Approved {
		return a.Forward
	}
	return a.Backward
}

// Last returns the last decision of this gate, and false if there is none.
func (a Approval[S]) Last(state S) (Record, bool) {
	trail := a.trail(&state)
	if trail == nil {
		return Record{}, false
	}
	for _, record := range slices.Backward(*trail) {
		if record.Gate == a.ID {
			return record, true
		}
	}
	return Record{}, false
}

func (a Approval[S]) trail(state *S) *[]Record {
	if a.Decisions == nil {
		return nil
	}
	return a.Decisions(state)
}
