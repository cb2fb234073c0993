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

// wantChanged checks that the run waits where the program no longer asks, and that this is
// reported.
func wantChanged(t *testing.T, p *recording, missing ...string) {
	t.Helper()
	changed, ok := errors.AsType[*agent.ProgramChangedError](p.err)
	if !ok {
		t.Fatalf("the change should be reported, but: %q", p.log())
	}
	var places []string
	for _, place := range changed.Missing {
		places = append(places, place.String())
	}
	if changed.Run != "run" || !slices.Equal(places, missing) {
		t.Errorf("run %s misses %q, want %q", changed.Run, places, missing)
	}
}

// A program changes while an interrupt is open. With or without the answer, the new program does
// not bypass the interrupt; the old one continues.
func TestI5_MissingAskerStopsTheRun(t *testing.T) {
	clerk := func(c *counter, list ...*tool.Tool) agent.Agent {
		return chat(c, "clerk", list, script.Calls(call("book", "Paris")), script.Say("Done."))
	}
	say := func(c *counter, name string) agent.Agent { return chat(c, name, nil, script.Say(name+" is done")) }
	for name, test := range map[string]struct {
		before, after func(c *counter) agent.Agent
		answer        any
		missing       string
	}{
		"a tool": {
			func(c *counter) agent.Agent { return clerk(c, tool.Approve(booking(c))) },
			func(c *counter) agent.Agent { return clerk(c) },
			yes, "runnable:clerk;node:agent;agent:clerk;tool:book#call_1_1",
		},
		"an agent in a sequence": {
			func(c *counter) agent.Agent { return must(agent.NewSequential("root", "", asker(c, "a"), say(c, "b"))) },
			func(c *counter) agent.Agent { return must(agent.NewSequential("root", "", say(c, "b"))) },
			"x", "runnable:root;node:agent;agent:root;agent:a",
		},
		"an agent whose tool asked": {
			func(c *counter) agent.Agent {
				return must(agent.NewSequential("root", "", chat(c, "a", tools(asking(c, "ask")), script.Calls(call("ask", "x")), script.Say("a is done")), say(c, "b")))
			},
			func(c *counter) agent.Agent { return must(agent.NewSequential("root", "", say(c, "b"))) },
			"x", "runnable:root;node:agent;agent:root;agent:a",
		},
		"an agent that was renamed": {
			func(c *counter) agent.Agent { return must(agent.NewSequential("root", "", asker(c, "a"))) },
			func(c *counter) agent.Agent { return must(agent.NewSequential("root", "", say(c, "A"))) },
			"x", "runnable:root;node:agent;agent:root;agent:a",
		},
		"an agent in parallel with others": {
			func(c *counter) agent.Agent { return must(agent.NewParallel("root", "", asker(c, "a"), say(c, "b"))) },
			func(c *counter) agent.Agent { return must(agent.NewParallel("root", "", say(c, "b"))) },
			"x", "runnable:root;node:agent;agent:root;agent:a",
		},
		"an agent that another one ran": {
			func(c *counter) agent.Agent { return running("root", asker(c, "a"), say(c, "b")) },
			func(c *counter) agent.Agent { return running("root") },
			"x", "runnable:root;node:agent;agent:root;agent:a",
		},
		"an executor of plans": {
			func(c *counter) agent.Agent {
				return must(agent.NewPlanExecute(agent.PlanExecute{Name: "root", Executor: asker(c, "a"), Planner: model(c, "plan", byProgress(planning("x"), responding("ok")))}))
			},
			func(c *counter) agent.Agent {
				return must(agent.NewPlanExecute(agent.PlanExecute{Name: "root", Executor: say(c, "b"), Planner: model(c, "plan", byProgress(planning("x"), responding("ok")))}))
			},
			"x", "runnable:root;node:agent;agent:root;agent:a",
		},
		"an agent that took over": {
			func(c *counter) agent.Agent { return team(c, "root", []agent.Agent{asker(c, "a")}, nil, transfer("a")) },
			func(c *counter) agent.Agent {
				return team(c, "root", []agent.Agent{say(c, "b")}, nil, transfer("a"), script.Say("never"))
			},
			"x", "runnable:root;node:agent;agent:root;agent:a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inEveryStore(t, func(t *testing.T, p *processStory) {
				var c counter
				p.build = func() agent.Agent { return test.before(&c) }
				ic := one(t, p.query("go").waits(t))
				before := c.of("model b")

				p.build, p.now = func() agent.Agent { return test.after(&c) }, nil
				// it may report its interrupt again, or that the place is missing
				switch without := p.resume(); {
				case without.err == nil:
					if one(t, without.waits(t)).ID != ic.ID {
						t.Error("the id changed")
					}
				default:
					wantChanged(t, without, test.missing)
				}
				wantChanged(t, p.answer(ic, test.answer), test.missing)
				wantChanged(t, p.resume(), test.missing)
				if c.of("model b")+c.of("model A") > before {
					t.Error("agents after the interrupt were run")
				}

				p.build, p.now = func() agent.Agent { return test.before(&c) }, nil
				p.resume().finished(t) // the answer is still stored
			})
		})
	}
}

