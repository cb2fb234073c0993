package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/tool"
)

// planning is a line that plans these steps. A planner's requests do not contain its own messages,
// so the script checks the finished steps.
func planning(steps ...string) script.Line {
	args := must(json.Marshal(map[string]any{"steps": steps}))
	return script.Call("plan", string(args))
}

func responding(text string) script.Line {
	return script.Call("respond", string(must(json.Marshal(map[string]any{"response": text}))))
}

// byProgress chooses the line by the number of finished steps.
func byProgress(lines ...script.Line) script.Line {
	return func(r *agent.Request) (agent.Message, error) {
		done := strings.Count(r.Messages[len(r.Messages)-1].Text, ", done: ")
		if done >= len(lines) {
			return agent.Message{}, fmt.Errorf("there is no plan after %d steps", done)
		}
		return lines[done](r)
	}
}

// executor does each step by booking it, after approval.
func executor(c *counter) agent.Agent {
	return chat(c, "executor", tools(tool.Approve(booking(c))), func(r *agent.Request) (agent.Message, error) {
		_, step, _ := strings.Cut(r.Messages[len(r.Messages)-1].Text, "only this one: ")
		return script.Calls(call("book", step))(r)
	}, func(r *agent.Request) (agent.Message, error) {
		return script.Say("done: " + r.Messages[len(r.Messages)-1].Text)(r)
	})
}

func planner(c *counter, lines ...script.Line) agent.Agent {
	return must(agent.NewPlanExecute(agent.PlanExecute{Name: "planner", Description: "plans", Executor: executor(c),
		Planner: model(c, "plan", byProgress(lines...))}))
}

// scenario 55
func TestPlanExecute_StepsThatWaitAreResumedAndNothingIsPlannedTwice(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return planner(&c, planning("Paris", "Rome"), planning("Oslo"), responding("You are in Oslo."))
		}
		first := p.query("Travel!")
		ic := one(t, first.waits(t))
		if ic.Address.String() != "agent:planner;agent:executor;tool:book#call_1_1" {
			t.Errorf("got %s", ic.Address)
		}
		p.resume().waits(t)
		second := p.answer(ic, yes)
		second.wantLog(t, "executor did book: booked Paris", "executor says done: booked Paris", `planner says calls plan({"steps":["Oslo"]})`,
			`executor says calls book({"to":"Oslo"})`, second.log()[4])
		ic = one(t, second.waits(t))
		if ic.Address.String() != "agent:planner;agent:executor#2;tool:book#call_1_1" {
			t.Errorf("got %s", ic.Address)
		}
		done := p.answer(ic, yes).finished(t)
		if done.Output.Text() != "You are in Oslo." {
			t.Errorf("got %q", done.Output.Text())
		}
		c.want(t, map[string]int{"model plan": 3, "model executor": 4, "book Paris": 1, "book Oslo": 1})
	})
}

// scenario 55
func TestPlanExecute_InASupervisor(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return must(agent.NewSupervisor(agent.Supervisor{Workers: []agent.Agent{planner(&c, planning("Paris"), responding("booked all"))},
				Chat: agent.Chat{Name: "boss", Model: model(&c, "boss", script.Call("planner", `{"request":"Travel!"}`), script.Say("All is well."))}}))
		}
		first := p.query("go")
		ic := one(t, first.waits(t))
		if ic.Address.String() != "agent:boss;tool:planner#call_1_1;agent:planner;agent:executor;tool:book#call_1_1" {
			t.Errorf("got %s", ic.Address)
		}
		done := p.answer(ic, yes)
		if got := done.finished(t).Output.Text(); got != "All is well." {
			t.Errorf("got %q", got)
		}
		for _, e := range append(first.events, done.events...) { // one run, one root
			if e.Run != "run" || e.Path != nil && e.Path[0].String() != "agent:boss" {
				t.Errorf("%s happened in run %s at %s", line(e.Body), e.Run, e.Path)
			}
		}
		c.want(t, map[string]int{"model boss": 2, "model plan": 2, "model executor": 2, "book Paris": 1})
	})
}

