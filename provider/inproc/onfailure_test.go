package inproc_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/tool"
)

var errRefused = errors.New("smtp: refused")

// An outcome contains only the address of a failure, and a log less. OnFailure gives the author of
// the node the full error.
func TestOnFailure_ReceivesTheFullError(t *testing.T) {
	var told error
	failed := func(_ context.Context, account, stateKey string, err error) {
		if account != "acme" || stateKey != "trip-1" {
			t.Errorf("it receives %s of %s", stateKey, account)
		}
		told = err
		panic("and breaks")
	}
	g := graph.New[note]("clerk")
	g.Node("send", func(_ context.Context, n note) (note, error) {
		if n.Text == "boom" {
			panic(n.Text)
		}
		return n, errRefused
	})
	g.Edge(graph.Start, "send")
	g.Edge("send", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	clerk, err := agent.NewChat(agent.Chat{
		Name: "clerk", Model: script.New(script.Call("send", `{}`)),
		Tools: []*tool.Tool{tool.New("send", "Sends it.", func(context.Context, struct{}) (string, error) { return "", errRefused })},
	})
	if err != nil {
		t.Fatal(err)
	}
	one := inproc.Flow(flow, inproc.FlowConfig[note]{OnFailure: failed})
	for _, test := range []struct {
		graph inproc.Graph
		input string
		is    func(error) bool
	}{
		{one, `{}`, func(err error) bool { return errors.Is(err, errRefused) }},
		{one, `{"text":"boom"}`, func(err error) bool {
			broken, ok := errors.AsType[*graph.PanicError](err)
			return ok && broken.Value == "boom" && len(broken.Stack) > 0
		}},
		{inproc.Agent(agent.RunnerConfig{Agent: clerk}, inproc.OnFailure(failed)), `{"query":"send it"}`, func(err error) bool { return errors.Is(err, errRefused) }},
	} {
		told = nil
		e := deployed(t, memory.NewStore(nil), test.graph, func(*executor.Config) {})
		outcome := start(t, e, test.input)
		if failed, ok := outcome.(fermata.Failed); !ok || strings.Contains(failed.Message, "refused") || !test.is(told) {
			t.Errorf("%s: it receives %v, and the outcome is %+v", test.input, told, outcome)
		}
	}
}
