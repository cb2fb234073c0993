package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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
	"github.com/fermata-go/fermata/tool"
)

// manualClock is a clock that a test advances.
type manualClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *manualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *manualClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// meterModel is a model whose calls take 20 seconds and use 10 tokens, 8 of them input.
type meterModel struct {
	*scriptedModel
	clock *manualClock
}

func (m meterModel) Generate(ctx context.Context, r *agent.Request) (*agent.Response, error) {
	m.clock.advance(20 * time.Second)
	response, err := m.scriptedModel.Generate(ctx, r)
	if err == nil {
		response.Usage = agent.Usage{InputTokens: 8, OutputTokens: 2}
	}
	return response, err
}

func (m meterModel) Stream() {} // it does not stream

// limited is a harness with limits, a price of 1.5 per call, and its own clock.
func limited(t testing.TB, limits agent.Limits, build func(x *agentHarness, clock *manualClock) agent.Agent) (*agentHarness, *manualClock) {
	clock := &manualClock{now: time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC)}
	x := newAgentHarness(t, func(x *agentHarness) agent.Agent { return build(x, clock) }, func(config *agent.RunnerConfig) {
		config.Limits, config.Clock = limits, clock.Now
		config.Price = func(string, agent.Usage) float64 { return 1.5 }
	})
	return x, clock
}

// tireless calls two tools in every turn, for a long time.
func tireless(x *agentHarness, clock *manualClock) agent.Agent {
	lines := slices.Repeat([]script.Line{script.Calls(agent.ToolCall{Name: "work", Args: "{}"}, agent.ToolCall{Name: "more", Args: "{}"})}, 9)
	return must(agent.NewChat(agent.Chat{Name: "clerk", MaxTurns: 10, Tools: tools(x.tool("work"), x.tool("more")),
		Model: meterModel{&scriptedModel{x, "clerk", script.New(append(lines, script.Say("Done."))...)}, clock}}))
}

// reached returns the only open limit interrupt.
func reached(t testing.TB, p *recording) (agent.LimitReached, string) {
	t.Helper()
	open := one(t, p.waits(t))
	asked, err := agent.OverLimit.Question(open)
	if err != nil || open.Kind != "limit-reached" {
		t.Fatalf("it asks %+v, %v", open, err)
	}
	return asked, open.ID
}

func TestLimits_EachAsksBeforeMoreIsUsed(t *testing.T) {
	for name, test := range map[string]struct {
		limits      agent.Limits
		first, then agent.LimitReached // then is after the same amount again
		calls       map[string]int     // when it asks first
	}{
		"model calls": {agent.Limits{ModelCalls: 2},
			agent.LimitReached{Limit: agent.LimitModelCalls, Max: 2, Used: 3, Total: spent(2, 4)},
			agent.LimitReached{Limit: agent.LimitModelCalls, Max: 4, Used: 5, Total: spent(4, 8)},
			map[string]int{"model clerk": 2, "tool work": 2, "tool more": 2}},
		"tool calls": {agent.Limits{ToolCalls: 3},
			agent.LimitReached{Limit: agent.LimitToolCalls, Max: 3, Used: 4, Total: spent(2, 2)},
			agent.LimitReached{Limit: agent.LimitToolCalls, Max: 6, Used: 8, Total: spent(4, 6)},
			map[string]int{"model clerk": 2, "tool work": 1, "tool more": 1}},
		"tokens": {agent.Limits{Tokens: 20},
			agent.LimitReached{Limit: agent.LimitTokens, Max: 20, Used: 20, Total: spent(2, 4)},
			agent.LimitReached{Limit: agent.LimitTokens, Max: 40, Used: 40, Total: spent(4, 8)},
			map[string]int{"model clerk": 2, "tool work": 2, "tool more": 2}},
		"cost": {agent.Limits{Cost: 3},
			agent.LimitReached{Limit: agent.LimitCost, Max: 3, Used: 3, Total: spent(2, 4)},
			agent.LimitReached{Limit: agent.LimitCost, Max: 6, Used: 6, Total: spent(4, 8)},
			map[string]int{"model clerk": 2, "tool work": 2, "tool more": 2}},
		"time, before tools": {agent.Limits{Time: 40 * time.Second},
			agent.LimitReached{Limit: agent.LimitTime, Max: 40, Used: 40, Total: spent(2, 2)},
			agent.LimitReached{Limit: agent.LimitTime, Max: 80, Used: 80, Total: spent(4, 6)},
			map[string]int{"model clerk": 2, "tool work": 1, "tool more": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			x, clock := limited(t, test.limits, tireless)
			test.first.Agent, test.then.Agent = "clerk", "clerk"
			got, id := reached(t, x.start())
			if d := cmp.Diff(test.first, got); d != "" {
				t.Errorf("the question differs (-want +got):\n%s", d)
			}
			x.c.want(t, test.calls)
			clock.advance(24 * time.Hour) // waiting for a person does not count
			got, next := reached(t, x.goOn(map[string]any{id: agent.LimitDecision{Continue: true}}))
			if d := cmp.Diff(test.then, got); d != "" || next == id {
				t.Errorf("the second question differs (-want +got):\n%s", d)
			}
			p := x.goOn(map[string]any{next: agent.LimitDecision{Continue: true, More: 1000}})
			if usage := p.finished(t).Usage; usage != (agent.Usage{InputTokens: 80, OutputTokens: 20}) {
				t.Errorf("it used %+v", usage)
			}
			x.c.want(t, map[string]int{"model clerk": 10, "tool work": 9, "tool more": 9})
			saved := must(x.runner().Inspect(t.Context(), "run"))
			if d := cmp.Diff(spent(10, 18), saved.Spent); d != "" {
				t.Errorf("the usage differs (-want +got):\n%s", d)
			}
		})
	}
}

