package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/storetest"
	"github.com/fermata-go/fermata/tool"
)

// Cancelling is always recursive, and no work is left running: a tool or a model that ignores its
// context is waited for. So there is no test of an orphan that must not panic; there is one that
// there are no orphans.

// Scenario 58.
func TestCancel_AtOnceWhereverTheRunIs(t *testing.T) {
	for what, again := range map[string]map[string]int{
		"model clerk":  {"model clerk": 3, "stream clerk": 1, "tool work": 1, "tool flow": 1},
		"stream clerk": {"model clerk": 3, "stream clerk": 2, "tool work": 1, "tool flow": 1},
		"tool work":    {"model clerk": 2, "stream clerk": 1, "tool work": 2, "tool flow": 1},
		"tool flow":    {"model clerk": 2, "stream clerk": 1, "tool work": 1, "tool flow": 2},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // which also checks that nothing is left running
				x := newAgentHarness(t, clerk, func(config *agent.RunnerConfig) { config.EnableStreaming = true })
				x.cancelAt(what, agent.CancelNow)
				x.wantCancelled(x.start())
				end := x.goOn(nil)
				if text := end.finished(t).Output.Text(); text != "All done." {
					t.Errorf("it ended with %q", text)
				}
				// next to another it may be cut off
				again["tool flow"] = max(again["tool flow"], min(2, x.c.of("tool flow")))
				x.c.want(t, again)
			})
		})
	}
}

// Scenario 59.
func TestCancel_AfterModelKeepsItsAnswerAndLeavesTheToolsToTheResume(t *testing.T) {
	x := newAgentHarness(t, clerk)
	x.cancelAt("model clerk", agent.CancelAfterModel)
	stopped := x.start()
	x.wantCancelled(stopped)
	if log := stopped.log(); len(log) != 2 || log[0] != "clerk says calls work({})calls flow({})" {
		t.Errorf("before the cancel there was %q", log)
	}
	x.c.want(t, map[string]int{"model clerk": 1})
	end := x.goOn(nil)
	if end.finished(t); strings.Contains(strings.Join(end.log(), "\n"), "calls work") {
		t.Errorf("an earlier message is repeated: %q", end.log())
	}
	x.c.want(t, map[string]int{"model clerk": 2, "tool work": 1, "tool flow": 1})
}

// Scenario 60.
func TestCancel_AfterToolsKeepsTheirResults(t *testing.T) {
	x := newAgentHarness(t, clerk)
	x.cancelAt("model clerk", agent.CancelAfterTools)
	x.wantCancelled(x.start())
	x.c.want(t, map[string]int{"model clerk": 1, "tool work": 1, "tool flow": 1})
	x.goOn(nil).wantLog(t, "clerk says All done.", "clerk finished")
	x.c.want(t, map[string]int{"model clerk": 2, "tool work": 1, "tool flow": 1})
}

// Scenario 61.
func TestCancel_PointThatIsNeverReachedLeavesTheRunAlone(t *testing.T) {
	for _, mode := range []agent.CancelMode{agent.CancelAfterModel, agent.CancelAfterTools} {
		x := newAgentHarness(t, func(x *agentHarness) agent.Agent { return x.chat("talker", nil, script.Say("That was it.")) })
		x.cancelAt("model talker", mode)
		x.start().finished(t)
		x.wantEnded()
	}
}

// Scenario 62.
func TestCancel_IsAtOnceWhenTheTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAgentHarness(t, clerk)
		x.moment = func(ctx context.Context, what string) error {
			if what != "tool work" {
				return nil
			}
			x.asked = x.cancel(agent.CancelAfterTools, agent.Within(time.Minute))
			<-ctx.Done()
			return ctx.Err()
		}
		begun := time.Now()
		cancelled := x.wantCancelled(x.start())
		if !cancelled.Escalated || !strings.Contains(cancelled.Error(), "immediately") {
			t.Errorf("it should report the timeout: %v", cancelled)
		}
		if passed := time.Since(begun); passed != time.Minute {
			t.Errorf("it took %v", passed)
		}
		x.goOn(nil).finished(t)
		x.c.want(t, map[string]int{"model clerk": 2, "tool work": 2, "tool flow": 1})
	})
}

