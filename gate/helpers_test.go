package gate_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/gate"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// pipeline is the state of the graph of most tests:
//
//	design → approveDesign → (approved → distill | rejected → design)
//	distill → approveTaskDag → (approved → implement | rejected → distill)
type pipeline struct {
	Design    string        `json:"design"`
	Tasks     string        `json:"tasks"`
	Ran       []string      `json:"ran"`
	Decisions []gate.Record `json:"decisions"`
}

func trail(p *pipeline) *[]gate.Record { return &p.Decisions }

var (
	approveDesign = gate.Approval[pipeline]{
		ID: "design_approval", Message: "Review the design documents", Status: func(p pipeline) string { return p.Design },
		Decisions: trail, Forward: "distill", Backward: "design",
	}
	approveTaskDag = gate.Approval[pipeline]{
		ID: "dag_approval", Message: "Review the task DAG", Status: func(p pipeline) string { return p.Tasks },
		Decisions: trail, Forward: "implement", Backward: "distill",
	}
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func yes() gate.Signal { return gate.Signal{Approved: true, ApprovedAt: noon, ApprovedBy: "alice"} }

func no(feedback string) gate.Signal {
	return gate.Signal{ApprovedAt: noon, Feedback: feedback, ApprovedBy: "alice"}
}

func newFlow(t *testing.T) *graph.Flow[pipeline] {
	t.Helper()
	g := graph.New[pipeline]("pipeline")
	g.Node("design", work("design", func(p *pipeline) {
		last, _ := approveDesign.Last(*p)
		p.Design = fmt.Sprintf("design %d %s", len(p.Ran), last.Feedback)
	}))
	approveDesign.Add(g, "approveDesign")
	g.Node("distill", work("distill", func(p *pipeline) {
		last, _ := approveTaskDag.Last(*p)
		p.Tasks = fmt.Sprintf("tasks %d %s", len(p.Ran), last.Feedback)
	}))
	approveTaskDag.Add(g, "approveTaskDag")
	g.Node("implement", work("implement", func(*pipeline) {}))
	g.Edge(graph.Start, "design")
	g.Edge("design", "approveDesign")
	g.Edge("distill", "approveTaskDag")
	g.Edge("implement", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return flow
}

func work(name string, do func(*pipeline)) graph.Func[pipeline] {
	return func(_ context.Context, p pipeline) (pipeline, error) {
		p.Ran = append(p.Ran, name)
		do(&p)
		return p, nil
	}
}

// journey is one run of the pipeline.
type journey struct {
	t    *testing.T
	flow *graph.Flow[pipeline]
	kept store.Checkpoints
}

// begin starts a run, which stops at the design gate.
func begin(t *testing.T) *journey {
	t.Helper()
	j := &journey{t: t, flow: newFlow(t), kept: memory.New()}
	_, err := j.flow.Run(t.Context(), pipeline{}, graph.WithStore(j.kept), graph.WithRun("r"))
	if _, waits := fermata.ExtractInterruptInfo(err); !waits {
		t.Fatalf("the run does not wait: %v", err)
	}
	return j
}

func (j *journey) resume(options ...graph.Option) (pipeline, error) {
	return j.flow.Resume(j.t.Context(), "r", append(options, graph.WithStore(j.kept))...)
}

// open returns the only open interrupt, as the next process would find it.
func (j *journey) open() (*fermata.InterruptCtx, gate.Question) {
	j.t.Helper()
	saved := j.saved()
	if saved.Status != graph.StatusWaiting || len(saved.Interrupts) != 1 {
		j.t.Fatalf("the run is %s with %d open interrupts; want it to wait for one", saved.Status, len(saved.Interrupts))
	}
	question, err := gate.Kind.Question(saved.Interrupts[0])
	if err != nil {
		j.t.Fatal(err)
	}
	return saved.Interrupts[0], question
}

func (j *journey) saved() *graph.Snapshot[pipeline] {
	j.t.Helper()
	saved, err := j.flow.Inspect(j.t.Context(), "r", graph.WithStore(j.kept))
	if err != nil {
		j.t.Fatal(err)
	}
	return saved
}

// answer answers the open interrupt. The run must wait at the next gate, or finish after the last.
func (j *journey) answer(signal any) pipeline {
	j.t.Helper()
	open, _ := j.open()
	out, err := j.resume(graph.Answer(open.ID, signal))
	if _, waits := fermata.ExtractInterruptInfo(err); err != nil && !waits {
		j.t.Fatal(err)
	}
	return out
}
