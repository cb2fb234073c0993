package gate_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/gate"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/sqlite"
)

func TestGate_AsksWithItsNameMessageAndStatus(t *testing.T) {
	open, question := begin(t).open()
	want := gate.Question{Gate: "design_approval", Message: "Review the design documents", CurrentStatus: "design 1 "}
	if question != want || open.Kind != "approval-gate" {
		t.Errorf("asked %+v of kind %s, want %+v", question, open.Kind, want)
	}
	if got := open.Address.String(); got != "runnable:pipeline;node:approveDesign" {
		t.Errorf("asked at %s", got)
	}
}

func TestGate_ApprovedGoesForwardToTheNextGate(t *testing.T) {
	j := begin(t)
	j.answer(yes())
	if _, question := j.open(); question.Gate != "dag_approval" {
		t.Errorf("waits at %s, want dag_approval", question.Gate)
	}
	out := j.answer(yes())
	if want := []string{"design", "distill", "implement"}; !cmp.Equal(out.Ran, want) {
		t.Errorf("ran %v, want %v", out.Ran, want)
	}
}

func TestGate_RejectedLoopsBackWithTheFeedback(t *testing.T) {
	j := begin(t)
	first, _ := j.open()
	j.answer(no("name the risks"))
	second, question := j.open()
	if question.Gate != "design_approval" || question.CurrentStatus != "design 2 name the risks" {
		t.Errorf("waits with %+v, want the design again, with the feedback in it", question)
	}
	if first.ID == second.ID {
		t.Error("the second interrupt has the id of the first")
	}
	if ran := j.saved().State.Ran; !cmp.Equal(ran, []string{"design", "design"}) {
		t.Errorf("ran %v, want the design twice and nothing else", ran)
	}
}

func TestGate_RejectedTaskDagLoopsBackToItsOwnNodeOnly(t *testing.T) {
	j := begin(t)
	j.answer(yes())
	j.answer(no("smaller tasks"))
	_, question := j.open()
	if question.Gate != "dag_approval" || question.CurrentStatus != "tasks 3 smaller tasks" {
		t.Errorf("waits with %+v, want the tasks again", question)
	}
	if ran := j.saved().State.Ran; !cmp.Equal(ran, []string{"design", "distill", "distill"}) {
		t.Errorf("ran %v", ran)
	}
}

func TestTrail_HoldsEveryDecisionInOrder(t *testing.T) {
	j := begin(t)
	j.answer(no("name the risks"))
	berlin := time.FixedZone("Berlin", 3600)
	j.answer(gate.Signal{Approved: true, ApprovedAt: noon.In(berlin), Feedback: "good", ApprovedBy: "bob"})
	j.answer(no(""))
	out := j.answer(yes())
	want := []gate.Record{
		{Gate: "design_approval", At: noon, Feedback: "name the risks", By: "alice"},
		{Gate: "design_approval", Approved: true, At: noon, Feedback: "good", By: "bob"},
		{Gate: "dag_approval", At: noon, By: "alice"},
		{Gate: "dag_approval", Approved: true, At: noon, By: "alice"},
	}
	if diff := cmp.Diff(want, out.Decisions); diff != "" {
		t.Errorf("trail (-want +got):\n%s", diff)
	}
	if zone := out.Decisions[1].At.Location(); zone != time.UTC {
		t.Errorf("a time in the history is in %s, want UTC", zone)
	}
}

func TestTrail_JSON(t *testing.T) {
	data, err := json.Marshal([]gate.Record{{Gate: "g", Approved: true, At: noon, Feedback: "f", By: "b"}, {Gate: "g", At: noon}})
	want := `[{"gate":"g","approved":true,"approvedAt":"2026-01-02T12:00:00Z","feedback":"f","approvedBy":"b"},` +
		`{"gate":"g","approved":false,"approvedAt":"2026-01-02T12:00:00Z"}]`
	if err != nil || string(data) != want {
		t.Errorf("got %s, %v; want %s", data, err, want)
	}
}