// spent is the usage after this many calls.
func spent(models, tools int) agent.Spent {
	n := int64(models)
	return agent.Spent{Usage: agent.Usage{InputTokens: 8 * n, OutputTokens: 2 * n}, ModelCalls: models, ToolCalls: tools,
		Cost: 1.5 * float64(models), Time: time.Duration(models) * 20 * time.Second}
}

func TestLimits_MoreIsAsMuchAsThePersonAllows(t *testing.T) {
	x, _ := limited(t, agent.Limits{ModelCalls: 2}, tireless)
	p := x.start()
	for _, more := range []int{1, 3, 2} {
		before, id := reached(t, p)
		if before.Used != float64(x.c.of("model clerk")+1) || before.Max != float64(x.c.of("model clerk")) {
			t.Errorf("after %d calls it reports %+v", x.c.of("model clerk"), before)
		}
		calls := x.c.of("model clerk")
		p = x.goOn(map[string]any{id: agent.LimitDecision{Continue: true, More: float64(more)}})
		if got := x.c.of("model clerk") - calls; got != more {
			t.Errorf("%d more were allowed, and %d made", more, got)
		}
	}
}

func TestLimits_ARefusalEndsTheRunForGood(t *testing.T) {
	for name, limits := range map[string]agent.Limits{"before a model": {ModelCalls: 2}, "before tools": {ToolCalls: 4}} {
		t.Run(name, func(t *testing.T) {
			x, _ := limited(t, limits, tireless)
			asked, id := reached(t, x.start())
			calls := x.c.of("model clerk")
			refused := x.goOn(map[string]any{id: json.RawMessage(`{"goOn":false,"reason":"it goes in circles","by":"ann"}`)})
			got, ok := errors.AsType[*agent.LimitError](refused.err)
			if !ok || got.By != "ann" || got.Reason != "it goes in circles" || cmp.Diff(asked, got.Reached) != "" {
				t.Fatalf("got %q", refused.log())
			}
			for _, part := range []string{"by ann", "it goes in circles", string(asked.Limit)} {
				if !strings.Contains(got.Error(), part) {
					t.Errorf("%q does not contain %q", got, part)
				}
			}
			for name, limits := range map[string]agent.Limits{"the same limits": limits, "others": {ModelCalls: 1000, ToolCalls: 1000}, "no limits": {}} {
				x.change = func(config *agent.RunnerConfig) { config.Limits = limits }
				again := x.goOn(nil)
				if got, ok := errors.AsType[*agent.LimitError](again.err); !ok || got.By != "ann" {
					t.Errorf("resumed with %s: %q", name, again.log())
				}
			}
			if x.c.of("model clerk") != calls || x.c.of("tool work") != 2 {
				t.Errorf("after the refusal %v had happened", x.c.n)
			}
		})
	}
}

