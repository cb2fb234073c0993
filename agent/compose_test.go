package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
)

// hearing is a custom agent that repeats its input.
func hearing(name string) agent.Agent {
	return &player{name, func(_ context.Context, input *agent.Input, yield yield) {
		var heard []string
		for _, m := range input.Messages {
			heard = append(heard, m.Text)
		}
		yield(says(name+" heard "+strings.Join(heard, " | ")), nil)
	}}
}

// texts returns the texts of an output.
func texts(output *agent.Output) []string {
	var list []string
	for _, m := range output.Messages {
		list = append(list, m.Text)
	}
	return list
}

// scenario 40
func TestSequential_TwoOfFourWaitInTurnAndTheOthersFinishOnce(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return must(agent.NewSequential("seq", "", asker(&c, "a1"), holder(&c, "a2", 1),
				chat(&c, "a3", nil, script.Say("a3 is done")), chat(&c, "a4", nil, script.Say("a4 is done"))))
		}
		first := p.query("go")
		first.wantLog(t, "a1 says a1 begins", "seq waits for [a1?]")
		if got := one(t, first.waits(t)).Address.String(); got != "agent:seq;agent:a1" {
			t.Errorf("got %s", got)
		}
		second := p.answer(one(t, first.waits(t)), "x")
		second.wantLog(t, "a1 says a1 heard x", "a2 says a2 begins", "seq waits for [a2 1?]")
		if got := one(t, second.waits(t)).Address.String(); got != "agent:seq;agent:a2" {
			t.Errorf("got %s", got)
		}
		p.answer(one(t, second.waits(t)), "y").wantLog(t,
			"a2 says a2 heard y at 1", "a3 says a3 is done", "a4 says a4 is done", "seq finished")
		c.want(t, map[string]int{"enter a1": 2, "run a2": 1, "resume a2": 1, "model a3": 1, "model a4": 1})
	})
}

func TestSequential_EachAgentSeesTheConversationAndEarlierMessages(t *testing.T) {
	seq := must(agent.NewSequential("seq", "", hearing("a1"), hearing("a2"), hearing("a3")))
	done := record(newRunner(t, seq).Query(t.Context(), "go")).finished(t)
	want := []string{"a1 heard go", "a2 heard go | [a1] a1 heard go", "a3 heard go | [a1] a1 heard go | [a2] a2 heard go | [a1] a1 heard go"}
	if got := texts(done.Output); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// scenario 41
func TestLoop_FourWaitsInTwoRoundsEachAtItsPlace(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return must(agent.NewLoop("loop", "", 2, asker(&c, "a1"), asker(&c, "a2")))
		}
		got := p.query("go")
		var places, seen []string
		for range 4 {
			ic := one(t, got.waits(t))
			if slices.Contains(seen, ic.ID) {
				t.Errorf("%s has the id of an earlier interrupt", ic.Address)
			}
			places, seen = append(places, ic.Address.String()), append(seen, ic.ID)
			got = p.answer(ic, "x")
		}
		got.wantLog(t, "a2 says a2 heard x", "loop finished")
		if !slices.Equal(places, []string{"agent:loop;agent:a1", "agent:loop;agent:a2", "agent:loop;agent:a1#2", "agent:loop;agent:a2#2"}) {
			t.Errorf("got %q", places)
		}
		c.want(t, map[string]int{"enter a1": 4, "enter a2": 4})
	})
}

// exiting is a custom agent that exits in its nth iteration.
func exiting(c *counter, name string, n int) agent.Agent {
	return &player{name, func(_ context.Context, _ *agent.Input, yield yield) {
		c.add(name)
		if yield(says(fmt.Sprint(name, c.of(name))), nil) && c.of(name) == n {
			yield(&agent.Event{Body: agent.Exit{}}, nil)
		}
	}}
}

func TestLoop_EndsWhenAnAgentExits(t *testing.T) {
	var c counter
	loop := must(agent.NewLoop("loop", "", 9, exiting(&c, "a", 2), exiting(&c, "b", 0)))
	record(newRunner(t, loop).Query(t.Context(), "go")).wantLog(t, "a says a1", "b says b1", "a says a2", "a exits", "loop finished")
}

func TestLoop_EndsAfterItsRounds(t *testing.T) {
	var c counter
	loop := must(agent.NewLoop("loop", "", 3, exiting(&c, "a", 0)))
	record(newRunner(t, loop).Query(t.Context(), "go")).finished(t)
	c.want(t, map[string]int{"a": 3})
}

