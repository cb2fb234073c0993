package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"sync"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/tool"
)

// Findings of an adversarial review. Each was a bug.

// eventful is an agent that consists of one function.
type eventful struct {
	name string
	fn   func(ctx context.Context, in *agent.Input, yield func(*agent.Event, error) bool)
}

func (e eventful) Name() string        { return e.name }
func (e eventful) Description() string { return "" }
func (e eventful) Run(ctx context.Context, in *agent.Input) iter.Seq2[*agent.Event, error] {
	return func(yield func(*agent.Event, error) bool) { e.fn(ctx, in, yield) }
}

func TestI4_ARefusedCallIsNotMadeByAProgramThatNoLongerAsks(t *testing.T) {
	var c counter
	asks := true
	a := must(agent.NewChat(agent.Chat{Name: "a", Model: script.New(script.Call("book", `{"to":"Paris"}`), script.Say("done")),
		MoreTools: func(context.Context) ([]*tool.Tool, error) {
			if asks {
				return tools(tool.Approve(booking(&c))), nil
			}
			return tools(booking(&c)), nil
		}}))
	r := newRunner(t, a)
	q := one(t, record(r.Query(t.Context(), "hi", agent.WithRun("r"))).waits(t))
	asks = false
	if p := record(r.ResumeWithParams(t.Context(), "r", answer(q, no))); p.err == nil || c.of("book Paris") > 0 {
		t.Errorf("refused, and booked %d times: %v", c.of("book Paris"), p.log())
	}
	asks = true
	record(r.Resume(t.Context(), "r")).finished(t)
	if c.of("book Paris") > 0 {
		t.Error("the refusal was lost")
	}
}

func TestReportErrors_KeepsErrorsOfTheRun(t *testing.T) {
	noop := func(c *counter) *tool.Tool {
		return tool.New("noop", "", func(context.Context, city) (string, error) { c.add("noop"); return "", nil })
	}
	delegate := func(c *counter, in agent.Agent) agent.Agent {
		return chat(c, "a", tools(tool.ReportErrors(agent.AsTool(in))), script.Call("in", `{"request":"x"}`), script.Say("outer done"))
	}
	t.Run("a cancel", func(t *testing.T) {
		var c counter
		ctx, cancel := agent.WithCancel(t.Context())
		in := chat(&c, "in", tools(noop(&c)), func(*agent.Request) (agent.Message, error) {
			cancel(agent.CancelAfterModel)
			return agent.Assistant("", agent.ToolCall{Name: "noop", Args: `{"to":"x"}`}), nil
		}, script.Say("inner done"))
		r := newRunner(t, delegate(&c, in))
		record(r.Query(ctx, "hi", agent.WithRun("r")))
		record(r.Resume(t.Context(), "r")).finished(t)
		if c.of("noop") != 1 {
			t.Errorf("the work is lost: %v", c.n)
		}
	})
	t.Run("a program that changed", func(t *testing.T) {
		var c counter
		st := memory.New()
		build := func(name string) *agent.Runner {
			asks := tool.Approve(tool.New(name, "", func(context.Context, city) (string, error) { c.add("did"); return "", nil }))
			in := chat(&c, "in", tools(asks), script.Call("pay", `{"to":"x"}`), script.Say("inner done"))
			return newRunner(t, delegate(&c, in), func(config *agent.RunnerConfig) { config.Store = st })
		}
		q := one(t, record(build("pay").Query(t.Context(), "hi", agent.WithRun("r"))).waits(t))
		if p := record(build("pay2").ResumeWithParams(t.Context(), "r", answer(q, yes))); p.err == nil {
			t.Errorf("an approved interrupt is bypassed: %v", p.log())
		}
	})
	t.Run("a limit", func(t *testing.T) {
		var c counter
		in := chat(&c, "in", tools(noop(&c)), script.Call("noop", `{"to":"x"}`), script.Say("inner done"))
		r := newRunner(t, delegate(&c, in), func(config *agent.RunnerConfig) { config.Limits.ToolCalls = 1 })
		q := one(t, record(r.Query(t.Context(), "hi", agent.WithRun("r"))).waits(t))
		if p := record(r.ResumeWithParams(t.Context(), "r", answer(q, agent.LimitDecision{Continue: false}))); p.err == nil {
			t.Errorf("it went on: %v", p.log())
		}
	})
}