// Regression: a step that was planned again with the same text was missing in the executor's list
// of remaining steps.
func TestPlanExecute_ExecutorSeesDoneAndRemainingSteps(t *testing.T) {
	var c counter
	var told []string
	teller := chat(&c, "executor", nil, func(r *agent.Request) (agent.Message, error) {
		told = append(told, r.Messages[len(r.Messages)-1].Text)
		return script.Say("looked")(r)
	})
	a := must(agent.NewPlanExecute(agent.PlanExecute{Name: "planner", Executor: teller,
		Planner:   model(&c, "plan", planning("look", "leap")),
		Replanner: model(&c, "replan", byProgress(nil, planning("look", "leap"), responding("ok")))}))
	record(newRunner(t, a).Query(t.Context(), "go")).finished(t)
	want := []string{
		"Step 1, planned: look\nStep 2, planned: leap\nDo this step now, and only this one: look",
		"Step 1, done: look\nResult: looked\nStep 2, planned: look\nStep 3, planned: leap\nDo this step now, and only this one: look",
	}
	if !slices.Equal(told, want) {
		t.Errorf("got %q\nwant %q", told, want)
	}
}

func TestPlanExecute_ReplannerSeesTaskResultsAndRemainingSteps(t *testing.T) {
	var c counter
	var saw []string
	a := must(agent.NewPlanExecute(agent.PlanExecute{Name: "planner", Executor: hearing("executor"),
		Planner: model(&c, "plan", func(r *agent.Request) (agent.Message, error) {
			if r.MustCall != "plan" || len(r.Tools) != 1 {
				t.Errorf("the planner may call %+v and must call %q", r.Tools, r.MustCall)
			}
			return planning("look", "leap")(r)
		}),
		Replanner: model(&c, "replan", func(r *agent.Request) (agent.Message, error) {
			if r.MustCall != "" || len(r.Tools) != 2 {
				t.Errorf("the replanner may call %+v and must call %q", r.Tools, r.MustCall)
			}
			for _, m := range r.Messages[1:] {
				saw = append(saw, m.Text)
			}
			return script.Say("plain text is also an answer")(r)
		})}))
	done := record(newRunner(t, a).Query(t.Context(), "go")).finished(t)
	if len(saw) != 2 || saw[0] != "go" || !strings.Contains(saw[1], "Step 1, done: look\nResult: executor heard go") || !strings.HasSuffix(saw[1], "Step 2, planned: leap\n") {
		t.Errorf("it saw %q", saw)
	}
	if done.Output.Text() != "plain text is also an answer" {
		t.Errorf("got %q", done.Output.Text())
	}
}

func TestPlanExecute_APlannerThatMakesNoPlanFailsTheRun(t *testing.T) {
	for name, line := range map[string]script.Line{
		"words":           script.Say("I would rather not."),
		"nothing":         script.Say(""),
		"no steps":        planning(),
		"another tool":    script.Call("dance", `{}`),
		"not JSON":        script.Call("plan", `look, leap`),
		"unknown members": script.Call("plan", `{"steps":["look"],"when":"now"}`),
		"an answer":       responding("done already"),
	} {
		var c counter
		a := must(agent.NewPlanExecute(agent.PlanExecute{Name: "planner", Executor: executor(&c), Planner: model(&c, "plan", line)}))
		p := record(newRunner(t, a).Query(t.Context(), "go"))
		if name == "an answer" { // there is nothing to do
			p.finished(t)
			continue
		}
		if p.err == nil || !strings.Contains(p.err.Error(), "planner") {
			t.Errorf("%s: got %q", name, p.log())
		}
	}
}

func TestPlanExecute_TooManyStepsIsAnErrorThatAProgramWithMoreCanGetOver(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		steps := 2
		p.build = func() agent.Agent {
			return must(agent.NewPlanExecute(agent.PlanExecute{Name: "planner", MaxSteps: steps, Executor: exiting(&c, "step", 0),
				Planner: model(&c, "plan", byProgress(planning("a"), planning("b"), planning("c"), responding("ok")))}))
		}
		limit, ok := errors.AsType[*agent.MaxTurnsError](p.query("go").err)
		if !ok || limit.Max != 2 || limit.Agent != "planner" || c.of("step") != 2 {
			t.Fatalf("got %v after %v", limit, c.n)
		}
		steps, p.now = 3, nil
		if got := p.resume().finished(t).Output.Text(); got != "ok" || c.of("step") != 3 || c.of("model plan") != 4 {
			t.Errorf("got %q after %v", got, c.n)
		}
	})
}

func TestNewPlanExecute_InvalidConfigReturnsError(t *testing.T) {
	var c counter
	m, e := model(&c, "m"), executor(&c)
	for name, bad := range map[string]agent.PlanExecute{
		"no planner":     {Name: "a", Executor: e},
		"no executor":    {Name: "a", Planner: m},
		"no name":        {Planner: m, Executor: e},
		"negative steps": {Name: "a", Planner: m, Executor: e, MaxSteps: -1},
	} {
		if made, err := agent.NewPlanExecute(bad); err == nil || made != nil {
			t.Errorf("%s: got %v, %v", name, made, err)
		}
	}
}
