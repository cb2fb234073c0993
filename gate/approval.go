package gate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// Approval configures one gate in a graph with the state S.
type Approval[S any] struct {
	// ID identifies the gate in requests and records, for example "design_approval". It is required
	// and must be unique in its graph.
	ID string
	// Message tells the approver what to review.
	Message string
	// Status returns what the approver decides on: the item itself, a summary, or a digest. It must
	// depend only on the state. An approval counts only for the status that was shown: if a
	// parallel branch changes it, the gate asks again and shows the difference. By default the
	// status is empty, and an approval counts for any state.
	Status func(state S) string
	// Decisions returns the field of the state that stores the decisions. It is required. Gates may
	// share one.
	Decisions func(state *S) *[]Record
	// Forward is the node after an approval. Backward is the node after a rejection, a return for
	// redesign, or without a decision.
	Forward, Backward string
}

// Add adds the gate to a graph: a node with this name, and the branch after it. It panics if the
// gate is incomplete, so that an ineffective gate does not get into a program. Two gates with one
// ID are an error of Compile.
func (a Approval[S]) Add(g *graph.Graph[S], node string, options ...graph.NodeOption) {
	if mistake := a.invalid(); mistake != "" {
		panic(fmt.Sprintf("gate: the gate at node %q %s", node, mistake))
	}
	g.Protect(func(state *S) any { return a.Decisions(state) }) // nobody but the gate writes decisions
	g.Node(node, a.Ask, append(slices.Clip(options), graph.UniqueID(a.ID), graph.LatestState())...)
	g.Branch(node, a.Route, a.Forward, a.Backward)
}

func (a Approval[S]) invalid() string {
	switch {
	case a.ID == "":
		return "has no ID"
	case a.Decisions == nil:
		return "has no Decisions: set the state field that stores the decisions"
	case a.Forward == "":
		return "has no Forward: set the node after an approval"
	case a.Backward == "":
		return "has no Backward: set the node after a rejection"
	case a.Forward == a.Backward:
		return fmt.Sprintf("leads to %q after an approval and after a rejection: it would have no effect", a.Forward)
	}
	return ""
}

// Ask is the function of the node, a [graph.Func]: it waits for the decision and records it.
func (a Approval[S]) Ask(ctx context.Context, state S) (S, error) {
	trail := a.trail(&state)
	if trail == nil {
		return state, fmt.Errorf("gate: %q: Decisions returns nil", a.ID)
	}
	question := Question{Gate: a.ID, Message: a.Message}
	if a.Status != nil {
		question.CurrentStatus = a.Status(state)
	}
	signal, err := Kind.Ask(ctx, question)
	if back, ok := refused(err); ok {
		back.Gate = a.ID
		*trail = append(*trail, back)
		return state, nil
	}
	if err != nil {
		return state, err
	}
	at := signal.ApprovedAt
	if at.IsZero() { // and the same if the node is entered again
		if at, err = fermata.Do(ctx, "decided", func(ctx context.Context) (time.Time, error) { return fermata.Now(ctx).UTC(), nil }); err != nil {
			return state, err
		}
	}
	*trail = append(*trail, Record{
		Gate: a.ID, Approved: signal.Approved, At: at.UTC(), Feedback: signal.Feedback, By: signal.ApprovedBy, Auth: signal.Auth, Rule: signal.Rule,
	})
	return state, nil
}

// Route is the route of the branch, a [graph.Route]: Forward if the last decision of this gate is
// an approval, else Backward.
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