func TestLoop_AnExitReachesTheInnermostLoopAlone(t *testing.T) {
	var c counter
	inner := must(agent.NewLoop("inner", "", 9, must(agent.NewSequential("seq", "", exiting(&c, "a", 2), exiting(&c, "b", 0)))))
	outer := must(agent.NewLoop("outer", "", 2, inner, exiting(&c, "c", 0)))
	done := record(newRunner(t, outer).Query(t.Context(), "go")).finished(t)
	if done.Output.Exit {
		t.Error("the exit left the loop that it ended")
	}
	// the second inner loop: no agent exits any more, nine iterations
	c.want(t, map[string]int{"a": 11, "b": 10, "c": 2})
}

func TestLoop_AnExitOfOneInParallelEndsIt(t *testing.T) {
	var c counter
	loop := must(agent.NewLoop("loop", "", 9, must(agent.NewParallel("par", "", exiting(&c, "a", 2), exiting(&c, "b", 0)))))
	record(newRunner(t, loop).Query(t.Context(), "go")).finished(t)
	c.want(t, map[string]int{"a": 2, "b": 2})
}

func TestExitTool_LetsAModelEndTheLoop(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			round := []script.Line{script.Call("ask", `{"to":"go on"}`),
				func(r *agent.Request) (agent.Message, error) {
					if strings.Contains(r.Messages[len(r.Messages)-1].Text, "enough") {
						return script.Call("exit_loop", `{"reason":"all done"}`)(r)
					}
					return script.Say("once more")(r)
				}}
			worker := chat(&c, "worker", tools(asking(&c, "ask"), agent.ExitTool()), slices.Repeat(round, 2)...)
			return must(agent.NewLoop("loop", "", 9, worker, chat(&c, "other", nil, script.Say("other"))))
		}
		first := p.query("go")
		second := p.answer(one(t, first.waits(t)), "more")
		if got := one(t, second.waits(t)).Address.String(); got != "agent:loop;agent:worker#2;tool:ask#call_1_1-2" {
			t.Errorf("got %s", got)
		}
		p.answer(one(t, second.waits(t)), "enough").wantLog(t, "worker did ask: ask heard enough",
			`worker says calls exit_loop({"reason":"all done"})`, "worker did exit_loop: Done. all done", "loop finished")
		c.want(t, map[string]int{"model worker": 4, "model other": 1, "enter ask": 4, "ask done": 2})
	})
}

// scenario 42
func TestParallel_TwoOfFourWaitAndTheOthersAreShownOnce(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return must(agent.NewParallel("par", "", asker(&c, "a1"), chat(&c, "a2", nil, script.Say("a2 is done")),
				holder(&c, "a3", 1), chat(&c, "a4", nil, script.Say("a4 is done"))))
		}
		first := p.query("go")
		log := slices.Sorted(slices.Values(first.log()))
		if !slices.Equal(log, []string{"a1 says a1 begins", "a2 says a2 is done", "a3 says a3 begins", "a4 says a4 is done", "par waits for [a1? a3 1?]"}) {
			t.Errorf("got %q", log)
		}
		open := first.waits(t)
		if got := addresses(open); !slices.Equal(got, []string{"agent:par;agent:a1", "agent:par;agent:a3"}) || open[0].Parent != open[1].Parent {
			t.Errorf("got %q", got)
		}
		if again := p.answers(nil).waits(t); !slices.Equal(ids(again), ids(open)) {
			t.Errorf("the ids were %q and are now %q", ids(open), ids(again))
		}
		done := p.answers(map[string]any{find(t, open, "a1?").ID: "x", find(t, open, "a3 1?").ID: "y"})
		log = slices.Sorted(slices.Values(done.log()))
		if !slices.Equal(log, []string{"a1 says a1 heard x", "a3 says a3 heard y at 1", "par finished"}) {
			t.Errorf("got %q", log)
		}
		if got := texts(done.finished(t).Output); !slices.Equal(got, []string{"a1 begins", "a1 heard x", "a2 is done", "a3 begins", "a3 heard y at 1", "a4 is done"}) {
			t.Errorf("the messages should be in the order of the agents, not %q", got)
		}
		c.want(t, map[string]int{"enter a1": 2, "model a2": 1, "run a3": 1, "resume a3": 1, "model a4": 1})
	})
}

