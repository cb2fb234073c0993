package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/tool"
)

// finishing is a model whose answers with calls have a configurable finish reason.
type finishing struct {
	agent.Model
	reason agent.FinishReason
}

func (f finishing) Generate(ctx context.Context, request *agent.Request) (*agent.Response, error) {
	response, err := f.Model.Generate(ctx, request)
	if err == nil && len(response.Message.ToolCalls) > 0 {
		response.FinishReason = f.reason
	}
	return response, err
}

// wiping is a tool that is most harmful without arguments.
func wiping(c *counter) *tool.Tool {
	type args struct {
		Only string `json:"only,omitempty"`
	}
	return tool.New("wipe", "Wipes everything, or only some of it.", func(_ context.Context, in args) (string, error) {
		c.add("wipe " + in.Only)
		return "wiped", nil
	})
}

// Regression: an answer that reaches a limit ends inside its last call. Some services then return
// the arguments so far as if they were complete; some return none. The call was made with those.
func TestI4_ACallThatWasCutOffIsNotMade(t *testing.T) {
	for name, test := range map[string]struct {
		reason agent.FinishReason
		args   string
		made   bool
	}{
		"the limit, before any argument": {agent.FinishLength, ``, false},
		"the limit, an empty object":     {agent.FinishLength, `{}`, false},
		"the limit, some arguments":      {agent.FinishLength, `{"only":"tmp"}`, false},
		"a filter":                       {agent.FinishContentFilter, `{}`, false},
		"done, without arguments":        {agent.FinishToolCalls, ``, true},
		"done":                           {agent.FinishStop, `{}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			inEveryStore(t, func(t *testing.T, p *processStory) {
				var c counter
				var told string
				p.build = func() agent.Agent {
					return must(agent.NewChat(agent.Chat{Name: "clerk", Tools: tools(asking(&c, "ask"), wiping(&c)), Model: finishing{model(&c, "clerk",
						script.Calls(call("ask", "A"), agent.ToolCall{Name: "wipe", Args: test.args}),
						func(r *agent.Request) (agent.Message, error) {
							told = r.Messages[len(r.Messages)-1].Text
							return agent.Assistant("Done."), nil
						}), test.reason}}))
				}
				// the calls before it are complete, and wait as usual
				p.answer(one(t, p.query("Go.").waits(t)), "yes").finished(t)
				wiped := c.of("wipe ") + c.of("wipe tmp")
				if c.of("ask done") != 1 || (wiped == 1) != test.made || strings.Contains(told, "cut off") == test.made {
					t.Errorf("this happened: %v; the model got %q", c.n, told)
				}
			})
		})
	}
}

// An incomplete plan is not a plan.
func TestPlan_ThatWasCutOffIsNotCarriedOut(t *testing.T) {
	var c counter
	a := must(agent.NewPlanExecute(agent.PlanExecute{Name: "root", Executor: asker(&c, "a"),
		Planner: finishing{model(&c, "plan", script.Call("plan", `{"steps":["buy"]}`)), agent.FinishLength}}))
	p := record(newRunner(t, a).Query(t.Context(), "Buy, and have it approved first.", agent.WithRun("run")))
	if p.err == nil || !strings.Contains(p.err.Error(), "cut off") {
		t.Errorf("%q", p.log())
	}
}