// running is an agent that runs others itself.
func running(name string, agents ...agent.Agent) agent.Agent {
	return must(agent.NewFunc(name, "", func(ctx context.Context, input *agent.Input) (*agent.Output, error) {
		for _, a := range agents {
			if _, err := agent.Run(ctx, a, input); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}))
}

// One of two branches is missing, and the other gets its answer. Whether the other finishes or
// waits again, the interrupt of the missing branch stays open until the branch is back.
func TestI5_RemainingAgentsDoNotBypassMissingOnes(t *testing.T) {
	lanes := func(agents ...agent.Agent) agent.Agent {
		return must(agent.NewFunc("root", "", func(ctx context.Context, input *agent.Input) (*agent.Output, error) {
			var errs []error
			for _, a := range agents {
				_, err := agent.Run(ctx, a, input)
				errs = append(errs, err)
			}
			return nil, errors.Join(errs...)
		}))
	}
	for name, times := range map[string]int{"done": 1, "waits again": 2} {
		t.Run(name, func(t *testing.T) {
			inEveryStore(t, func(t *testing.T, p *processStory) {
				var c counter
				p.build = func() agent.Agent { return lanes(asker(&c, "a"), holder(&c, "b", times)) }
				open := p.query("go").waits(t)
				p.build, p.now = func() agent.Agent { return lanes(holder(&c, "b", times)) }, nil
				wantChanged(t, p.answer(find(t, open, "b 1?"), "x"), "runnable:root;node:agent;agent:root;agent:a")
				p.build, p.now = func() agent.Agent { return lanes(asker(&c, "a"), holder(&c, "b", times)) }, nil
				rest := p.resume().waits(t)
				if len(rest) != times || find(t, rest, "a?").ID != find(t, open, "a?").ID {
					t.Fatalf("it waits for %v", infos(rest))
				}
				answers := make(map[string]any)
				for _, ic := range rest {
					answers[ic.ID] = "y"
				}
				p.answers(answers).finished(t)
				c.want(t, map[string]int{"enter a": 2, "run b": 1, "resume b": c.of("resume b")})
			})
		})
	}
}

// One of several interrupts that is no longer needed after another is answered is withdrawn: the
// tool decides that.
func TestCalls_AQuestionThatAToolNoLongerAsksIsWithdrawn(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return chat(&c, "clerk", tools(both()), script.Calls(call("both", "x")), script.Say("Done."))
		}
		open := p.query("go").waits(t)
		p.answer(find(t, open, "go ahead?"), "no").wantLog(t, "clerk did both: cancelled", "clerk says Done.", "clerk finished")
	})
}

// both asks two questions at once; the second matters only if the first is not denied.
func both() *tool.Tool {
	return tool.New("both", "", func(ctx context.Context, _ city) (string, error) {
		ahead, err := question.Ask(ctx, "go ahead?")
		if err == nil && ahead == "no" {
			return "cancelled", nil
		}
		seat, err2 := fermata.Do(ctx, "seat", func(ctx context.Context) (string, error) { return question.Ask(ctx, "which seat?") })
		return ahead + seat, errors.Join(err, err2)
	})
}