// scenario 42, answered one after the other
func TestParallel_UnansweredAgentIsNotEntered(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return must(agent.NewParallel("par", "", asker(&c, "a1"), holder(&c, "a2", 1)))
		}
		open := p.query("go").waits(t)
		second := p.answer(find(t, open, "a1?"), "x")
		second.wantLog(t, "a1 says a1 heard x", "par waits for [a2 1?]")
		if one(t, second.waits(t)).ID != find(t, open, "a2 1?").ID {
			t.Error("the id changed")
		}
		c.want(t, map[string]int{"enter a1": 2, "run a2": 1})
		p.answer(one(t, second.waits(t)), "y").wantLog(t, "a2 says a2 heard y at 1", "par finished")
		c.want(t, map[string]int{"enter a1": 2, "run a2": 1, "resume a2": 1})
	})
}

// scenario 43
func TestParallel_EachLaneSeesOnlyItsOwnPast(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		seen := make(map[string][]string)
		p.build = func() agent.Agent {
			lane := func(name string) agent.Agent {
				return chat(&c, name, tools(asking(&c, "ask")), script.Call("ask", `{"to":"`+name+`"}`), func(r *agent.Request) (agent.Message, error) {
					var past []string
					for _, m := range r.Messages {
						past = append(past, m.Text)
					}
					seen[name] = past
					return script.Say(name + " is done")(r)
				})
			}
			return must(agent.NewParallel("par", "", lane("left"), lane("right")))
		}
		open := p.query("go").waits(t)
		second := p.answer(find(t, open, "ask left?"), "L")
		p.answer(one(t, second.waits(t)), "R").finished(t)
		for name, heard := range map[string]string{"left": "ask heard L", "right": "ask heard R"} {
			if !slices.Equal(seen[name], []string{"go", "", heard}) {
				t.Errorf("%s saw %q", name, seen[name])
			}
		}
	})
}

func TestParallel_OneFailsWhileAnotherWaitsAndNothingFinishedIsLost(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		down := true
		p.build = func() agent.Agent {
			failing := must(agent.NewFunc("failing", "", func(context.Context, *agent.Input) (*agent.Output, error) {
				c.add("failing")
				if down {
					return nil, errors.New("the network is down")
				}
				return &agent.Output{Messages: []agent.Message{agent.Assistant("recovered")}}, nil
			}))
			return must(agent.NewParallel("par", "", asker(&c, "asks"), failing, chat(&c, "done", nil, script.Say("done"))))
		}
		if first := p.query("go"); first.err == nil || !strings.Contains(first.err.Error(), "the network is down") {
			t.Fatalf("got %q", first.log())
		}
		down = false
		second := p.resume()
		second.wantLog(t, "failing says recovered", "par waits for [asks?]")
		p.answer(one(t, second.waits(t)), "x").wantLog(t, "asks says asks heard x", "par finished")
		if c.of("model done") != 1 || c.of("failing") != 2 {
			t.Errorf("this happened: %v", c.n)
		}
	})
}

func TestParallel_OneAgentMayWorkInSeveralLanes(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			a := asker(&c, "a")
			return must(agent.NewParallel("par", "", a, a))
		}
		open := p.query("go").waits(t)
		if got := addresses(open); !slices.Equal(got, []string{"agent:par;agent:a", "agent:par;agent:a#2"}) {
			t.Errorf("got %q", got)
		}
		i := slices.IndexFunc(open, func(ic *fermata.InterruptCtx) bool { return ic.Address.String() == "agent:par;agent:a#2" })
		second := p.answer(open[i], "x")
		if got := one(t, second.waits(t)).Address.String(); got != "agent:par;agent:a" {
			t.Errorf("got %s", got)
		}
		p.answer(one(t, second.waits(t)), "y").finished(t)
	})
}

