package gate_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/gate"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/store/memory"
)

type Plan struct {
	Text      string        `json:"text"`
	Decisions []gate.Record `json:"decisions"`
}

// A plan is written, reviewed, rewritten with the reviewer's feedback, and then executed.
func ExampleApproval() {
	approve := gate.Approval[Plan]{
		ID:        "plan_approval",
		Message:   "May this be carried out?",
		Status:    func(p Plan) string { return p.Text },
		Decisions: func(p *Plan) *[]gate.Record { return &p.Decisions },
		Forward:   "carry_out",
		Backward:  "write",
	}
	g := graph.New[Plan]("plan")
	g.Node("write", func(_ context.Context, p Plan) (Plan, error) {
		p.Text = "move the data"
		if last, ok := approve.Last(p); ok {
			p.Text += ", " + last.Feedback
		}
		return p, nil
	})
	g.Node("carry_out", func(_ context.Context, p Plan) (Plan, error) {
		fmt.Println("done:", p.Text)
		return p, nil
	})
	g.Edge(graph.Start, "write")
	g.Edge("write", "approve")
	approve.Add(g, "approve")
	g.Edge("carry_out", graph.End)
	flow, err := g.Compile()
	if err != nil {
		log.Fatal(err)
	}

	ctx, kept := context.Background(), graph.WithStore(memory.New())
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	answers := []gate.Signal{
		{Approved: false, ApprovedAt: noon, Feedback: "after a backup", ApprovedBy: "alice"},
		{Approved: true, ApprovedAt: noon.Add(time.Hour), ApprovedBy: "alice"},
	}
	plan, err := flow.Run(ctx, Plan{}, kept, graph.WithRun("plan-1"))
	for _, answer := range answers {
		info, waits := fermata.ExtractInterruptInfo(err)
		if !waits {
			log.Fatal(err)
		}
		question, err2 := gate.Kind.Question(info.Interrupts[0])
		fmt.Println(question.Gate, "asks:", question.Message, question.CurrentStatus, err2)
		plan, err = flow.Resume(ctx, "plan-1", kept, graph.Answer(info.Interrupts[0].ID, answer))
	}
	for _, d := range plan.Decisions {
		fmt.Println(d.At.Format(time.TimeOnly), d.By, d.Approved, d.Feedback)
	}
	// Output:
	// plan_approval asks: May this be carried out? move the data <nil>
	// plan_approval asks: May this be carried out? move the data, after a backup <nil>
	// done: move the data, after a backup
	// 12:00:00 alice false after a backup
	// 13:00:00 alice true
}