func TestLimits_InvalidAnswerLeavesTheInterruptOpen(t *testing.T) {
	x, _ := limited(t, agent.Limits{ModelCalls: 2}, tireless)
	_, id := reached(t, x.start())
	for _, wrong := range []any{
		nil, true, "yes", 3, json.RawMessage(`{}`), json.RawMessage(`{"goOn":"true"}`), json.RawMessage(`{"GoOn":true}`), json.RawMessage(`{"goOn":true,"goOn":false}`),
		agent.LimitDecision{Continue: true, More: -1}, agent.LimitDecision{Continue: false, More: 1}, fermata.Decision{Verb: fermata.VerbApprove},
	} {
		p := x.goOn(map[string]any{id: wrong})
		if _, bad := errors.AsType[*fermata.AnswerError](p.err); !bad {
			t.Errorf("%v: got %q", wrong, p.log())
		}
	}
	if _, again := reached(t, x.goOn(nil)); again != id {
		t.Errorf("it was asked as %s and is now asked as %s", id, again)
	}
	x.c.want(t, map[string]int{"model clerk": 2, "tool work": 2, "tool more": 2})
}

// crew is a boss with a worker below, and a person to be asked in between.
func crew(x *agentHarness, clock *manualClock) agent.Agent {
	metered := func(name string, list []*tool.Tool, lines ...script.Line) agent.Agent {
		return must(agent.NewChat(agent.Chat{Name: name, Tools: list, Model: meterModel{&scriptedModel{x, name, script.New(lines...)}, clock}}))
	}
	worker := metered("worker", tools(x.tool("dig"), asking(&x.c, "ask")),
		script.Call("dig", "{}"), script.Call("ask", `{"to":"go on"}`), script.Call("dig", "{}"), script.Say("dug"))
	return metered("boss", tools(agent.AsTool(worker)), script.Call("worker", `{"request":"dig"}`), script.Say("Good."))
}

func TestLimits_AllAgentsCountTogetherAcrossResumes(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		clock := new(manualClock)
		x := newAgentHarnessIn(p, func(x *agentHarness) agent.Agent { return crew(x, clock) })
		x.change = func(config *agent.RunnerConfig) {
			config.Limits, config.Clock = agent.Limits{ModelCalls: 3, ToolCalls: 3}, clock.Now
		}
		ask := one(t, x.start().waits(t))
		over, id := reached(t, x.goOn(map[string]any{ask.ID: "yes"}))
		if over.Limit != agent.LimitModelCalls || over.Used != 4 || over.Agent != "worker" || over.Total.ToolCalls != 3 {
			t.Errorf("it asks %+v", over)
		}
		over, id = reached(t, x.goOn(map[string]any{id: agent.LimitDecision{Continue: true, More: 2}}))
		if over.Limit != agent.LimitToolCalls || over.Used != 4 || over.Agent != "worker" || over.Total.ModelCalls != 4 {
			t.Errorf("it asks %+v", over)
		}
		over, id = reached(t, x.goOn(map[string]any{id: agent.LimitDecision{Continue: true, More: 10}}))
		if over.Limit != agent.LimitModelCalls || over.Used != 6 || over.Agent != "boss" || over.Total.ToolCalls != 4 {
			t.Errorf("it asks %+v", over)
		}
		x.goOn(map[string]any{id: agent.LimitDecision{Continue: true}}).finished(t)
		x.c.want(t, map[string]int{"model boss": 2, "model worker": 4, "tool dig": 2, "enter ask": 2, "ask done": 1})
		saved := must(x.runner().Inspect(t.Context(), "run")).Spent
		if saved.ModelCalls != 6 || saved.ToolCalls != 4 || saved.Time != 2*time.Minute {
			t.Errorf("the account is %+v", saved) // replayed calls are not counted again
		}
	})
}

