package inproc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/provider/providertest"
	"github.com/fermata-go/fermata/tool"
)

// Agents with approved tools have the same interrupts as graphs in another form: a tool call is
// approved, or rejected with a reason.
func TestAgent_PassesTheSuite(t *testing.T) {
	query := json.RawMessage(`{"query":"about tea"}`)
	approve := json.RawMessage(`{"verb":"approve"}`)
	providertest.Run(t, providertest.Subject{
		Store: newStore,
		New: func(t *testing.T, world *providertest.World) provider.Provider {
			return newProvider(t, writer(t, world), twins(t, world), dropper(t, world))
		},
		Review: providertest.Review{
			Graph: "writer", Input: query, Revise: json.RawMessage(`{"verb":"reject","reason":"shorter"}`), Approve: approve,
			Wrong: texts(`{"verb":"maybe"}`, `"approve"`, `{"verb":"approve","admin":true}`, `{"verb":"reject","Verb":"approve"}`,
				`{"verb":"approve","args":{"text":"changed"}}`, `{"verb":"reject","args":{}}`, `[]`, `null`, `{`, ``),
			BadInputs: texts(`{"query":{"of":"CANARY"}}`, `{"query":"tea","extra":"CANARY"}`, `{"Query":"CANARY"}`, `["CANARY"]`, `{}`, `{"messages":[]}`,
				`{"messages":[{"role":"user","CANARY":1}]}`, `{"query":`),
		},
		Pair: providertest.Pair{Graph: "twins", Input: query, Answer: approve},
		Drop: providertest.Drop{Graph: "dropper", Input: query, Receipt: json.RawMessage(`{"text":"dropped"}`)},
	})
}

func texts(list ...string) []json.RawMessage {
	var all []json.RawMessage
	for _, text := range list {
		all = append(all, json.RawMessage(text))
	}
	return all
}

// model is a scripted model that works before its first message.
type model struct {
	*script.Model
	world *providertest.World
}

func (m *model) Generate(ctx context.Context, request *agent.Request) (*agent.Response, error) {
	if len(request.Messages) == 1 {
		if err := m.world.Work(ctx, "draft"); err != nil {
			return nil, err
		}
	}
	return m.Model.Generate(ctx, request)
}

type piece struct {
	Text string `json:"text"`
}

// worker is a tool that does its work in the world.
func worker(world *providertest.World, name, says string, options ...tool.Option) *tool.Tool {
	return tool.Approve(tool.New(name, "Does it.", func(ctx context.Context, _ piece) (string, error) {
		return says, world.Work(ctx, name)
	}, options...))
}

func chat(t *testing.T, c agent.Chat) inproc.Graph {
	t.Helper()
	a, err := agent.NewChat(c)
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Agent(agent.RunnerConfig{Agent: a})
}

// writer wants to publish its draft, and tries another one after a rejection.
func writer(t *testing.T, world *providertest.World) inproc.Graph {
	t.Helper()
	var lines []script.Line
	for n := range 5 {
		lines = append(lines, func(request *agent.Request) (agent.Message, error) {
			if last := request.Messages[len(request.Messages)-1]; last.Role == agent.RoleTool && !last.Failed {
				return agent.Assistant("It is published."), nil
			}
			return agent.Assistant("", agent.ToolCall{Name: "publish", Args: fmt.Sprintf(`{"text":"draft %d"}`, n)}), nil
		})
	}
	return chat(t, agent.Chat{
		Name: "writer", Description: "Writes.", Model: &model{script.New(lines...), world}, Tools: []*tool.Tool{worker(world, "publish", "published", tool.Repeatable())},
	})
}

func twins(t *testing.T, world *providertest.World) inproc.Graph {
	t.Helper()
	calls := script.Calls(agent.ToolCall{Name: "left", Args: `{"text":"l"}`}, agent.ToolCall{Name: "right", Args: `{"text":"r"}`})
	return chat(t, agent.Chat{
		Name: "twins", Model: script.New(calls, script.Say("Both.")),
		Tools: []*tool.Tool{worker(world, "left", "left", tool.Repeatable()), worker(world, "right", "right", tool.Repeatable())},
	})
}

func dropper(t *testing.T, world *providertest.World) inproc.Graph {
	t.Helper()
	return chat(t, agent.Chat{
		Name: "dropper", Model: script.New(script.Call("drop", `{"text":"users"}`), script.Say("It is over.")), Tools: []*tool.Tool{worker(world, "drop", "dropped")},
	})
}

// keeper is an owner that stores only the state.
type keeper struct{}

func (keeper) SetRef(context.Context, string) error { return nil }
func (keeper) Ledger() fermata.Ledger               { return nil }

func execution(t *testing.T, graph, input string) provider.Execution {
	t.Helper()
	return provider.Execution{
		Run: provider.Run{Account: "acme", ID: "run_1", Graph: graph, State: newStore(t)}, Input: json.RawMessage(input), Owner: keeper{},
	}
}

func TestAgent_CompletesWithTextAndUsage(t *testing.T) {
	p := newProvider(t, chat(t, agent.Chat{Name: "clerk", Description: "Answers.", Model: script.New(script.Say("Good morning."))}))
	if graphs := p.Graphs(); len(graphs) != 1 || graphs[0].Name != "clerk" || graphs[0].Description != "Answers." || !json.Valid(graphs[0].Input) {
		t.Errorf("%+v", graphs)
	}
	result, err := p.Execute(t.Context(), execution(t, "clerk", `{"messages":[{"role":"user","text":"Hello."},{"role":"user","text":"Are you there?"}],"query":"Hello?"}`))
	done, ok := result.Outcome.(provider.Completed)
	if err != nil || !ok || done.Content != "Good morning." || done.Usage == nil || done.Usage.InputTokens != 5 || done.Usage.OutputTokens != 2 {
		t.Fatalf("%#v, %v", result, err)
	}
	var said agent.Output
	if err := json.Unmarshal(done.Output, &said); err != nil || len(said.Messages) != 1 {
		t.Errorf("%s, %v", done.Output, err)
	}
}

// An overloaded model says nothing about the run: it is retried. A model that rejects the request
// would reject it again.
func TestAgent_OverloadedModelIsRetried(t *testing.T) {
	temporary := true
	busy := func(*agent.Request) (agent.Message, error) {
		return agent.Message{}, &agent.ModelError{Model: "m", Status: 529, Temporary: temporary, Err: errors.New("CANARY")}
	}
	p := newProvider(t, chat(t, agent.Chat{Name: "clerk", Model: script.New(busy)}))
	e := execution(t, "clerk", `{"query":"Hello?"}`)
	if result, err := p.Execute(t.Context(), e); err == nil {
		t.Errorf("it came to %#v", result.Outcome)
	}
	temporary = false
	result, err := p.Execute(t.Context(), e)
	if failed, ok := result.Outcome.(provider.Failed); err != nil || !ok || failed.Code != "node_failed" {
		t.Errorf("%#v, %v", result, err)
	}
}

func TestNew_NeedsAnAgentAndNamesOfTheirOwn(t *testing.T) {
	if _, err := inproc.New(inproc.Agent(agent.RunnerConfig{})); err == nil {
		t.Error("an invalid agent is accepted")
	}
	world := new(providertest.World)
	if _, err := inproc.New(pairFlow(t, world), pairFlow(t, world)); err == nil {
		t.Error("two graphs have one name")
	}
}
