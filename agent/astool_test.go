package agent_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/tool"
)

// scenario 45
func TestAsTool_ResumeWithoutTargetsReportsTheSameInterrupt(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return chat(&c, "outer", tools(agent.AsTool(holder(&c, "inner", 1))), script.Call("inner", `{"request":"help"}`), script.Say("Done."))
		}
		first := p.query("go")
		first.wantLog(t, `outer says calls inner({"request":"help"})`, "inner says inner begins", "outer waits for [inner 1?]")
		ic := one(t, first.waits(t))
		if ic.Address.String() != "agent:outer;tool:inner#call_1_1;agent:inner" {
			t.Errorf("got %s", ic.Address)
		}
		for range 2 {
			again := p.answers(nil)
			again.wantLog(t, "outer waits for [inner 1?]")
			if one(t, again.waits(t)).ID != ic.ID {
				t.Error("the id changed")
			}
		}
		c.want(t, map[string]int{"model outer": 1, "run inner": 1}) // it was not entered for that
		p.answer(ic, "x").wantLog(t, "inner says inner heard x at 1", "outer did inner: inner heard x at 1", "outer says Done.", "outer finished")
		c.want(t, map[string]int{"model outer": 2, "run inner": 1, "resume inner": 1})
	})
}

// scenario 46
func TestAsTool_AChatInAChatShowsEverythingOnce(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			inner := chat(&c, "inner", tools(booking(&c), tool.Approve(asking(&c, "pay"))), script.Calls(call("book", "Paris"), call("pay", "Paris")), script.Say("inner is done"))
			return chat(&c, "outer", tools(agent.AsTool(inner)), script.Call("inner", `{"request":"Paris"}`), script.Say("outer is done"))
		}
		first := p.query("go")
		if !slices.Equal(first.log()[:3], []string{`outer says calls inner({"request":"Paris"})`, `inner says calls book({"to":"Paris"})calls pay({"to":"Paris"})`, "inner did book: booked Paris"}) || len(first.events) != 4 {
			t.Errorf("got %q", first.log())
		}
		ic := one(t, first.waits(t))
		if ic.Address.String() != "agent:outer;tool:inner#call_1_1;agent:inner;tool:pay#call_1_2" || ic.Kind != "approval" {
			t.Errorf("got %s at %s", ic.Kind, ic.Address)
		}
		second := p.answer(ic, yes)
		second.wantLog(t, "outer waits for [pay Paris?]")
		if got := one(t, second.waits(t)); got.Address.String() != ic.Address.String() || got.ID == ic.ID {
			t.Errorf("got %s at %s", got.ID, got.Address)
		}
		p.answer(one(t, second.waits(t)), "cash").wantLog(t, "inner did pay: pay heard cash", "inner says inner is done",
			"outer did inner: inner is done", "outer says outer is done", "outer finished")
		c.want(t, map[string]int{"model outer": 2, "model inner": 2, "book Paris": 1, "enter pay": 2, "pay done": 1})
	})
}

func TestAsTool_SeveralCallsOfOneAgentAreSeveralAgents(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			inner := chat(&c, "inner", tools(asking(&c, "ask")), func(r *agent.Request) (agent.Message, error) {
				return script.Calls(call("ask", r.Messages[0].Text))(r)
			}, script.Say("inner is done"))
			return chat(&c, "outer", tools(agent.AsTool(inner)),
				script.Calls(agent.ToolCall{Name: "inner", Args: `{"request":"a"}`}, agent.ToolCall{Name: "inner", Args: `{"request":"b"}`}), script.Say("Done."))
		}
		open := p.query("go").waits(t)
		if !slices.Equal(addresses(open), []string{"agent:outer;tool:inner#call_1_1;agent:inner;tool:ask#call_1_1", "agent:outer;tool:inner#call_1_2;agent:inner;tool:ask#call_1_1"}) {
			t.Fatalf("got %q", addresses(open))
		}
		rest := p.answer(find(t, open, "ask b?"), "B")
		rest.wantLog(t, "inner did ask: ask heard B", "inner says inner is done", "outer did inner: inner is done", "outer waits for [ask a?]")
		p.answer(one(t, rest.waits(t)), "A").finished(t)
		c.want(t, map[string]int{"model outer": 2, "model inner": 4, "enter ask": 4, "ask done": 2})
	})
}