// A call in progress counts: the worker's first tool call is the run's second.
func TestLimits_CallsUnderWayCount(t *testing.T) {
	x, _ := limited(t, agent.Limits{ToolCalls: 1}, crew)
	over, _ := reached(t, x.start())
	if over.Used != 2 || over.Agent != "worker" || x.c.of("tool dig") != 0 {
		t.Errorf("it asks %+v after %v", over, x.c.n)
	}
}

func TestLimits_SeveralAreAskedOneAfterTheOther(t *testing.T) {
	x, _ := limited(t, agent.Limits{ModelCalls: 2, Tokens: 20, Cost: 3, Time: time.Hour}, tireless)
	p, seen := x.start(), make(map[string]bool)
	for _, want := range []agent.Limit{agent.LimitModelCalls, agent.LimitTokens, agent.LimitCost} {
		asked, id := reached(t, p)
		if asked.Limit != want || seen[id] || x.c.of("model clerk") != 2 {
			t.Errorf("it asks for %q as %s after %v, want %q", asked.Limit, id, x.c.n, want)
		}
		seen[id] = true
		p = x.goOn(map[string]any{id: agent.LimitDecision{Continue: true, More: 1e6}})
	}
	p.finished(t)
}

func TestLimits_TooLittleMoreIsAskedAgain(t *testing.T) {
	x, _ := limited(t, agent.Limits{Tokens: 20}, tireless)
	_, id := reached(t, x.start())
	x.c.want(t, map[string]int{"model clerk": 2, "tool work": 2, "tool more": 2})
	// the limit may be even lower now
	x.change = func(config *agent.RunnerConfig) { config.Limits.Tokens = 1 }
	again, next := reached(t, x.goOn(map[string]any{id: agent.LimitDecision{Continue: true, More: 5}}))
	if next == id || again.Max != 6 || again.Used != 20 || x.c.of("model clerk") != 2 {
		t.Errorf("it asks %+v after %v", again, x.c.n)
	}
}

func TestLimits_AnOpenQuestionOutlivesTheLimit(t *testing.T) {
	for name, limits := range map[string]agent.Limits{"raised": {ModelCalls: 100}, "gone": {}} {
		t.Run(name, func(t *testing.T) {
			x, _ := limited(t, agent.Limits{ModelCalls: 2}, tireless)
			before, id := reached(t, x.start())
			x.change = func(config *agent.RunnerConfig) { config.Limits = limits }
			after, same := reached(t, x.goOn(nil))
			if same != id || cmp.Diff(before, after) != "" {
				t.Errorf("it asked %+v and now asks %+v", before, after)
			}
			x.goOn(map[string]any{id: agent.LimitDecision{Continue: true}}).finished(t)
		})
	}
}

// Parallel branches that each have room for one more call would together exceed the limit.
func TestLimits_ParallelLanesDoNotPassItTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, _ := limited(t, agent.Limits{ModelCalls: 2}, func(x *agentHarness, clock *manualClock) agent.Agent {
			var lanes []agent.Agent
			for i := range 5 {
				lanes = append(lanes, must(agent.NewChat(agent.Chat{Name: fmt.Sprint("lane", i), Model: meterModel{&scriptedModel{x, "lane", script.New(script.Say("Done."))}, clock}})))
			}
			return must(agent.NewParallel("lanes", "", lanes...))
		})
		// all branches continue as far as they can
		slow := func(context.Context, string) error { time.Sleep(time.Second); return nil }
		x.moment = slow
		open := x.start().waits(t)
		if len(open) != 3 {
			t.Fatalf("%d branches ask, want 3", len(open))
		}
		x.c.want(t, map[string]int{"model lane": 2})
		x.moment = slow
		left := x.goOn(map[string]any{open[1].ID: agent.LimitDecision{Continue: true, More: 1}}).waits(t)
		if want := ids(slices.Delete(slices.Clone(open), 1, 2)); !slices.Equal(ids(left), want) {
			t.Errorf("%v are open, want %v", ids(left), want)
		}
		x.c.want(t, map[string]int{"model lane": 3})
		x.moment = slow
		x.goOn(map[string]any{left[0].ID: agent.LimitDecision{Continue: true, More: 1}, left[1].ID: agent.LimitDecision{Continue: true, More: 1}}).finished(t)
		x.c.want(t, map[string]int{"model lane": 5})
	})
}