func TestCancel_InTimeIsNotAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAgentHarness(t, clerk)
		x.cancelAt("model clerk", agent.CancelAfterModel, agent.Within(time.Minute))
		if x.wantCancelled(x.start()).Escalated {
			t.Error("the point was reached in time")
		}
		x.cancel(agent.CancelAfterTools, agent.Within(time.Second)) // there is no listener any more
		time.Sleep(time.Hour)
		if err := x.asked.Wait(t.Context()); err != nil {
			t.Errorf("much later Wait returns %v", err)
		}
	})
}

// Scenario 63.
func TestCancel_BeforeItBeginsNothingRunsAndNothingIsSaved(t *testing.T) {
	for _, mode := range []agent.CancelMode{agent.CancelNow, agent.CancelAfterModel, agent.CancelAfterTools} {
		st := storetest.NewFaulty(memory.New())
		x := newAgentHarness(t, heldClerk, func(config *agent.RunnerConfig) { config.Store = st })
		never := func(name string, begin func(ctx context.Context) iter.Seq2[*agent.Event, error]) {
			t.Helper()
			ctx, saves, did := x.cancellable(), st.Saves(), maps.Clone(x.c.n)
			x.asked = x.cancel(mode)
			p := record(begin(ctx))
			if cancelled, ok := errors.AsType[*agent.CancelError](p.err); !ok || cancelled.Run != name || len(p.events) > 0 || st.Saves() > saves {
				t.Errorf("mode %d: got %q with %d saves", mode, p.log(), st.Saves()-saves)
			}
			if err := x.asked.Wait(t.Context()); err != nil {
				t.Errorf("mode %d: Wait returns %v", mode, err)
			}
			x.c.want(t, did)
		}
		never("run", func(ctx context.Context) iter.Seq2[*agent.Event, error] {
			return x.runner().Query(ctx, "Go.", agent.WithRun("run"))
		})
		never("", func(ctx context.Context) iter.Seq2[*agent.Event, error] { return x.runner().Query(ctx, "Go.") })
		open := one(t, x.start().waits(t))
		never("run", func(ctx context.Context) iter.Seq2[*agent.Event, error] {
			return x.runner().ResumeWithParams(ctx, "run", answer(open, yes))
		})
		x.goOn(map[string]any{open.ID: yes}).finished(t) // the answer was not saved
	}
}

// A run that could not be saved was not cancelled cleanly.
func TestCancel_AStoreThatFailsIsTheWorseNews(t *testing.T) {
	st := storetest.NewFaulty(memory.New())
	x := newAgentHarness(t, clerk, func(config *agent.RunnerConfig) { config.Store = st })
	x.cancelAt("model clerk", agent.CancelAfterModel)
	st.FailSave(3, storetest.BeforeWrite, errDisk) // the save of the stopped status
	p := x.start()
	if _, cancelled := errors.AsType[*agent.CancelError](p.err); cancelled || !errors.Is(p.err, errDisk) {
		t.Errorf("got %q", p.log())
	}
	x.wantEnded()
	x.goOn(nil, agent.TakeOver()).finished(t)
}