// An agent got its answer and failed. It is not waiting any more, but the answer is not used.
func TestI5_AnAgentThatFailedWithItsAnswerIsNotPassedByWhenItIsGone(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		say := func() agent.Agent { return chat(&c, "b", nil, script.Say("b is done")) }
		p.build = func() agent.Agent {
			broken := must(agent.NewFunc("a", "", func(ctx context.Context, _ *agent.Input) (*agent.Output, error) {
				if _, err := question.Ask(ctx, "a?"); err != nil {
					return nil, err
				}
				return nil, errors.New("the disk is full")
			}))
			return must(agent.NewSequential("root", "", broken, say()))
		}
		open := p.query("go").waits(t)[0]
		if end := p.answer(open, "no"); end.err == nil {
			t.Fatalf("it should fail: %q", end.log())
		}
		p.build, p.now = func() agent.Agent { return must(agent.NewSequential("root", "", say())) }, nil
		wantChanged(t, p.resume(), "runnable:root;node:agent;agent:root;agent:a")
		c.want(t, nil)
	})
}

// The arguments that a person decided on are no longer valid for the tool. Neither an approval nor
// a rejection is bypassed: the program that asked continues with it.
func TestI2_ToolThatNoLongerAcceptsTheDecidedArguments(t *testing.T) {
	type more struct {
		To    string `json:"to"`
		Class string `json:"class"`
	}
	clerk := func(c *counter, list ...*tool.Tool) agent.Agent {
		return chat(c, "clerk", list, script.Calls(call("book", "Paris")), script.Say("Done."))
	}
	strict := func(c *counter) *tool.Tool {
		return tool.New("book", "Books a ticket.", func(_ context.Context, in more) (string, error) { c.add("book " + in.To); return "booked", nil })
	}
	for name, test := range map[string]struct {
		word   any
		booked int
	}{"a yes": {yes, 1}, "a no": {no, 0}} {
		t.Run(name, func(t *testing.T) {
			inEveryStore(t, func(t *testing.T, p *processStory) {
				var c counter
				p.build = func() agent.Agent { return clerk(&c, tool.Approve(booking(&c))) }
				ic := one(t, p.query("go").waits(t))

				p.build, p.now = func() agent.Agent { return clerk(&c, tool.Approve(strict(&c))) }, nil
				changed := p.answer(ic, test.word)
				if _, ok := errors.AsType[*tool.ProgramChangedError](changed.err); !ok || c.of("model clerk") != 1 {
					t.Fatalf("the change should be reported, but: %q", changed.log())
				}

				p.build, p.now = func() agent.Agent { return clerk(&c, tool.Approve(booking(&c))) }, nil
				p.resume().finished(t)
				if c.of("model clerk") != 2 || c.of("book Paris") != test.booked {
					t.Errorf("this happened: %v", c.n)
				}
			})
		})
	}
}

// Regression: a tool that runs a graph waits in a node that the program no longer has. With a tool
// that reports its errors to the model, the model got the error, and the interrupt and its answer
// were lost.
func TestI2_GraphInAToolWithoutTheAskingNodeFailsTheRun(t *testing.T) {
	clerk := func(c *counter, node string) agent.Agent {
		g := graph.New[string]("inner")
		g.Node(node, func(ctx context.Context, _ string) (string, error) { return question.Ask(ctx, "which seat?") })
		g.Edge(graph.Start, node)
		g.Edge(node, graph.End)
		flow := must(g.Compile())
		seats := tool.New("seats", "", func(ctx context.Context, in city) (string, error) { return flow.Run(ctx, in.To) })
		return chat(c, "clerk", tools(tool.ReportErrors(seats)), script.Calls(call("seats", "Paris")), script.Say("Done."))
	}
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent { return clerk(&c, "asks") }
		ic := one(t, p.query("go").waits(t))

		p.build, p.now = func() agent.Agent { return clerk(&c, "wonders") }, nil
		changed := p.answer(ic, "12A")
		if _, ok := errors.AsType[*graph.ProgramChangedError](changed.err); !ok {
			t.Fatalf("the change should be reported, but: %q", changed.log())
		}

		p.build, p.now = func() agent.Agent { return clerk(&c, "asks") }, nil
		p.resume().wantLog(t, "clerk did seats: 12A", "clerk says Done.", "clerk finished")
	})
}