func TestLimits_AFailedCallLeavesItsRoomToTheNext(t *testing.T) {
	x, _ := limited(t, agent.Limits{ModelCalls: 1, ToolCalls: 2}, func(x *agentHarness, clock *manualClock) agent.Agent {
		return must(agent.NewChat(agent.Chat{Name: "clerk", Tools: tools(tool.New("work", "Works.", func(ctx context.Context, _ struct{}) (string, error) {
			return "done", x.at(ctx, "tool work")
		}, tool.Final())), Model: meterModel{&scriptedModel{x, "clerk", script.New(script.Calls(agent.ToolCall{Name: "work", Args: "{}"}, agent.ToolCall{Name: "work", Args: "{}"}))}, clock}}))
	})
	failure := errors.New("out of order")
	fails := func(at string) func(context.Context, string) error {
		return func(_ context.Context, what string) error {
			if what == at {
				return failure
			}
			return nil
		}
	}
	x.moment = fails("model clerk")
	if p := x.start(); !errors.Is(p.err, failure) {
		t.Fatalf("got %q", p.log())
	}
	x.moment = fails("tool work")
	if p := x.goOn(nil); !errors.Is(p.err, failure) {
		t.Fatalf("got %q", p.log())
	}
	x.goOn(nil).finished(t)
	if saved := must(x.runner().Inspect(t.Context(), "run")).Spent; saved.ModelCalls != 1 || saved.ToolCalls != 2 {
		t.Errorf("the account is %+v", saved)
	}
}

// A decision counts once, however often the code after it is entered; a used decision is not
// reported as unused.
func TestLimits_ADecisionCountsOnceWhateverHappensBehindIt(t *testing.T) {
	failing := func(at string) func(context.Context, string) error {
		return func(_ context.Context, what string) error {
			if what == at {
				return errors.New("out of order")
			}
			return nil
		}
	}
	x, _ := limited(t, agent.Limits{ModelCalls: 2}, tireless)
	_, id := reached(t, x.start())
	x.moment = failing("model clerk")
	if p := x.goOn(map[string]any{id: agent.LimitDecision{Continue: true, More: 1}}); p.err == nil {
		t.Fatalf("got %q", p.log())
	}
	if next, _ := reached(t, x.goOn(nil)); next.Max != 3 || next.Used != 4 {
		t.Errorf("it asks %+v", next)
	}

	x, _ = limited(t, agent.Limits{ToolCalls: 1}, func(x *agentHarness, clock *manualClock) agent.Agent {
		return must(agent.NewChat(agent.Chat{Name: "clerk", Tools: tools(x.tool("work"), asking(&x.c, "ask")), Model: meterModel{&scriptedModel{x, "clerk",
			script.New(script.Calls(agent.ToolCall{Name: "work", Args: "{}"}, call("ask", "A")), script.Say("Done."))}, clock}}))
	})
	_, id = reached(t, x.start())
	x.moment = failing("tool work")
	if p := x.goOn(map[string]any{id: agent.LimitDecision{Continue: true}}); p.err == nil {
		t.Fatalf("got %q", p.log())
	}
	if waiting := x.goOn(nil).interrupted(t); len(waiting.Interrupts) != 1 || len(waiting.BadAnswers) > 0 {
		t.Errorf("it waits for %v, and reports %v", infos(waiting.Interrupts), waiting.BadAnswers)
	}
}

// A failing model in the agent of a tool need not fail the run. Its call is not counted.
func TestLimits_FailedCallIsNotCounted(t *testing.T) {
	x, _ := limited(t, agent.Limits{ModelCalls: 3}, func(x *agentHarness, clock *manualClock) agent.Agent {
		worker := must(agent.NewChat(agent.Chat{Name: "worker", Model: meterModel{&scriptedModel{x, "worker", script.New(script.Fail(errors.New("out of order")))}, clock}}))
		return must(agent.NewChat(agent.Chat{Name: "boss", Tools: tools(tool.ReportErrors(agent.AsTool(worker))), Model: meterModel{&scriptedModel{x, "boss", script.New(
			script.Call("worker", `{"request":"dig"}`), script.Call("worker", `{"request":"dig again"}`), script.Say("Then not."))}, clock}}))
	})
	x.start().finished(t)
	x.c.want(t, map[string]int{"model boss": 3, "model worker": 2})
}