func TestI6_PolicyCannotChangeArgumentsForTheNext(t *testing.T) {
	masks := fermata.PolicyFunc(func(_ context.Context, r fermata.ActionRequest) (fermata.Ruling, error) {
		if i := bytes.Index(r.Args, []byte("Paris")); i >= 0 {
			copy(r.Args[i:], "*****")
		}
		return fermata.Ruling{Verdict: fermata.Allow}, nil
	})
	denies := fermata.PolicyFunc(func(_ context.Context, r fermata.ActionRequest) (fermata.Ruling, error) {
		if bytes.Contains(r.Args, []byte("Paris")) {
			return fermata.Ruling{Verdict: fermata.Deny}, nil
		}
		return fermata.Ruling{Verdict: fermata.Allow}, nil
	})
	for name, options := range map[string][]tool.Option{"effect": nil, "repeatable": {tool.Repeatable()}} {
		for _, order := range []struct {
			name         string
			tool, runner fermata.Policy
		}{{"the tool's sees it", denies, masks}, {"the runner's sees it", masks, denies}} {
			t.Run(name+", "+order.name, func(t *testing.T) {
				var c counter
				book := tool.New("book", "", func(_ context.Context, in city) (string, error) { c.add("book " + in.To); return "", nil }, options...)
				r := newRunner(t, chat(&c, "a", tools(tool.Guard(book, order.tool)), script.Call("book", `{"to":"Paris"}`), script.Say("done")),
					func(config *agent.RunnerConfig) { config.Policy = order.runner })
				record(r.Query(t.Context(), "hi", agent.WithRun("r"))).finished(t)
				c.want(t, map[string]int{"model a": 2})
			})
		}
	}
}

func TestStream_EventsAfterTheEndAreDropped(t *testing.T) {
	var c counter
	var kept context.Context
	inner := tool.NewStream("inner", "", func(context.Context, city) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) { yield("x", nil) }
	})
	outer := tool.New("outer", "", func(ctx context.Context, _ city) (string, error) { kept = ctx; return "ok", nil })
	r := newRunner(t, chat(&c, "a", tools(outer), script.Call("outer", `{"to":"x"}`), script.Say("done")))
	record(r.Query(t.Context(), "hi")).finished(t)
	for range 50 {
		_, _ = inner.Call(kept, json.RawMessage(`{"to":"x"}`))
	}
}

func TestStream_AnIteratorThatIsUsedTwiceIsTwoRuns(t *testing.T) {
	var c counter
	seq := newRunner(t, chat(&c, "a", nil, script.Say("done"))).Query(t.Context(), "hi")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			run, n := "", 0
			for e, err := range seq {
				if err != nil {
					t.Errorf("err %v", err)
					return
				}
				if n++; run != "" && e.Run != run {
					t.Errorf("events of two runs: %s %s", run, e.Run)
				}
				run = e.Run
			}
			if n != 2 {
				t.Errorf("%d events", n)
			}
		})
	}
	wg.Wait()
}

func TestI5_AToolThatNoLongerRunsItsAgentIsNoticedBeforeItsResultCounts(t *testing.T) {
	var c counter
	skip := false
	in := chat(&c, "in", tools(tool.Approve(booking(&c))), script.Call("book", `{"to":"Paris"}`), script.Say("inner"))
	x := tool.New("x", "", func(ctx context.Context, _ city) (string, error) {
		if skip {
			return "skipped", nil
		}
		_, err := agent.Run(ctx, in, agent.UserInput("x"))
		return "ok", err
	})
	r := newRunner(t, chat(&c, "a", tools(x), script.Call("x", `{"to":"x"}`), script.Say("done")))
	q := one(t, record(r.Query(t.Context(), "hi", agent.WithRun("r"))).waits(t))
	skip = true
	record(r.ResumeWithParams(t.Context(), "r", answer(q, yes)))
	if c.of("model a") != 1 {
		t.Error("the model was called after the missing place")
	}
	skip = false // the old program is back
	record(r.Resume(t.Context(), "r")).finished(t)
	if c.of("book Paris") != 1 {
		t.Errorf("the approved call is lost: %v", c.n)
	}
}

