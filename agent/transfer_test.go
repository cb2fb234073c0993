package agent_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/tool"
)

func transfer(to string) script.Line {
	return script.Call("transfer_to_agent", `{"agent_name":"`+to+`"}`)
}

// team is a chat agent that may hand over to others.
func team(c *counter, name string, agents []agent.Agent, list []*tool.Tool, lines ...script.Line) agent.Agent {
	return must(agent.NewChat(agent.Chat{Name: name, Description: "does " + name, Model: model(c, name, lines...), Tools: list, Agents: agents}))
}

// scenario 39
func TestTransfer_TheOneThatTookOverWaitsAndGetsTheAnswer(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return team(&c, "sa1", []agent.Agent{holder(&c, "sa2", 1)}, nil, transfer("sa2"))
		}
		first := p.query("go")
		first.wantLog(t, `sa1 says calls transfer_to_agent({"agent_name":"sa2"})`, "sa1 did transfer_to_agent: Handed over to sa2.",
			"sa1 transfers to sa2", "sa2 says sa2 begins", "sa1 waits for [sa2 1?]")
		ic := one(t, first.waits(t))
		if ic.Address.String() != "agent:sa1;agent:sa2" {
			t.Errorf("got %s", ic.Address)
		}
		p.answers(nil).wantLog(t, "sa1 waits for [sa2 1?]")
		done := p.answer(ic, "x")
		done.wantLog(t, "sa2 says sa2 heard x at 1", "sa1 finished")
		if done.finished(t).Output.Text() != "sa2 heard x at 1" {
			t.Errorf("got %q", done.finished(t).Output.Text())
		}
		c.want(t, map[string]int{"model sa1": 1, "run sa2": 1, "resume sa2": 1})
	})
}

// scenario 47: the scripts are written so that every agent but the asked one fails if its model is
// called again.
func TestTransfer_BackAndForthResumesStraightAtTheLast(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			asC := chat(&c, "C", tools(asking(&c, "ask")), script.Call("ask", `{"to":"C"}`), script.Say("C is done"))
			asB := team(&c, "B", nil, nil, transfer("A"))
			return team(&c, "A", []agent.Agent{asB, asC}, nil, transfer("B"), transfer("C"))
		}
		first := p.query("go")
		ic := one(t, first.waits(t))
		if ic.Address.String() != "agent:A;agent:B;agent:A;agent:C;tool:ask#call_1_1" {
			t.Fatalf("got %s", ic.Address)
		}
		var path []string
		for place := ic.Parent; place != nil; place = place.Parent {
			path = append(path, place.Address[len(place.Address)-1].ID)
		}
		if !slices.Equal(path, []string{"C", "A", "B", "A"}) {
			t.Errorf("the parents are %q", path)
		}
		p.answer(ic, "x").wantLog(t, "C did ask: ask heard x", "C says C is done", "A finished")
		c.want(t, map[string]int{"model A": 2, "model B": 1, "model C": 2, "enter ask": 2, "ask done": 1})
	})
}

// scenario 54: nothing is handed over while a call of the same turn waits.
func TestTransfer_WaitsForTheOtherCallsOfItsTurn(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return team(&c, "A", []agent.Agent{chat(&c, "B", nil, script.Say("B is done"))}, tools(asking(&c, "ask")),
				script.Calls(agent.ToolCall{Name: "transfer_to_agent", Args: `{"agent_name":"B"}`}, agent.ToolCall{Name: "ask", Args: `{"to":"A"}`}))
		}
		first := p.query("go")
		if c.of("model B") != 0 {
			t.Error("B took over while A waited")
		}
		p.answer(one(t, first.waits(t)), "x").wantLog(t, "A did ask: ask heard x", "A transfers to B", "B says B is done", "A finished")
		c.want(t, map[string]int{"model A": 1, "model B": 1, "enter ask": 2, "ask done": 1})
	})
}

func TestTransfer_OfSeveralTheFirstCounts(t *testing.T) {
	var c counter
	a := team(&c, "A", []agent.Agent{chat(&c, "B", nil, script.Say("B")), chat(&c, "C", nil, script.Say("C"))}, nil,
		script.Calls(agent.ToolCall{Name: "transfer_to_agent", Args: `{"agent_name":"C"}`}, agent.ToolCall{Name: "transfer_to_agent", Args: `{"agent_name":"B"}`}))
	done := record(newRunner(t, a).Query(t.Context(), "go")).finished(t)
	if done.Output.Text() != "C" || c.of("model B") != 0 {
		t.Errorf("got %q", done.Output.Text())
	}
}

