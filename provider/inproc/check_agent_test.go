package inproc_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/tool"
)

// payTool is a tool with arguments of a type.
func payTool[Args any](name string) *tool.Tool {
	return tool.Approve(tool.New(name, "Pays.", func(context.Context, Args) (string, error) { return "paid", nil }))
}

// cashDesk is an agent that calls another one, which has a tool.
func cashDesk(t *testing.T, clerk string, pay *tool.Tool) inproc.Graph {
	t.Helper()
	a, err := agent.NewChat(agent.Chat{Name: clerk, Model: script.New(script.Call("pay", `{"cents":120}`), script.Say("Paid.")), Tools: []*tool.Tool{pay}})
	if err != nil {
		t.Fatal(err)
	}
	root, err := agent.NewSequential("desk", "", a)
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Agent(agent.RunnerConfig{Agent: root})
}

// The check before a deployment looks inside the runs of agents: a renamed agent, a removed tool
// and a tool that would not accept the shown arguments any more.
func TestCheckResumable_LooksInsideAgents(t *testing.T) {
	type cents struct {
		Cents int `json:"cents"`
	}
	type more struct {
		Cents int    `json:"cents"`
		Note  string `json:"note,omitempty"`
	}
	type amount struct {
		Cents string `json:"cents"`
	}
	run := provider.Execution{Run: provider.Run{Account: "acme", ID: "run_1", Graph: "desk", State: memory.New()}, Input: json.RawMessage(`{"query":"pay"}`), Owner: noOwner{}}
	asked(t, newProvider(t, cashDesk(t, "clerk", payTool[cents]("pay"))), run)
	for name, c := range map[string]struct {
		now  inproc.Graph
		want string
	}{
		"the same":            {cashDesk(t, "clerk", payTool[cents]("pay")), ""},
		"an optional field":   {cashDesk(t, "clerk", payTool[more]("pay")), ""},
		"a renamed agent":     {cashDesk(t, "cashier", payTool[cents]("pay")), `no agent "clerk"`},
		"a removed tool":      {cashDesk(t, "clerk", payTool[cents]("refund")), `agent "clerk" has no tool "pay"`},
		"another tool schema": {cashDesk(t, "clerk", payTool[amount]("pay")), `the schema of tool "pay" has changed`},
	} {
		err := newProvider(t, c.now).CheckResumable(t.Context(), run.Run)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