// Seed 004: an agent decides to try again, two hundred times.
func TestLimits_ARetryLoopStopsAndAsks(t *testing.T) {
	retries := slices.Repeat([]script.Line{script.Call("retry", "{}")}, 200)
	for name, build := range map[string]func(x *agentHarness, clock *manualClock) agent.Agent{
		"of a model": func(x *agentHarness, clock *manualClock) agent.Agent {
			return must(agent.NewChat(agent.Chat{Name: "clerk", MaxTurns: 201, Tools: tools(x.tool("retry")),
				Model: meterModel{&scriptedModel{x, "clerk", script.New(append(retries, script.Say("I give up."))...)}, clock}}))
		},
		"of a loop": func(x *agentHarness, clock *manualClock) agent.Agent {
			again := must(agent.NewChat(agent.Chat{Name: "clerk", Tools: tools(tool.New("retry", "Tries.", func(ctx context.Context, _ struct{}) (string, error) {
				return "no", x.at(ctx, "tool retry")
			}, tool.Final())), Model: meterModel{&scriptedModel{x, "clerk", script.New(slices.Repeat(retries, 2)...)}, clock}}))
			return must(agent.NewLoop("again", "", 200, again))
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, _ := limited(t, agent.Limits{ToolCalls: 20, Cost: 300}, build)
			asked, id := reached(t, x.start())
			if asked.Limit != agent.LimitToolCalls || asked.Used != 21 || x.c.of("tool retry") != 20 {
				t.Errorf("it asks %+v after %v", asked, x.c.n)
			}
			asked, id = reached(t, x.goOn(map[string]any{id: agent.LimitDecision{Continue: true, More: 5, By: "ann"}}))
			if asked.Used != 26 || x.c.of("tool retry") != 25 {
				t.Errorf("it asks %+v after %v", asked, x.c.n)
			}
			refused := x.goOn(map[string]any{id: agent.LimitDecision{By: "ann", Reason: "enough"}})
			if _, ok := errors.AsType[*agent.LimitError](refused.err); !ok || x.c.of("tool retry") != 25 {
				t.Errorf("got %q after %v", refused.log(), x.c.n)
			}
		})
	}
}

func TestLimits_ACostNeedsAPrice(t *testing.T) {
	_, err := agent.NewRunner(agent.RunnerConfig{Agent: chat(new(counter), "clerk", nil), Limits: agent.Limits{Cost: 1}})
	if err == nil || !strings.Contains(err.Error(), "Price") {
		t.Errorf("got %v", err)
	}
}

// misreporting is a model whose service reports this usage for each call.
type misreporting struct {
	agent.Model
	usage agent.Usage
}

func (m misreporting) Generate(ctx context.Context, r *agent.Request) (*agent.Response, error) {
	response, err := m.Model.Generate(ctx, r)
	if err == nil {
		response.Usage = m.usage
	}
	return response, err
}

// A wrong usage report must not increase what a run may use: negative values count as zero, and the
// sum does not overflow.
func TestLimits_AServiceCannotGiveTokensBack(t *testing.T) {
	for name, usage := range map[string]agent.Usage{
		"less than nothing":  {InputTokens: -1000, OutputTokens: 600, CachedTokens: -1},
		"more than there is": {InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64, CachedTokens: math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			var c counter
			lines := append(slices.Repeat([]script.Line{script.Call("book", `{"to":"Paris"}`)}, 3), script.Say("Done."))
			a := must(agent.NewChat(agent.Chat{Name: "clerk", Tools: tools(booking(&c)), Model: misreporting{model(&c, "clerk", lines...), usage}}))
			r := newRunner(t, a, func(config *agent.RunnerConfig) { config.Limits.Tokens = 1000 })
			asked, _ := reached(t, record(r.Query(t.Context(), "Go.")))
			if asked.Limit != agent.LimitTokens || asked.Used < 1000 || c.of("book Paris") > 2 {
				t.Errorf("%+v, after %v", asked, c.n)
			}
		})
	}
}