func TestCancel_AfterTheEndChangesNothing(t *testing.T) {
	failure := errors.New("out of order")
	for name, test := range map[string]struct {
		tool *tool.Tool
		want func(p *recording) bool
	}{
		"finished": {tool.New("work", "Works.", func(context.Context, struct{}) (string, error) { return "done", nil }),
			func(p *recording) bool { return p.err == nil && strings.Contains(p.log()[len(p.log())-1], "finished") }},
		"waits": {tool.New("work", "Asks.", func(ctx context.Context, _ struct{}) (string, error) { return question.Ask(ctx, "Well?") }),
			func(p *recording) bool { return p.err == nil && strings.Contains(p.log()[len(p.log())-1], "waits") }},
		"failed": {tool.New("work", "Fails.", func(context.Context, struct{}) (string, error) { return "", failure }),
			func(p *recording) bool {
				_, cancelled := errors.AsType[*agent.CancelError](p.err)
				return errors.Is(p.err, failure) && !cancelled
			}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newAgentHarness(t, func(x *agentHarness) agent.Agent {
				return x.chat("clerk", tools(test.tool), script.Call("work", "{}"), script.Say("Done."))
			})
			x.moment = func(_ context.Context, what string) error {
				if name != "finished" || x.c.of(what) == 2 {
					// too late: in the last turn, or after an interrupt or a failure
					x.asked = x.cancel(agent.CancelAfterTools)
				}
				return nil
			}
			if p := x.start(); !test.want(p) {
				t.Errorf("got %q", p.log())
			}
			x.wantEnded()
			x.asked = x.cancel(agent.CancelNow)
			x.wantEnded()
		})
	}
}

// Scenario 64.
func TestCancel_WithoutAStore(t *testing.T) {
	x := newAgentHarness(t, clerk, func(config *agent.RunnerConfig) { config.Store = nil })
	x.cancelAt("tool work", agent.CancelNow)
	stopped := x.start()
	if _, ok := errors.AsType[*agent.CancelError](stopped.err); !ok {
		t.Errorf("got %q", stopped.log())
	}
	if err := x.asked.Wait(t.Context()); err != nil {
		t.Errorf("Wait says %v", err)
	}
}

// Scenario 65.
func TestCancel_TheSecondJoinsTheFirst(t *testing.T) {
	type request struct {
		mode  agent.CancelMode
		limit time.Duration // 0 for none
	}
	for name, test := range map[string]struct {
		requests  []request
		stuck     bool // the tool ends only when its context does
		want      map[string]int
		after     time.Duration
		escalated bool
	}{
		"the first point counts":    {[]request{{agent.CancelAfterTools, 0}, {agent.CancelAfterModel, 0}}, false, map[string]int{"model clerk": 1}, 0, false},
		"in whatever order":         {[]request{{agent.CancelAfterModel, 0}, {agent.CancelAfterTools, 0}}, false, map[string]int{"model clerk": 1}, 0, false},
		"the earliest limit counts": {[]request{{agent.CancelAfterTools, time.Hour}, {agent.CancelAfterTools, time.Minute}}, true, map[string]int{"model clerk": 1, "tool work": 1, "tool flow": 1}, time.Minute, true},
		"a later one does not":      {[]request{{agent.CancelAfterTools, time.Minute}, {agent.CancelAfterTools, time.Hour}}, true, map[string]int{"model clerk": 1, "tool work": 1, "tool flow": 1}, time.Minute, true},
		"none does not either":      {[]request{{agent.CancelAfterTools, time.Minute}, {agent.CancelAfterTools, 0}}, true, map[string]int{"model clerk": 1, "tool work": 1, "tool flow": 1}, time.Minute, true},
		"now takes precedence":      {[]request{{agent.CancelAfterTools, time.Minute}, {agent.CancelNow, 0}}, true, map[string]int{"model clerk": 1}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newAgentHarness(t, clerk)
				var all []*agent.Cancellation
				x.moment = func(ctx context.Context, what string) error {
					if what == "model clerk" {
						for _, r := range test.requests {
							var options []agent.CancelOption
							if r.limit > 0 {
								options = append(options, agent.Within(r.limit))
							}
							x.asked = x.cancel(r.mode, options...)
							all = append(all, x.asked)
						}
						return ctx.Err()
					}
					if test.stuck {
						<-ctx.Done()
					}
					return ctx.Err()
				}
				begun := time.Now()
				cancelled := x.wantCancelled(x.start())
				if passed := time.Since(begun); passed != test.after || cancelled.Escalated != test.escalated {
					t.Errorf("it took %v, escalated: %v", passed, cancelled.Escalated)
				}
				for _, c := range all {
					if err := c.Wait(t.Context()); errors.Is(err, agent.ErrCancelTimeout) != test.escalated {
						t.Errorf("one of the callers gets %v", err)
					}
				}
				x.c.want(t, test.want)
			})
		})
	}
}