func TestTransfer_UnknownAgentIsReportedToTheModel(t *testing.T) {
	for name, args := range map[string]string{"a stranger": `{"agent_name":"X"}`, "itself": `{"agent_name":"A"}`, "no name": `{}`, "not JSON": `B`} {
		t.Run(name, func(t *testing.T) {
			var c counter
			var told agent.Message
			a := team(&c, "A", []agent.Agent{chat(&c, "B", nil)}, nil, script.Call("transfer_to_agent", args), func(r *agent.Request) (agent.Message, error) {
				told = r.Messages[len(r.Messages)-1]
				return script.Say("I stay")(r)
			})
			done := record(newRunner(t, a).Query(t.Context(), "go")).finished(t)
			if done.Output.Text() != "I stay" || !told.Failed || c.of("model B") != 0 {
				t.Errorf("got %q, told %+v", done.Output.Text(), told)
			}
		})
	}
}

func TestTransfer_IsOfferedToSubagentsAndBackToTheCaller(t *testing.T) {
	var c counter
	offered := make(map[string]string)
	note := func(name string, next script.Line) script.Line {
		return func(r *agent.Request) (agent.Message, error) {
			offered[name] = ""
			for _, spec := range r.Tools {
				var schema struct {
					Properties struct {
						Agent struct{ Enum []string } `json:"agent_name"`
					}
				}
				if spec.Name == "transfer_to_agent" && json.Unmarshal(spec.Schema, &schema) == nil {
					offered[name] = strings.Join(schema.Properties.Agent.Enum, " ")
				}
			}
			return next(r)
		}
	}
	asD := team(&c, "D", nil, nil, note("D", script.Say("D is done")))
	asB := team(&c, "B", []agent.Agent{asD}, nil, note("B", transfer("D")))
	asC := team(&c, "C", nil, nil, note("C", script.Say("nothing")))
	a := team(&c, "A", []agent.Agent{asB, asC}, tools(agent.AsTool(asC)), script.Call("C", `{"request":"x"}`), note("A", transfer("B")))
	record(newRunner(t, a).Query(t.Context(), "go")).finished(t)
	want := map[string]string{"A": "B C", "B": "D A", "C": "", "D": "B"}
	for name := range want {
		if offered[name] != want[name] {
			t.Errorf("%s may hand over to %q, want %q", name, offered[name], want[name])
		}
	}
}

func TestTransfer_NewAgentGetsTheNarratedHistory(t *testing.T) {
	var c counter
	var heard []agent.Message
	asB := chat(&c, "B", nil, func(r *agent.Request) (agent.Message, error) { heard = r.Messages; return script.Say("B")(r) })
	a := team(&c, "A", []agent.Agent{asB}, tools(booking(&c)), script.Call("book", `{"to":"Paris"}`),
		script.Message(agent.Assistant("B knows better.", agent.ToolCall{Name: "transfer_to_agent", Args: `{"agent_name":"B"}`})))
	record(newRunner(t, a).Query(t.Context(), "To Paris!")).finished(t)
	var told []string
	for _, m := range heard {
		told = append(told, string(m.Role)+" "+m.Text)
	}
	if !slices.Equal(told, []string{"user To Paris!", `user [A] called book with {"to":"Paris"} and got: booked Paris`, "user [A] B knows better."}) {
		t.Errorf("B heard %q", told)
	}
}

// Two agents that hand over to each other endlessly fail.
func TestTransfer_ForEverIsTooDeep(t *testing.T) {
	var c counter
	asB := team(&c, "B", nil, nil, slices.Repeat([]script.Line{transfer("A")}, 60)...)
	a := team(&c, "A", []agent.Agent{asB}, nil, slices.Repeat([]script.Line{transfer("B")}, 60)...)
	p := record(newRunner(t, a).Query(t.Context(), "go"))
	if !isErr(p.err, agent.ErrTooDeep) || c.of("model A")+c.of("model B") > 60 {
		t.Errorf("got %v after %v", p.err, c.n)
	}
}

