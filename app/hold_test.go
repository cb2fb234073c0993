package app

import (
	"context"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/provider/inproc"
)

type table struct {
	Name string `json:"name"`
}

// A held run shows its state and has no answer schema. Nothing used to say that null continues it.
func TestHold_ApproveContinuesTheRun(t *testing.T) {
	g := graph.New[table]("drop")
	g.Node("drop", func(_ context.Context, s table) (table, error) { return s, nil })
	g.HoldBefore("drop")
	g.Edge(graph.Start, "drop")
	g.Edge("drop", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	call := startDemo(t, t.TempDir(), Graphs(inproc.Flow(flow, inproc.FlowConfig[table]{Content: func(s table) string { return "dropped " + s.Name }})))
	if code, out, errOut := call("run", "inproc:drop", `{"name":"users"}`, "--key", "held"); code != cli.ExitOK {
		t.Fatalf("%d\n%s%s", code, out, errOut)
	}
	id := inboxOf(t, call)["held"].ID
	for what, c := range map[string]struct {
		args []string
		exit int
		says string
	}{
		"a look":   {[]string{"show", id}, cli.ExitOK, "the answer is null, to continue unchanged, or the edited state"},
		"a no":     {[]string{"reject", id}, cli.ExitUsage, "fermata cancel cancels the run"},
		"a reason": {[]string{"approve", id, "--reason", "fine"}, cli.ExitUsage, "cannot have a reason"},
		"an edit":  {[]string{"approve", id, "--args", "{}"}, cli.ExitUsage, "fermata answer"},
	} {
		if exit, out, errOut := call(c.args...); exit != c.exit || !strings.Contains(out+errOut, c.says) {
			t.Errorf("%s: %d\n%s%s", what, exit, out, errOut)
		}
	}
	if code, out, errOut := call("approve", id); code != cli.ExitOK || out != "completed  dropped users\n" {
		t.Errorf("%d\n%s%s", code, out, errOut)
	}
}