// Scenario 66.
func TestCancel_RepeatedCancelsLoseAndRepeatNothing(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		x := newAgentHarnessIn(p, func(x *agentHarness) agent.Agent {
			list := tools(x.tool("one"), tool.Approve(x.tool("two")), x.tool("three"))
			return x.chat("clerk", list, script.Call("one", "{}"), script.Call("two", "{}"), script.Call("three", "{}"), script.Say("Done."))
		})
		x.cancelAt("model clerk", agent.CancelAfterModel)
		x.wantCancelled(x.start())
		x.cancelAt("tool one", agent.CancelAfterTools)
		x.wantCancelled(x.goOn(nil))
		open := one(t, x.goOn(nil).waits(t))
		x.cancelAt("tool two", agent.CancelAfterTools)
		x.wantCancelled(x.goOn(map[string]any{open.ID: yes}))
		if again := x.goOn(map[string]any{open.ID: yes}); !errors.Is(again.err, graph.ErrAlreadyAnswered) {
			t.Errorf("the answer counts, but a second one got %q", again.log())
		}
		x.cancelAt("model clerk", agent.CancelNow)
		x.wantCancelled(x.goOn(nil))
		x.goOn(nil).finished(t)
		x.c.want(t, map[string]int{"model clerk": 5, "tool one": 1, "tool two": 1, "tool three": 1})
	})
}