// scenario 55: an approval deep below supervisors, answered in another process.
func TestSupervisor_OfASupervisorOfAWorkerThatNeedsAnApproval(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			worker := chat(&c, "worker", tools(tool.Approve(booking(&c))), script.Call("book", `{"to":"Paris"}`), script.Say("worker booked"))
			lead := must(agent.NewSupervisor(agent.Supervisor{Workers: []agent.Agent{worker},
				Chat: agent.Chat{Name: "lead", Description: "leads", Model: model(&c, "lead", script.Call("worker", `{"request":"book"}`), script.Say("lead is content"))}}))
			return must(agent.NewSupervisor(agent.Supervisor{Workers: []agent.Agent{lead},
				Chat: agent.Chat{Name: "head", Model: model(&c, "head", script.Call("lead", `{"request":"get it booked"}`), script.Say("head is content"))}}))
		}
		first := p.query("go")
		ic := one(t, first.waits(t))
		if ic.Address.String() != "agent:head;tool:lead#call_1_1;agent:lead;tool:worker#call_1_1;agent:worker;tool:book#call_1_1" {
			t.Fatalf("got %s", ic.Address)
		}
		p.resume().waits(t)
		if c.of("book Paris") != 0 {
			t.Fatal("booked before the yes")
		}
		p.answer(ic, yes).wantLog(t, "worker did book: booked Paris", "worker says worker booked", "lead did worker: worker booked",
			"lead says lead is content", "head did lead: lead is content", "head says head is content", "head finished")
		c.want(t, map[string]int{"model head": 2, "model lead": 2, "model worker": 2, "book Paris": 1})
	})
}

func TestSupervisor_AWorkerSeesTheConversationAndTheTask(t *testing.T) {
	var c counter
	var heard []string
	worker := chat(&c, "worker", nil, func(r *agent.Request) (agent.Message, error) {
		for _, m := range r.Messages {
			heard = append(heard, m.Text)
		}
		return script.Say("done")(r)
	})
	head := must(agent.NewSupervisor(agent.Supervisor{Workers: []agent.Agent{worker},
		Chat: agent.Chat{Name: "head", Model: model(&c, "head",
			script.Message(agent.Assistant("Let me see.", agent.ToolCall{Name: "worker", Args: `{"request":"find out"}`})), script.Say("ok"))}}))
	record(newRunner(t, head).Query(t.Context(), "Why?")).finished(t)
	if !slices.Equal(heard, []string{"Why?", "[head] Let me see.", "find out"}) {
		t.Errorf("the worker heard %q", heard)
	}
}

func TestSupervisor_IsRefusedWithoutWorkersOrWithTwoOfOneName(t *testing.T) {
	var c counter
	w := chat(&c, "w", nil)
	boss := agent.Chat{Name: "boss", Model: model(&c, "boss")}
	for name, workers := range map[string][]agent.Agent{"none": nil, "nil": {nil}, "twice": {w, w}} {
		if _, err := agent.NewSupervisor(agent.Supervisor{Chat: boss, Workers: workers}); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := agent.NewSupervisor(agent.Supervisor{Chat: agent.Chat{Name: "boss", Model: boss.Model, Tools: tools(agent.AsTool(w))}, Workers: []agent.Agent{w}}); err == nil {
		t.Error("a worker and a tool of one name were accepted")
	}
}

func TestTransfer_AgentThatGetsTheConversationBackSeesItsOwnMessages(t *testing.T) {
	var c counter
	var heard [][]string
	asB := team(&c, "B", nil, nil, script.Message(agent.Assistant("Not mine.", agent.ToolCall{Name: agent.ToolTransfer, Args: `{"agent_name":"A"}`})))
	a := team(&c, "A", []agent.Agent{asB}, nil, transfer("B"), heardBy(&heard, "done"))
	record(newRunner(t, a).Query(t.Context(), "go")).finished(t)
	want := []string{"user go", "assistant ", "tool Handed over to B.", "user [B] Not mine."}
	if len(heard) != 1 || !slices.Equal(heard[0], want) {
		t.Errorf("A heard %q, want %q", heard, want)
	}
}
