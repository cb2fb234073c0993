package inproc_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/gate"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/provider/inproc"
)

type table struct {
	Name    string `json:"name"`
	Dropped string `json:"dropped"`

	Decisions []gate.Record `json:"decisions,omitempty"`
}

var tableName = fermata.NewKind[string, string]("shown-table-name")

// serve starts a run of a graph with these nodes side by side.
func serve(t *testing.T, nodes map[string]graph.Func[table], change func(*graph.Graph[table])) (*executor.Executor, fermata.Outcome) {
	t.Helper()
	g := graph.New[table]("clerk")
	for name, run := range nodes {
		g.Node(name, run)
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	if change != nil {
		change(g)
	}
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	e := deployed(t, newStore(t), inproc.Flow(flow, inproc.FlowConfig[table]{}), func(*executor.Config) {})
	return e, start(t, e, `{"name":"tmp","dropped":""}`)
}

func open(t *testing.T, outcome fermata.Outcome, kind string) fermata.OpenInterrupt {
	t.Helper()
	waiting, _ := outcome.(fermata.NeedsInput)
	i := slices.IndexFunc(waiting.Interrupts, func(o fermata.OpenInterrupt) bool { return o.Kind == kind })
	if i < 0 {
		t.Fatalf("no %s is open: %#v", kind, outcome)
	}
	return waiting.Interrupts[i]
}

func say(t *testing.T, e *executor.Executor, resume string, id, value string) (fermata.Outcome, error) {
	t.Helper()
	return e.Run(t.Context(), executor.RunRequest{
		Account: "acme", StateKey: "trip-1", ResumeID: resume, Actor: "ann",
		Targets: map[string]executor.Answer{id: {Value: json.RawMessage(value)}},
	})
}

func asksName(ctx context.Context, s table) (table, error) {
	name, err := tableName.Ask(ctx, "which table?")
	if err == nil && name == "system" {
		err = fermata.RefuseAnswer(ctx, "not a system table")
	}
	s.Name = name
	return s, err
}

func TestI6_AServerAsksAgainWhatAHoldShowsChanged(t *testing.T) {
	drop := func(_ context.Context, s table) (table, error) { s.Dropped = s.Name; return s, nil }
	e, outcome := serve(t, map[string]graph.Func[table]{"asks": asksName, "drop": drop}, func(g *graph.Graph[table]) { g.HoldBefore("drop") })
	old := open(t, outcome, graph.KindHold)
	outcome, err := say(t, e, "r1", open(t, outcome, tableName.Name()).ID, `"users"`)
	if err != nil {
		t.Fatal(err)
	}
	now := open(t, outcome, graph.KindHold)
	if now.ID == old.ID || now.Supersedes != old.ID || !slices.Equal(now.Changed, []string{"/name"}) || string(now.Data) != `{"name":"users","dropped":""}` {
		t.Errorf("got %+v with %s", now, now.Data)
	}
	if outcome, err := say(t, e, "r2", old.ID, "null"); err == nil {
		t.Errorf("an answer to the old version is accepted: %#v", outcome)
	}
	outcome, err = say(t, e, "r3", now.ID, "null")
	if done, ok := outcome.(fermata.Completed); err != nil || !ok || string(done.Output) != `{"name":"users","dropped":"users"}` {
		t.Errorf("got %#v, %v", outcome, err)
	}
}

func TestI6_AServerAsksAgainWhatAGateShowsChanged(t *testing.T) {
	drop := func(_ context.Context, s table) (table, error) { s.Dropped = s.Name; return s, nil }
	approval := gate.Approval[table]{
		ID: "drop-table", Message: "Drop it?", Forward: "drop", Backward: "keep",
		Status: func(s table) string { return s.Name }, Decisions: func(s *table) *[]gate.Record { return &s.Decisions },
	}
	e, outcome := serve(t, map[string]graph.Func[table]{"asks": asksName}, func(g *graph.Graph[table]) {
		approval.Add(g, "gate")
		g.Node("drop", drop)
		g.Node("keep", func(_ context.Context, s table) (table, error) { return s, nil })
		g.Edge(graph.Start, "gate")
		g.Edge("drop", graph.End)
		g.Edge("keep", graph.End)
	})
	old := open(t, outcome, gate.Kind.Name())
	outcome, err := say(t, e, "r1", open(t, outcome, tableName.Name()).ID, `"users"`)
	if err != nil {
		t.Fatal(err)
	}
	now := open(t, outcome, gate.Kind.Name())
	if now.ID == old.ID || now.Supersedes != old.ID || !slices.Equal(now.Changed, []string{"/currentStatus"}) {
		t.Errorf("got %+v with %s", now, now.Data)
	}
	if outcome, err := say(t, e, "r2", old.ID, `{"approved":true}`); err == nil {
		t.Errorf("an answer to the old version is accepted: %#v", outcome)
	}
	outcome, err = say(t, e, "r3", now.ID, `{"approved":true}`)
	if done, ok := outcome.(fermata.Completed); err != nil || !ok || !strings.Contains(string(done.Output), `"dropped":"users"`) {
		t.Errorf("got %#v, %v", outcome, err)
	}
}

func TestI13_AServerShowsWhyANodeRefusedAnAnswer(t *testing.T) {
	e, outcome := serve(t, map[string]graph.Func[table]{"asks": asksName}, nil)
	asked := open(t, outcome, tableName.Name())
	outcome, err := say(t, e, "r1", asked.ID, `"system"`)
	if err != nil {
		t.Fatal(err)
	}
	again := open(t, outcome, tableName.Name())
	waiting := outcome.(fermata.NeedsInput)
	want := []fermata.UnusedAnswer{{ID: asked.ID, Reason: "not a system table"}}
	if again.Refused != "not a system table" || !slices.Equal(waiting.Unused, want) {
		t.Errorf("got %+v", waiting)
	}
	if outcome, err := say(t, e, "r2", again.ID, `"tmp"`); err != nil {
		t.Errorf("got %#v, %v", outcome, err)
	}
}

func TestExecutor_AFailureNextToAQuestionDoesNotHideIt(t *testing.T) {
	failed := false
	fails := func(_ context.Context, s table) (table, error) {
		if !failed {
			failed = true
			return s, errors.New("boom")
		}
		s.Dropped = "none"
		return s, nil
	}
	e, outcome := serve(t, map[string]graph.Func[table]{"asks": asksName, "fails": fails}, nil)
	asked := open(t, outcome, tableName.Name())
	waiting := outcome.(fermata.NeedsInput)
	if waiting.Failure == nil || waiting.Failure.Code != "node_failed" || waiting.Failure.Message == "" {
		t.Fatalf("the failure is not visible: %+v", waiting)
	}
	outcome, err := say(t, e, "r1", asked.ID, `"users"`)
	if done, ok := outcome.(fermata.Completed); err != nil || !ok || string(done.Output) != `{"name":"users","dropped":"none"}` {
		t.Errorf("got %#v, %v", outcome, err)
	}
}