func TestCancel_WaitEndsWithItsContext(t *testing.T) {
	_, cancel := agent.WithCancel(t.Context()) // of a run that never starts
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := cancel(agent.CancelAfterModel).Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The effect of an approved call that is cancelled may have happened: it is in doubt, and a person
// is asked.
func TestCancel_NowDuringApprovedCallLeavesItInDoubt(t *testing.T) {
	for name, test := range map[string]struct {
		options []tool.Option
		asks    bool
	}{
		"once only":  {nil, true},
		"idempotent": {[]tool.Option{tool.Idempotent()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			keys := make(map[string]bool)
			x := newAgentHarness(t, func(x *agentHarness) agent.Agent {
				pay := tool.Approve(tool.New("pay", "Pays.", func(ctx context.Context, _ struct{}) (string, error) {
					keys[tool.Key(ctx)] = true
					return "paid", x.at(ctx, "tool pay")
				}, test.options...))
				return x.chat("clerk", tools(pay), script.Call("pay", "{}"), script.Say("Done."))
			})
			open := one(t, x.start().waits(t))
			x.cancelAt("tool pay", agent.CancelNow)
			x.wantCancelled(x.goOn(map[string]any{open.ID: yes}))
			next := x.goOn(nil)
			if test.asks {
				doubt := one(t, next.waits(t))
				if asked, err := fermata.EffectInDoubt.Question(doubt); err != nil || !keys[asked.Key] || x.c.of("tool pay") != 1 {
					t.Fatalf("got %+v, %v", asked, err)
				}
				next = x.goOn(map[string]any{doubt.ID: fermata.EffectResolution{Happened: false}})
			}
			next.finished(t)
			if x.c.want(t, map[string]int{"model clerk": 2, "tool pay": 2}); len(keys) != 1 {
				t.Errorf("it was called with %d keys", len(keys))
			}
		})
	}
}

// Scenario 67. The transition between agents is a cancel point for every mode: agents before it are
// not run again, agents after it have not begun.
func TestCancel_BetweenTwoAgents(t *testing.T) {
	say := func(x *agentHarness, name string) agent.Agent {
		return x.chat(name, nil, slices.Repeat([]script.Line{script.Say("I am " + name)}, 3)...)
	}
	for name, test := range map[string]struct {
		build func(x *agentHarness) agent.Agent
		after map[string]int
	}{
		"sequential": {func(x *agentHarness) agent.Agent {
			return must(agent.NewSequential("flow", "", say(x, "a"), say(x, "b")))
		},
			map[string]int{"model a": 1, "model b": 1}},
		"loop": {func(x *agentHarness) agent.Agent { return must(agent.NewLoop("flow", "", 2, say(x, "a"), say(x, "b"))) },
			map[string]int{"model a": 2, "model b": 2}},
		"next round": {func(x *agentHarness) agent.Agent { return must(agent.NewLoop("flow", "", 3, say(x, "a"))) },
			map[string]int{"model a": 3}},
		"lane of a parallel": {func(x *agentHarness) agent.Agent {
			return must(agent.NewParallel("flow", "", must(agent.NewSequential("lane", "", say(x, "a"), say(x, "b")))))
		}, map[string]int{"model a": 1, "model b": 1}},
		"transfer": {func(x *agentHarness) agent.Agent {
			return must(agent.NewChat(agent.Chat{Name: "a", Agents: []agent.Agent{say(x, "b")},
				Model: &scriptedModel{x, "a", script.New(script.Call("transfer_to_agent", `{"agent_name":"b"}`))}}))
		}, map[string]int{"model a": 1, "model b": 1}},
		"plan and execute": {func(x *agentHarness) agent.Agent {
			planner := &scriptedModel{x, "a", script.New(script.Call("plan", `{"steps":["first"]}`))}
			after := &scriptedModel{x, "c", script.New(script.Call("respond", `{"response":"done"}`))}
			return must(agent.NewPlanExecute(agent.PlanExecute{Name: "flow", Planner: planner, Replanner: after, Executor: say(x, "b")}))
		}, map[string]int{"model a": 1, "model b": 1, "model c": 1}},
		"agents of a function": {func(x *agentHarness) agent.Agent {
			return must(agent.NewFunc("flow", "", func(ctx context.Context, in *agent.Input) (*agent.Output, error) {
				if _, err := agent.Run(ctx, say(x, "a"), in); err != nil {
					return nil, err
				}
				return agent.Run(ctx, say(x, "b"), in)
			}))
		}, map[string]int{"model a": 1, "model b": 1}},
	} {
		for _, mode := range []agent.CancelMode{agent.CancelAfterModel, agent.CancelAfterTools} {
			t.Run(fmt.Sprint(name, " ", mode), func(t *testing.T) {
				reference := newAgentHarness(t, test.build).start()
				x := newAgentHarness(t, test.build)
				x.cancelAt("model a", mode)
				stopped := x.start()
				x.wantCancelled(stopped)
				x.c.want(t, map[string]int{"model a": 1})
				end := x.goOn(nil)
				if d := cmp.Diff(reference.finished(t), end.finished(t)); d != "" {
					t.Errorf("the end differs (-uncancelled +cancelled):\n%s", d)
				}
				x.c.want(t, test.after)
				if got := append(stopped.log()[:len(stopped.events)], end.log()...); !slices.Equal(got, reference.log()) {
					t.Errorf("the events were %q, want %q", got, reference.log())
				}
			})
		}
	}
}

// Scenario 68.
func TestCancel_ReachesAgentsInTools(t *testing.T) {
	build := func(x *agentHarness) agent.Agent {
		worker := x.chat("worker", tools(x.tool("dig")), script.Call("dig", "{}"), script.Say("dug"))
		middle := x.chat("middle", tools(agent.AsTool(worker)), script.Call("worker", `{"request":"dig"}`), script.Say("seen to it"))
		return x.chat("boss", tools(agent.AsTool(middle)), script.Call("middle", `{"request":"see to it"}`), script.Say("Good."))
	}
	once := map[string]int{"model boss": 2, "model middle": 2, "model worker": 2, "tool dig": 1}
	for name, test := range map[string]struct {
		at      string
		mode    agent.CancelMode
		before  map[string]int
		another string // what is called twice
	}{
		"now, in the deepest model": {"model worker", agent.CancelNow, map[string]int{"model boss": 1, "model middle": 1, "model worker": 1}, "model worker"},
		"now, in the deepest tool":  {"tool dig", agent.CancelNow, map[string]int{"model boss": 1, "model middle": 1, "model worker": 1, "tool dig": 1}, "tool dig"},
		"after the deepest model":   {"model worker", agent.CancelAfterModel, map[string]int{"model boss": 1, "model middle": 1, "model worker": 1}, ""},
		"after the deepest tools":   {"tool dig", agent.CancelAfterTools, map[string]int{"model boss": 1, "model middle": 1, "model worker": 1, "tool dig": 1}, ""},
		"after the first tools":     {"model boss", agent.CancelAfterTools, map[string]int{"model boss": 1, "model middle": 1, "model worker": 1, "tool dig": 1}, ""},
		"after the outer model":     {"model boss", agent.CancelAfterModel, map[string]int{"model boss": 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			x := newAgentHarness(t, build)
			x.cancelAt(test.at, test.mode)
			x.wantCancelled(x.start())
			x.c.want(t, test.before)
			x.goOn(nil).finished(t)
			want := maps.Clone(once)
			if test.another != "" {
				want[test.another]++
			}
			x.c.want(t, want)
		})
	}
}

func TestCancel_AgentsAtWorkSideBySideAllGoOnWhereTheyWere(t *testing.T) {
	for _, mode := range []agent.CancelMode{agent.CancelAfterModel, agent.CancelAfterTools} {
		x := newAgentHarness(t, func(x *agentHarness) agent.Agent {
			var workers []*tool.Tool
			var calls []agent.ToolCall
			for _, name := range []string{"left", "right"} {
				workers = append(workers, agent.AsTool(x.chat(name, tools(x.tool("dig-"+name)), script.Call("dig-"+name, "{}"), script.Say("dug"))))
				calls = append(calls, agent.ToolCall{Name: name, Args: `{"request":"dig"}`})
			}
			return x.chat("boss", workers, script.Calls(calls...), script.Say("Good."))
		})
		var both sync.WaitGroup
		both.Add(2)
		x.moment = func(_ context.Context, what string) error {
			if what == "model left" || what == "model right" {
				both.Done()
				both.Wait() // both are running
				x.mu.Lock()
				x.asked = x.cancel(mode)
				x.mu.Unlock()
			}
			return nil
		}
		x.wantCancelled(x.start())
		if x.c.of("model left") != 1 || x.c.of("model right") != 1 || x.c.of("model boss") != 1 {
			t.Errorf("mode %d: when it stopped %v had happened", mode, x.c.n)
		}
		x.goOn(nil).finished(t)
		x.c.want(t, map[string]int{"model boss": 2, "model left": 2, "model right": 2, "tool dig-left": 1, "tool dig-right": 1})
	}
}

// Replaces scenario 70.
func TestCancel_WhoDoesNotHeedItsContextIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAgentHarness(t, clerk)
		ended := false
		x.moment = func(ctx context.Context, what string) error {
			if what != "tool work" {
				return nil
			}
			x.asked = x.cancel(agent.CancelNow)
			time.Sleep(time.Hour) // ignores its context
			ended = true
			return nil
		}
		stopped := x.start()
		if !ended {
			t.Error("the run was reported as ended while its tool was running")
		}
		x.wantCancelled(stopped)
		x.goOn(nil).finished(t)
		// a parallel stream may be cut off
		x.c.want(t, map[string]int{"model clerk": 2, "tool work": 1, "tool flow": min(2, x.c.of("tool flow"))})
	})
}