func TestAsTool_ApprovalOfTheAgentPrecedesItsOwnInterrupts(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return chat(&c, "outer", tools(tool.Approve(agent.AsTool(asker(&c, "inner")))), script.Call("inner", `{"request":"x"}`), script.Say("Done."))
		}
		first := one(t, p.query("go").waits(t))
		if first.Address.String() != "agent:outer;tool:inner#call_1_1" || c.of("enter inner") != 0 {
			t.Fatalf("got %s", first.Address)
		}
		second := one(t, p.answer(first, yes).waits(t))
		if second.Address.String() != "agent:outer;tool:inner#call_1_1;agent:inner" {
			t.Fatalf("got %s", second.Address)
		}
		p.answer(second, "x").wantLog(t, "inner says inner heard x", "outer did inner: inner heard x", "outer says Done.", "outer finished")
	})
}

func TestAsTool_SeesOnlyTheRequestUnlessItIsShownMore(t *testing.T) {
	for name, test := range map[string]struct {
		options []agent.ToolOption
		want    string
	}{
		"alone":                 {nil, "inner heard find out"},
		"with the conversation": {[]agent.ToolOption{agent.WithConversation()}, "inner heard Why? | [outer] Let me see. | find out"},
	} {
		t.Run(name, func(t *testing.T) {
			var c counter
			a := chat(&c, "outer", tools(agent.AsTool(hearing("inner"), test.options...)),
				script.Message(agent.Assistant("Let me see.", agent.ToolCall{Name: "inner", Args: `{"request":"find out"}`})), script.Say("Done."))
			p := record(newRunner(t, a).Query(t.Context(), "Why?"))
			if !slices.Contains(p.log(), "outer did inner: "+test.want) {
				t.Errorf("got %q", p.log())
			}
		})
	}
}

func TestAsTool_AnExitOrATransferInsideStaysInside(t *testing.T) {
	var c counter
	inner := team(&c, "inner", []agent.Agent{exiting(&c, "helper", 1)}, nil, transfer("helper"))
	outer := chat(&c, "outer", tools(agent.AsTool(inner)), slices.Repeat([]script.Line{script.Call("inner", `{"request":"x"}`), script.Say("outer goes on")}, 2)...)
	loop := must(agent.NewLoop("loop", "", 2, outer))
	record(newRunner(t, loop).Query(t.Context(), "go")).finished(t)
	if c.of("model outer") != 4 {
		t.Errorf("this happened: %v", c.n)
	}
}

func TestAsTool_AFailureInsideIsOneOfTheRunAndNothingIsRepeated(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		down := true
		p.build = func() agent.Agent {
			inner := chat(&c, "inner", tools(booking(&c)), script.Calls(call("book", "Paris")), func(r *agent.Request) (agent.Message, error) {
				if down {
					return script.Fail(errors.New("overloaded"))(r)
				}
				return script.Say("inner is done")(r)
			})
			return chat(&c, "outer", tools(agent.AsTool(inner)), script.Call("inner", `{"request":"x"}`), script.Say("Done."))
		}
		if first := p.query("go"); first.err == nil {
			t.Fatalf("got %q", first.log())
		}
		down = false
		p.resume().wantLog(t, "inner says inner is done", "outer did inner: inner is done", "outer says Done.", "outer finished")
		c.want(t, map[string]int{"model outer": 2, "model inner": 3, "book Paris": 1})
	})
}

// An agent records its own progress: one that was approved and failed half-way continues, and no
// one is asked about its outcome.
func TestAsTool_AnApprovedAgentThatFailedGoesOn(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		down := true
		p.build = func() agent.Agent {
			inner := chat(&c, "inner", tools(booking(&c)), script.Calls(call("book", "Paris")), func(r *agent.Request) (agent.Message, error) {
				if down {
					return script.Fail(errors.New("overloaded"))(r)
				}
				return script.Say("inner is done")(r)
			})
			return chat(&c, "outer", tools(tool.Approve(agent.AsTool(inner))), script.Call("inner", `{"request":"x"}`), script.Say("Done."))
		}
		ic := one(t, p.query("go").waits(t))
		if failed := p.answer(ic, yes); failed.err == nil {
			t.Fatalf("got %q", failed.log())
		}
		down = false
		p.resume().wantLog(t, "inner says inner is done", "outer did inner: inner is done", "outer says Done.", "outer finished")
		c.want(t, map[string]int{"model outer": 2, "model inner": 3, "book Paris": 1})
	})
}

type trip struct {
	Wish, Plan, Approval string
}

