package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/web/webtest"
	"github.com/fermata-go/fermata/provider/inproc"
)

type dropTable struct {
	Name string `json:"name"`
}

var whichTable = fermata.NewKind[string, string]("web-which-table")

// dropGraph asks for a table next to a hold that shows the table.
func dropGraph(t *testing.T) inproc.Graph {
	t.Helper()
	g := graph.New[dropTable]("drop")
	g.Node("which", func(ctx context.Context, s dropTable) (dropTable, error) {
		name, err := whichTable.Ask(ctx, "Which table?")
		if err == nil && name == "system" {
			err = fermata.RefuseAnswer(ctx, "not a <system> table")
		}
		s.Name = name
		return s, err
	})
	g.Node("drop", func(_ context.Context, s dropTable) (dropTable, error) { return s, nil })
	for _, node := range []string{"which", "drop"} {
		g.Edge(graph.Start, node)
		g.Edge(node, graph.End)
	}
	g.HoldBefore("drop")
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Flow(flow, inproc.FlowConfig[dropTable]{})
}

func TestRequest_ShowsWhatChangedAndWhyAnAnswerWasRefused(t *testing.T) {
	s := open(t, func(c *webtest.Config) { c.Graphs = append(c.Graphs, dropGraph(t)) })
	run := func(r executor.RunRequest) map[string]fermata.OpenInterrupt {
		t.Helper()
		r.Account, r.StateKey = webtest.Account, "d1"
		outcome, err := s.Executor.Run(t.Context(), r)
		waiting, ok := outcome.(fermata.NeedsInput)
		if err != nil || !ok {
			t.Fatalf("got %#v, %v", outcome, err)
		}
		open := make(map[string]fermata.OpenInterrupt)
		for _, i := range waiting.Interrupts {
			open[i.Kind] = i
		}
		return open
	}
	answer := func(resume, id, value string) map[string]fermata.OpenInterrupt {
		t.Helper()
		return run(executor.RunRequest{ResumeID: resume, Actor: "ann", Targets: map[string]executor.Answer{id: {Value: json.RawMessage(value)}}})
	}
	first := run(executor.RunRequest{Graph: "inproc:drop", Input: json.RawMessage(`{"name":"tmp"}`)})
	ann := s.SignIn("ann")
	refused := answer("r1", first[whichTable.Name()].ID, `"system"`)[whichTable.Name()].ID
	want(t, ann.Get("/requests/"+refused), http.StatusOK, "The program did not accept the last answer: not a &lt;system&gt; table")
	hold := answer("r2", refused, `"users"`)[graph.KindHold]
	old := first[graph.KindHold].ID
	if hold.ID == old {
		t.Fatal("the hold was not superseded")
	}
	want(t, ann.Get("/requests/"+hold.ID), http.StatusOK, "What was shown has changed.", `href="/requests/`+old+`"`, "Changed:", "/name")
}
