package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata/gate"
	"github.com/fermata-go/fermata/graph"
)

// State contains the results of the pipeline so far, and every decision.
type State struct {
	Idea      string        `json:"idea"`
	Design    string        `json:"design"`
	Tasks     []string      `json:"tasks"`
	Built     []string      `json:"built"`
	Decisions []gate.Record `json:"decisions"`
}

func decisions(s *State) *[]gate.Record { return &s.Decisions }

var approveDesign = gate.Approval[State]{
	ID:        "design_approval",
	Message:   "Review PRD, TAS, and other design documents",
	Status:    func(s State) string { return s.Design },
	Decisions: decisions,
	Forward:   "distill",
	Backward:  "design",
}

var approveTaskDag = gate.Approval[State]{
	ID:        "dag_approval",
	Message:   "Review task DAG (phases, atomic tasks, DAG edges)",
	Status:    func(s State) string { return strings.Join(s.Tasks, "\n") },
	Decisions: decisions,
	Forward:   "implement",
	Backward:  "distill",
}

// New returns the graph:
//
//	design → approveDesign → (approved → distill | rejected → design)
//	distill → approveTaskDag → (approved → implement | rejected → distill)
func New() (*graph.Flow[State], error) {
	g := graph.New[State]("dev-pipeline")
	g.Node("design", design)
	g.Node("distill", distill)
	g.Node("implement", implement)
	approveDesign.Add(g, "approveDesign")
	approveTaskDag.Add(g, "approveTaskDag")
	g.Edge(graph.Start, "design")
	g.Edge("design", "approveDesign")
	g.Edge("distill", "approveTaskDag")
	g.Edge("implement", graph.End)
	return g.Compile()
}

// design simulates an agent that writes documents.
func design(_ context.Context, s State) (State, error) {
	if last, rejected := approveDesign.Last(s); rejected {
		s.Design += "\n- changed after review: " + last.Feedback
		return s, nil
	}
	s.Design = fmt.Sprintf("Design of %s\n- what it is for, and for whom\n- its parts, and how they talk", s.Idea)
	return s, nil
}

// distill simulates an agent that derives tasks from a design.
func distill(_ context.Context, s State) (State, error) {
	if last, rejected := approveTaskDag.Last(s); rejected {
		s.Tasks = append(s.Tasks, fmt.Sprintf("%d %s (after %d)", len(s.Tasks)+1, last.Feedback, len(s.Tasks)))
		return s, nil
	}
	s.Tasks = []string{"1 data model", "2 storage (after 1)", "3 commands (after 1 and 2)"}
	return s, nil
}

// implement would write the code. It is reached only with an approval at both gates.
func implement(_ context.Context, s State) (State, error) {
	for _, task := range s.Tasks {
		s.Built = append(s.Built, "built: "+task)
	}
	return s, nil
}
