// Package ops has a graph that plans an operation on a data warehouse and holds before irreversible
// work: deleting, changing the schema, copying data elsewhere.
package ops

import (
	"context"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// State is the plan, who granted it, and the result. A hold shows it. An approver may edit the
// plan, but not the grant.
type State struct {
	Request string `json:"request"`
	// Operation is the node that performs it; the other fields of the plan are its arguments.
	Operation string `json:"operation,omitempty"`
	Where     Where  `json:"where,omitempty"`
	Column    string `json:"column,omitempty"`
	Region    string `json:"region,omitempty"`

	// Approval is "granted" after a person released the hold, and Approver is that person. The
	// runtime writes both.
	Approval string `json:"approval,omitempty"`
	Approver string `json:"approver,omitempty"`

	// Redesign is why a person returned the plan.
	Redesign string   `json:"redesign,omitempty"`
	Log      []string `json:"log,omitempty"`
	Report   string   `json:"report,omitempty"`
}

// granted is the approval of a plan.
const granted = "granted"

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
//	  ▲    └──▶ ⏸ compliance_export ──────┤      ▲
//	  │                 │ │               │      │
//	  └──── returned ───┘ └─── denied ────┴──────┘
func New(w *Warehouse) (*graph.Flow[State], error) {
	g := graph.New[State]("dataops")
	g.Node("plan", plan)
	g.Node(destructive, perform(func(s State) string { return w.Delete(s.Where) }))
	g.Node(mutation, perform(func(s State) string { return w.DropColumn(s.Column) }))
	g.Node(export, perform(func(s State) string { return w.Export(s.Region) }))
	g.Node("report", report)

	g.HoldBefore(destructive, mutation, export)
	g.Protect(func(s *State) any { return &s.Approval })
	g.Protect(func(s *State) any { return &s.Approver })
	g.RecordGrant(func(s *State, by graph.HoldRecord) { s.Approval, s.Approver = granted, by.By })
	g.RejectTo("report", func(s *State, denied fermata.Refusal) {
		s.Log = append(s.Log, fmt.Sprintf("%s: denied by %s: %s", s.Operation, denied.By, denied.Reason))
	})
	g.ReturnTo("plan", func(s *State, returned fermata.Refusal) {
		s.Redesign = returned.Reason
		s.Log = append(s.Log, fmt.Sprintf("%s: returned by %s: %s", s.Operation, returned.By, returned.Reason))
	})

	g.Edge(graph.Start, "plan")
	g.Branch("plan", byOperation, destructive, mutation, export, "report")
	for _, operation := range []string{destructive, mutation, export} {
		g.Edge(operation, "report")
	}
	g.Edge("report", graph.End)
	return g.Compile()
}

// plan simulates an agent that plans a request, and makes a more careful plan if the first was
// returned for redesign.
func plan(_ context.Context, s State) (State, error) {
	again := s.Redesign != ""
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

func byOperation(s State) string {
	if s.Operation == "" {
		return "report"
	}
	return s.Operation
}

// perform returns a node that does its work if a named person granted it.
//
// If the process dies here, the resumed run repeats the operation. Deleting, dropping and copying
// are idempotent; for operations that are not, use fermata.Effect.
func perform(do func(State) string) graph.Func[State] {
	return func(_ context.Context, s State) (State, error) {
		note := "not done: nobody granted it"
		if s.Approval == granted && s.Approver != "" {
			note = fmt.Sprintf("%s, granted by %s", do(s), s.Approver)
		}
		s.Log = append(s.Log, s.Operation+": "+note)
		return s, nil
	}
}

func report(_ context.Context, s State) (State, error) {
	s.Report = strings.Join(s.Log, "\n")
	return s, nil
}