func TestLoop_TheExitOfAnInnerLoopIsNotThatOfTheOuter(t *testing.T) {
	rounds := 0
	exits := eventful{"exits", func(_ context.Context, _ *agent.Input, yield func(*agent.Event, error) bool) {
		yield(&agent.Event{Body: agent.Exit{}}, nil)
	}}
	inner := must(agent.NewLoop("inner", "", 5, exits))
	wrap := eventful{"wrap", func(ctx context.Context, in *agent.Input, yield func(*agent.Event, error) bool) {
		rounds++
		for e, err := range inner.Run(ctx, in) {
			if !yield(e, err) {
				return
			}
		}
	}}
	record(newRunner(t, must(agent.NewLoop("outer", "", 3, wrap))).Query(t.Context(), "hi")).finished(t)
	if rounds != 3 {
		t.Errorf("the outer loop ended after %d iterations", rounds)
	}
}

func TestKey_OfACallIsNotThatOfTheCallsInside(t *testing.T) {
	var c counter
	var keys []string
	pay := tool.New("pay", "", func(ctx context.Context, _ city) (string, error) {
		keys = append(keys, tool.Key(ctx))
		return "ok", nil
	})
	in := chat(&c, "in", tools(pay), script.Call("pay", `{"to":"x"}`), script.Call("pay", `{"to":"y"}`), script.Say("done"))
	trip := tool.Approve(tool.New("trip", "", func(ctx context.Context, _ city) (string, error) {
		_, err := agent.Run(ctx, in, agent.UserInput("go"))
		return "ok", err
	}))
	r := newRunner(t, chat(&c, "a", tools(trip), script.Call("trip", `{"to":"x"}`), script.Say("done")))
	q := one(t, record(r.Query(t.Context(), "hi", agent.WithRun("r"))).waits(t))
	record(r.ResumeWithParams(t.Context(), "r", answer(q, yes))).finished(t)
	if len(keys) != 2 || keys[0] != "" || keys[1] != "" {
		t.Errorf("calls without approval have keys: %q", keys)
	}
}

func TestI5_NothingRunsAfterTheSecondCallOfAMissingAgent(t *testing.T) {
	var c counter
	n := 0
	a := must(agent.NewFunc("a", "", func(ctx context.Context, _ *agent.Input) (*agent.Output, error) {
		if n++; n == 1 {
			return nil, nil
		}
		_, err := question.Ask(ctx, "ok?")
		return nil, err
	}))
	b := must(agent.NewFunc("b", "", func(context.Context, *agent.Input) (*agent.Output, error) { c.add("b"); return nil, nil }))
	st := memory.New()
	runner := func(agents ...agent.Agent) *agent.Runner {
		return newRunner(t, must(agent.NewSequential("s", "", agents...)), func(config *agent.RunnerConfig) { config.Store = st })
	}
	q := one(t, record(runner(a, a, b).Query(t.Context(), "hi", agent.WithRun("r"))).waits(t))
	if p := record(runner(a, b).ResumeWithParams(t.Context(), "r", answer(q, "yes"))); p.err == nil || c.of("b") > 0 {
		t.Errorf("b worked %d times: %v", c.of("b"), p.log())
	}
}

func TestPlan_UnexpectedPlannerAnswerIsRetried(t *testing.T) {
	n := 0
	planner := script.New(func(*agent.Request) (agent.Message, error) {
		switch n++; n {
		case 1:
			return agent.Assistant("no idea"), nil
		case 2:
			return agent.Assistant("", agent.ToolCall{ID: "1", Name: "plan", Args: `{"steps":["s"]}`}), nil
		}
		return agent.Assistant("all done"), nil
	})
	executor := must(agent.NewFunc("ex", "", func(context.Context, *agent.Input) (*agent.Output, error) { return nil, nil }))
	r := newRunner(t, must(agent.NewPlanExecute(agent.PlanExecute{Name: "p", Planner: planner, Executor: executor})))
	if p := record(r.Query(t.Context(), "hi", agent.WithRun("r"))); p.err == nil {
		t.Fatalf("it should fail: %v", p.log())
	}
	record(r.Resume(t.Context(), "r")).finished(t)
}

func TestCustom_ForeignBodyReturnsError(t *testing.T) {
	a := eventful{"a", func(_ context.Context, _ *agent.Input, yield func(*agent.Event, error) bool) {
		// a pointer
		yield(&agent.Event{Body: &agent.MessageAdded{Message: agent.Assistant("hello")}}, nil)
	}}
	if p := record(newRunner(t, a).Query(t.Context(), "hi")); p.err == nil {
		t.Errorf("it was taken: %v", p.log())
	}
}