func TestRoute_GoesByTheLastDecisionOfItsOwnGate(t *testing.T) {
	mine := func(approved bool) gate.Record { return gate.Record{Gate: "design_approval", Approved: approved} }
	other := func(approved bool) gate.Record { return gate.Record{Gate: "dag_approval", Approved: approved} }
	for name, test := range map[string]struct {
		trail []gate.Record
		want  string
	}{
		"no decision":                                {nil, "design"},
		"approved":                                   {[]gate.Record{mine(true)}, "distill"},
		"rejected":                                   {[]gate.Record{mine(false)}, "design"},
		"approved after a rejection":                 {[]gate.Record{mine(false), mine(true)}, "distill"},
		"rejected after an approval":                 {[]gate.Record{mine(true), mine(false)}, "design"},
		"another gate's approval":                    {[]gate.Record{other(true)}, "design"},
		"another gate approved after mine":           {[]gate.Record{mine(false), other(true)}, "design"},
		"another gate rejected after mine":           {[]gate.Record{mine(true), other(false)}, "distill"},
		"a gate whose name only has the same prefix": {[]gate.Record{{Gate: "design_approval_2", Approved: true}}, "design"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := approveDesign.Route(pipeline{Decisions: test.trail}); got != test.want {
				t.Errorf("leads to %s, want %s", got, test.want)
			}
		})
	}
}

func TestRoute_WithoutATrailGoesBackward(t *testing.T) {
	lost := gate.Approval[pipeline]{ID: "g", Forward: "on", Backward: "back"}
	if got := lost.Route(pipeline{}); got != "back" {
		t.Errorf("leads to %s without Decisions", got)
	}
	lost.Decisions = func(*pipeline) *[]gate.Record { return nil }
	if got := lost.Route(pipeline{}); got != "back" {
		t.Errorf("leads to %s with Decisions that return nil", got)
	}
}

func TestAsk_WithoutDecisionsFieldReturnsError(t *testing.T) {
	lost := approveDesign
	lost.Decisions = func(*pipeline) *[]gate.Record { return nil }
	if _, err := lost.Ask(t.Context(), pipeline{}); err == nil || !strings.Contains(err.Error(), "design_approval") {
		t.Errorf("got %v, want an error that names the gate", err)
	}
}

func TestAdd_RefusesAGateThatWouldNotHold(t *testing.T) {
	for want, spoil := range map[string]func(*gate.Approval[pipeline]){
		"no ID":        func(a *gate.Approval[pipeline]) { a.ID = "" },
		"no Decisions": func(a *gate.Approval[pipeline]) { a.Decisions = nil },
		"no Forward":   func(a *gate.Approval[pipeline]) { a.Forward = "" },
		"no Backward":  func(a *gate.Approval[pipeline]) { a.Backward = "" },
		"after an approval and after a rejection": func(a *gate.Approval[pipeline]) { a.Backward = a.Forward },
	} {
		t.Run(want, func(t *testing.T) {
			spoilt := approveDesign
			spoil(&spoilt)
			defer func() {
				text, _ := recover().(string)
				if !strings.Contains(text, want) || !strings.Contains(text, `"approveDesign"`) {
					t.Errorf("panic %q, want one about node approveDesign with %q", text, want)
				}
			}()
			spoilt.Add(graph.New[pipeline]("g"), "approveDesign")
		})
	}
}

func TestAdd_AMisspeltTargetIsFoundByCompile(t *testing.T) {
	misspelt := approveDesign
	misspelt.Forward = "distil"
	g := graph.New[pipeline]("g")
	g.Node("design", work("design", func(*pipeline) {}))
	g.Edge(graph.Start, "design")
	g.Edge("design", "approveDesign")
	misspelt.Add(g, "approveDesign")
	if _, err := g.Compile(); err == nil || !strings.Contains(err.Error(), `"distil"`) {
		t.Errorf("got %v, want an error that names the target", err)
	}
}

