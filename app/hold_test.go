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
		"a look":          {[]string{"show", id}, cli.ExitOK, "fermata reject " + id + " --reason TEXT"},
		"conditions":      {[]string{"approve", id, "--until", "1h"}, cli.ExitUsage, "only the approval of an action can have conditions"},
		"a partial state": {[]string{"approve", id, "--args", "{}"}, cli.ExitUsage, "name"},
		"a wrong verb":    {[]string{"answer", id, `{"verb":"deny"}`}, cli.ExitUsage, "approve, reject or return"},
	} {
		if exit, out, errOut := call(c.args...); exit != c.exit || !strings.Contains(out+errOut, c.says) {
			t.Errorf("%s: %d\n%s%s", what, exit, out, errOut)
		}
	}
	if code, out, errOut := call("approve", id, "--reason", "fine"); code != cli.ExitOK || out != "approved: Drop\ncompleted  dropped users\n" {
		t.Errorf("%d\n%s%s", code, out, errOut)
	}
	if code, out, errOut := call("run", "inproc:drop", `{"name":"logs"}`, "--key", "held-2"); code != cli.ExitOK {
		t.Fatalf("%d\n%s%s", code, out, errOut)
	}
	id = inboxOf(t, call)["held-2"].ID
	if code, out, errOut := call("reject", id, "--reason", "too early"); code != cli.ExitOK || !strings.Contains(out, "rejected: Drop") {
		t.Errorf("%d\n%s%s", code, out, errOut)
	}
}