func TestCancel_AtOnceStopsAfterAModelThatDoesNotHeedItsContext(t *testing.T) {
	x := newAgentHarness(t, func(x *agentHarness) agent.Agent {
		answer := func(ctx context.Context, r *agent.Request) (*agent.Response, error) {
			err := x.at(ctx, "model clerk")
			response, _ := script.New(script.Call("work", "{}"), script.Call("work", "{}"), script.Say("Done.")).Generate(context.Background(), r)
			return response, err
		}
		return must(agent.NewChat(agent.Chat{Name: "clerk", Model: modelFunc(answer), Tools: tools(x.tool("work"))}))
	})
	deaf := func(busy string) func(context.Context, string) error {
		return func(_ context.Context, what string) error {
			if what == busy {
				x.asked = x.cancel(agent.CancelNow)
			}
			return nil
		}
	}
	x.moment = deaf("model clerk")
	x.wantCancelled(x.start())
	x.c.want(t, map[string]int{"model clerk": 1})
	x.moment = deaf("tool work")
	x.wantCancelled(x.goOn(nil))
	x.c.want(t, map[string]int{"model clerk": 1, "tool work": 1})
	x.goOn(nil).finished(t)
	x.c.want(t, map[string]int{"model clerk": 3, "tool work": 2})
}