func TestGate_WaitsInAFileThatIsClosedAndOpenedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gate.db")
	j := &journey{t: t, flow: newFlow(t)}
	reopen := func() (closeFile func()) {
		kept, err := sqlite.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		j.kept = kept
		return func() {
			if err := kept.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	closeFile := reopen()
	_, err := j.flow.Run(t.Context(), pipeline{}, graph.WithStore(j.kept), graph.WithRun("r"))
	info, waits := fermata.ExtractInterruptInfo(err)
	if !waits {
		t.Fatal(err)
	}
	for i, signal := range []gate.Signal{no("name the risks"), yes(), yes()} {
		closeFile()
		closeFile = reopen()
		open, _ := j.open()
		if i == 0 && open.ID != info.Interrupts[0].ID {
			t.Errorf("the interrupt is %s after opening the file again, it was %s", open.ID, info.Interrupts[0].ID)
		}
		j.answer(signal)
	}
	defer closeFile()
	saved := j.saved()
	if saved.Status != graph.StatusFinished || len(saved.State.Decisions) != 3 || saved.State.Decisions[0].Feedback != "name the risks" {
		t.Errorf("the run is %s with %+v", saved.Status, saved.State)
	}
}

func TestGate_SideBySideGatesShareOneTrailAndHoldBackWhatBothLeadTo(t *testing.T) {
	a := gate.Approval[pipeline]{ID: "a", Decisions: trail, Forward: "end", Backward: "start"}
	b := gate.Approval[pipeline]{ID: "b", Decisions: trail, Forward: "end", Backward: "start"}
	g := graph.New[pipeline]("both")
	graph.MergeField(g, "decisions", graph.Append[[]gate.Record])
	g.Node("start", work("start", func(*pipeline) {}))
	g.Node("end", work("end", func(*pipeline) {}))
	g.Edge(graph.Start, "start")
	g.Edge("start", "a")
	g.Edge("start", "b")
	a.Add(g, "a")
	b.Add(g, "b")
	g.Edge("end", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	kept := graph.WithStore(memory.New())
	out, err := flow.Run(t.Context(), pipeline{}, kept, graph.WithRun("r"))
	for _, signals := range [][2]gate.Signal{{yes(), no("")}, {yes(), yes()}} {
		info, waits := fermata.ExtractInterruptInfo(err)
		if !waits || len(info.Interrupts) != 2 {
			t.Fatalf("got %v, want two open gates", err)
		}
		out, err = flow.Resume(t.Context(), "r", kept,
			graph.Answer(info.Interrupts[0].ID, signals[0]), graph.Answer(info.Interrupts[1].ID, signals[1]))
	}
	if want := []string{"start", "start", "end"}; err != nil || len(out.Decisions) != 4 || !cmp.Equal(out.Ran, want) {
		t.Errorf("got %+v, %v; want four decisions, and the end once, after both approved", out, err)
	}
}

func TestAsk_WithoutATimeTheRunsTimeIsRecorded(t *testing.T) {
	j := begin(t)
	before := time.Now()
	j.answer(gate.Signal{Approved: true, ApprovedBy: "alice"})
	trail := j.saved().State.Decisions
	if len(trail) != 1 || trail[0].By != "alice" || trail[0].At.Before(before) || trail[0].At.After(time.Now()) {
		t.Errorf("the trail is %+v", trail)
	}
}

// Regression: the second gate took the decision of the first for its own.
func TestCompile_TwoGatesWithOneIDAreAnError(t *testing.T) {
	type state struct{ Decisions []gate.Record }
	g := graph.New[state]("twice")
	for _, node := range []string{"first", "second"} {
		gate.Approval[state]{ID: "design", Decisions: func(s *state) *[]gate.Record { return &s.Decisions }, Forward: graph.End, Backward: "first"}.Add(g, node)
		g.Edge(graph.Start, node)
	}
	_, err := g.Compile()
	if err == nil || !strings.Contains(err.Error(), `nodes "first" and "second" have the same id "design"`) {
		t.Errorf("got %v", err)
	}
}