func TestFlows_TwoWaitsAnywhereInATreeOfAgents(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		say := func(name string) agent.Agent {
			return chat(&c, name, nil, slices.Repeat([]script.Line{script.Say(name + " is done")}, 2)...)
		}
		p.build = func() agent.Agent {
			left := must(agent.NewSequential("left", "", say("l1"), asker(&c, "l2"), say("l3")))
			right := must(agent.NewLoop("right", "", 2, say("r1"), asker(&c, "r2")))
			return must(agent.NewSequential("root", "", must(agent.NewParallel("par", "", left, right)), say("end")))
		}
		open := p.query("go").waits(t)
		if got := addresses(open); !slices.Equal(got, []string{"agent:root;agent:par;agent:left;agent:l2", "agent:root;agent:par;agent:right;agent:r2"}) {
			t.Fatalf("got %q", got)
		}
		second := p.answer(find(t, open, "r2?"), "x").waits(t)
		if got := addresses(second); !slices.Equal(got, []string{"agent:root;agent:par;agent:left;agent:l2", "agent:root;agent:par;agent:right;agent:r2#2"}) {
			t.Fatalf("got %q", got)
		}
		if find(t, second, "l2?").ID != find(t, open, "l2?").ID || find(t, second, "r2?").ID == find(t, open, "r2?").ID {
			t.Error("the remaining interrupt keeps its id, the new one has another")
		}
		third := p.answer(find(t, second, "l2?"), "x")
		third.wantLog(t, "l2 says l2 heard x", "l3 says l3 is done", "root waits for [r2?]")
		p.answer(one(t, third.waits(t)), "y").wantLog(t, "r2 says r2 heard y", "end says end is done", "root finished")
		c.want(t, map[string]int{"model l1": 1, "enter l2": 2, "model l3": 1, "model r1": 2, "enter r2": 4, "model end": 1})
	})
}

func TestFlows_AreRefusedWhenTheyCannotWork(t *testing.T) {
	a := hearing("a")
	for name, err := range map[string]error{
		"nobody":         second(agent.NewSequential("s", "")),
		"nil":            second(agent.NewParallel("s", "", a, nil)),
		"no rounds":      second(agent.NewLoop("s", "", 0, a)),
		"a nameless one": second(agent.NewSequential("", "", a)),
		"a bad name":     second(agent.NewLoop("a b", "", 1, a)),
		"no function":    second(agent.NewFunc("f", "", nil)),
	} {
		if err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// heardBy is a line that notes the request of its model and answers with this text.
func heardBy(heard *[][]string, text string) script.Line {
	return func(r *agent.Request) (agent.Message, error) {
		var told []string
		for _, m := range r.Messages {
			told = append(told, string(m.Role)+" "+m.Text)
		}
		*heard = append(*heard, told)
		return script.Say(text)(r)
	}
}

func TestLoop_AgentSeesItsOwnMessagesAsItsOwn(t *testing.T) {
	for name, nest := range map[string]func(agents ...agent.Agent) []agent.Agent{
		"direct": func(agents ...agent.Agent) []agent.Agent { return agents },
		"nested": func(agents ...agent.Agent) []agent.Agent {
			return []agent.Agent{must(agent.NewSequential("pair", "", agents...))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var c counter
			var writer, critic [][]string
			agents := nest(
				chat(&c, "writer", tools(booking(&c)), script.Call("book", `{"to":"Paris"}`), heardBy(&writer, "draft 1"), heardBy(&writer, "draft 2")),
				chat(&c, "critic", nil, heardBy(&critic, "too long"), heardBy(&critic, "good")))
			record(newRunner(t, must(agent.NewLoop("loop", "", 2, agents...))).Query(t.Context(), "write")).finished(t)
			want := []string{"user write", "assistant ", "tool booked Paris", "assistant draft 1", "user [critic] too long"}
			if len(writer) != 2 || !slices.Equal(writer[1], want) {
				t.Errorf("the writer heard %q, want %q", writer, want)
			}
			booked := `user [writer] called book with {"to":"Paris"} and got: booked Paris`
			want = []string{"user write", booked, "user [writer] draft 1", "assistant too long", "user [writer] draft 2"}
			if len(critic) != 2 || !slices.Equal(critic[1], want) {
				t.Errorf("the critic heard %q, want %q", critic, want)
			}
		})
	}
}

func TestLoop_RequestOfTheOnlyAgentEndsWithAUserMessage(t *testing.T) {
	var c counter
	var heard [][]string
	writer := chat(&c, "writer", nil, heardBy(&heard, "draft 1"), heardBy(&heard, "draft 2"))
	record(newRunner(t, must(agent.NewLoop("loop", "", 2, writer))).Query(t.Context(), "write")).finished(t)
	want := []string{"user write", "assistant draft 1", "user Continue."}
	if len(heard) != 2 || !slices.Equal(heard[1], want) {
		t.Errorf("the writer heard %q, want %q", heard, want)
	}
}