// An interrupt that was raised before the cancel stays open with the same id, and can be answered
// in any later resume.
func TestCancel_WithOpenInterruptInAnotherBranch(t *testing.T) {
	for name, inTheSameCall := range map[string]bool{"asked again first": false, "answered at once": true} {
		t.Run(name, func(t *testing.T) {
			inEveryStore(t, func(t *testing.T, p *processStory) {
				x := newAgentHarnessIn(p, func(x *agentHarness) agent.Agent {
					lane := func(name string) agent.Agent {
						return x.chat(name, tools(asking(&x.c, name+"-asks")), script.Call(name+"-asks", `{"to":"whom"}`), script.Say("Heard."))
					}
					return must(agent.NewParallel("lanes", "", lane("slow"), lane("quick")))
				})
				open := x.start().waits(t)
				slow, quick := find(t, open, "slow-asks whom?"), find(t, open, "quick-asks whom?")
				x.cancelAt("model quick", agent.CancelNow)
				x.wantCancelled(x.goOn(map[string]any{quick.ID: "yes"}))
				if !inTheSameCall {
					again := one(t, x.goOn(nil).waits(t))
					if again.ID != slow.ID || x.c.of("model quick") != 3 {
						t.Errorf("asked as %s, and after the cancel as %s; %v", slow.ID, again.ID, x.c.n)
					}
				}
				x.goOn(map[string]any{slow.ID: "at last"}).finished(t)
				x.c.want(t, map[string]int{"model slow": 2, "model quick": 3,
					"enter slow-asks": 2, "enter quick-asks": 2, "slow-asks done": 1, "quick-asks done": 1})
			})
		})
	}
}

// Replaces scenario 69: a separate run inside a tool is independent. Its end is not the end of the
// outer run.
func TestCancel_ARunnerInAToolIsAnotherRun(t *testing.T) {
	build := func(x *agentHarness) agent.Agent {
		inner := newRunner(t, x.chat("inner", tools(x.tool("dig")), script.Call("dig", "{}"), script.Say("dug")))
		ask := tool.New("ask", "Asks the other program.", func(ctx context.Context, _ struct{}) (string, error) {
			p := record(inner.Query(ctx, "Dig."))
			return fmt.Sprint(len(p.events)), p.err
		})
		return x.chat("clerk", tools(ask, x.tool("work")), script.Call("ask", "{}"), script.Call("work", "{}"), script.Say("Done."))
	}
	newAgentHarness(t, build).start().finished(t)
	x := newAgentHarness(t, build)
	x.cancelAt("model inner", agent.CancelAfterTools)
	x.wantCancelled(x.start())
	x.c.want(t, map[string]int{"model clerk": 1, "model inner": 2, "tool dig": 1})
	x.goOn(nil).finished(t)
	x.c.want(t, map[string]int{"model clerk": 3, "model inner": 2, "tool dig": 1, "tool work": 1})
}