// An agent in a graph node: its interrupts are interrupts of the graph, next to the graph's own.
func TestRun_AnAgentWorksInTheNodeOfAGraph(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		var seen []string
		build := func() *graph.Flow[trip] {
			planner := chat(&c, "planner", tools(tool.Approve(booking(&c))), script.Calls(call("book", "Paris")), script.Say("booked it"))
			g := graph.New[trip]("trip")
			g.Node("plan", func(ctx context.Context, s trip) (trip, error) {
				output, err := agent.Run(ctx, planner, agent.UserInput(s.Wish))
				if err != nil {
					return s, err
				}
				s.Plan = output.Text()
				return s, nil
			})
			g.Node("other", func(ctx context.Context, s trip) (trip, error) {
				said, err := question.Ask(ctx, "fine?")
				s.Approval = said
				return s, err
			})
			for _, node := range []string{"plan", "other"} {
				g.Edge(graph.Start, node)
				g.Edge(node, graph.End)
			}
			return must(g.Compile())
		}
		st := p.begin()
		ctx := agent.WithEvents(t.Context(), func(e *agent.Event) { seen = append(seen, e.Agent+" "+line(e.Body)) })
		options := []graph.Option{graph.WithStore(st), graph.WithAccount(p.account)}
		_, err := build().Run(ctx, trip{Wish: "Paris"}, append(options, graph.WithRun("graph"))...)
		info, ok := fermata.ExtractInterruptInfo(err)
		if !ok || len(info.Interrupts) != 2 {
			t.Fatalf("got %v", err)
		}
		i := slices.IndexFunc(info.Interrupts, func(ic *fermata.InterruptCtx) bool { return ic.Kind == "approval" })
		if got := info.Interrupts[i].Address.String(); got[:len("runnable:trip;node:plan;agent:planner;tool:book#call_1_1")] != "runnable:trip;node:plan;agent:planner;tool:book#call_1_1" {
			t.Errorf("got %s", got)
		}
		_, err = build().Resume(ctx, "graph", append(options, graph.Answer(info.Interrupts[i].ID, yes))...)
		rest, ok := fermata.ExtractInterruptInfo(err)
		if !ok || len(rest.Interrupts) != 1 {
			t.Fatalf("got %v", err)
		}
		out, err := build().Resume(ctx, "graph", append(options, graph.Answer(rest.Interrupts[0].ID, "fine"))...)
		if err != nil || out != (trip{"Paris", "booked it", "fine"}) {
			t.Errorf("got %+v, %v", out, err)
		}
		if !slices.Equal(seen, []string{`planner says calls book({"to":"Paris"})`, "planner did book: booked Paris", "planner says booked it"}) {
			t.Errorf("the events were %q", seen)
		}
		c.want(t, map[string]int{"model planner": 2, "book Paris": 1})
	})
}

func TestRun_TwiceAtOneAddressRequiresRunNth(t *testing.T) {
	var c counter
	inner := hearing("inner")
	twice := must(agent.NewFunc("twice", "", func(ctx context.Context, input *agent.Input) (*agent.Output, error) {
		if _, err := agent.Run(ctx, inner, input); err != nil {
			return nil, err
		}
		c.add("once")
		return agent.Run(ctx, inner, input)
	}))
	if p := record(newRunner(t, twice).Query(t.Context(), "go")); c.of("once") != 1 || p.err == nil {
		t.Errorf("got %q", p.log())
	}
	nth := must(agent.NewFunc("nth", "", func(ctx context.Context, input *agent.Input) (*agent.Output, error) {
		if _, err := agent.RunNth(ctx, 1, inner, input); err != nil {
			return nil, err
		}
		return agent.RunNth(ctx, 2, inner, agent.UserInput("again"))
	}))
	if got := record(newRunner(t, nth).Query(t.Context(), "go")).finished(t).Output.Text(); got != "inner heard again" {
		t.Errorf("got %q", got)
	}
}

func TestRun_OutsideOfARunIsAnError(t *testing.T) {
	if _, err := agent.Run(t.Context(), hearing("a"), agent.UserInput("x")); !errors.Is(err, fermata.ErrNoRun) {
		t.Errorf("got %v", err)
	}
	p := record(must(agent.NewSequential("seq", "", hearing("a"))).Run(t.Context(), agent.UserInput("x")))
	if !errors.Is(p.err, fermata.ErrNoRun) {
		t.Errorf("got %q", p.log())
	}
}
