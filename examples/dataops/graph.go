package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// State is the plan, the approver's decision, and the result. A hold shows it; the answer is the
// edited state.
type State struct {
	Request string `json:"request"`
	// Operation is the node that performs it; the other fields of the plan are its arguments.
	Operation string `json:"operation"`
	Where     Where  `json:"where"`
	Column    string `json:"column"`
	Region    string `json:"region"`

	Approval  Approval `json:"approval"`
	Escalated bool     `json:"escalated"`
	// Releases says who released each hold. The runtime writes it, not the approver.
	Releases []graph.HoldRecord `json:"releases"`

	Log    []string `json:"log"`
	Report string   `json:"report"`
}

// Approval is the approver's decision; the zero value means none.
type Approval string

// The decisions of an approver.
const (
	Granted Approval = "granted"
	Denied  Approval = "denied"
)

// The operations that need a person's approval. Each is a node.
const (
	destructive = "transform_destructive"
	mutation    = "schema_mutate"
	export      = "compliance_export"
)

// New returns the graph over a warehouse. ⏸ marks the holds:
//
//	       ┌──▶ ⏸ transform_destructive ──┐
//	plan ──┼──▶ ⏸ schema_mutate ──────────┼──▶ report
//	  ▲    └──▶ ⏸ compliance_export ──────┤
//	  └──────────── returned ─────────────┘
func New(w *Warehouse) (*graph.Flow[State], error) {
	g := graph.New[State]("dataops")
	g.Node("plan", plan)
	g.Node(destructive, granted(func(s State) string { return w.Delete(s.Where) }))
	g.Node(mutation, granted(func(s State) string { return w.DropColumn(s.Column) }))
	g.Node(export, granted(func(s State) string { return w.Export(s.Region) }))
	g.Node("report", report)
	g.HoldBefore(destructive, mutation, export)
	g.RecordHolds(func(s *State) *[]graph.HoldRecord { return &s.Releases })
	g.ReturnTo("plan", noteReturn)
	g.Edge(graph.Start, "plan")
	g.Branch("plan", byOperation, destructive, mutation, export, "report")
	for _, operation := range []string{destructive, mutation, export} {
		g.Branch(operation, afterOperation, "plan", "report")
	}
	g.Edge("report", graph.End)
	return g.Compile()
}

// plan simulates an agent that plans a request, and makes a more careful plan if the first was
// escalated. A grant applies to one plan, so the new plan starts without one.
func plan(_ context.Context, s State) (State, error) {
	again := s.Escalated
	s.Approval, s.Escalated = "", false
	verb, rest, _ := strings.Cut(s.Request, " ")
	object := rest[strings.LastIndexByte(rest, ' ')+1:]
	s.Operation = map[string]string{"forget": destructive, "drop": mutation, "export": export}[verb]
	switch {
	case s.Operation == "" || object == "":
		s.Operation = ""
		s.Log = append(s.Log, fmt.Sprintf("nothing planned: %q is not understood", s.Request))
	case s.Operation == destructive:
		s.Where = Where{"customer": object}
		if again {
			s.Where["archived"] = "yes"
		}
	case again:
		s.Operation = ""
		s.Log = append(s.Log, "nothing planned: there is no more careful way")
	case s.Operation == mutation:
		s.Column = object
	default:
		s.Region = object
	}
	return s, nil
}

// noteReturn notes why a plan was returned for redesign. The held operation is not entered.
func noteReturn(s *State, returned fermata.Refusal) {
	s.Escalated = true
	s.Log = append(s.Log, fmt.Sprintf("%s: not done: returned by %s: %s", s.Operation, returned.By, returned.Reason))
}

func byOperation(s State) string {
	if s.Operation == "" {
		return "report"
	}
	return s.Operation
}

// granted returns a node that does its work if a named person granted it. Everything else is a
// denial: releasing a hold is not a grant.
//
// If the process dies here, the resumed run repeats the operation. Deleting, dropping and copying
// are idempotent; for operations that are not, see the package comment.
func granted(do func(State) string) graph.Func[State] {
	return func(_ context.Context, s State) (State, error) {
		note := "not done: not granted"
		approver := s.approver()
		switch {
		case s.Escalated:
			note = fmt.Sprintf("not done: escalated by %s", approver)
		case s.Approval == Denied:
			note = fmt.Sprintf("not done: denied by %s", approver)
		case s.Approval == Granted && approver == "":
			note = "not done: the grant names no person"
		case s.Approval == Granted:
			note = fmt.Sprintf("%s, granted by %s", do(s), approver)
		}
		s.Log = append(s.Log, s.Operation+": "+note)
		return s, nil
	}
}

// approver returns who released the last hold.
func (s State) approver() string {
	if len(s.Releases) == 0 {
		return ""
	}
	return s.Releases[len(s.Releases)-1].By
}

func afterOperation(s State) string {
	if s.Escalated {
		return "plan"
	}
	return "report"
}

func report(_ context.Context, s State) (State, error) {
	s.Report = strings.Join(s.Log, "\n")
	return s, nil
}
