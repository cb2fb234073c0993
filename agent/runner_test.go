package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/storetest"
	"github.com/fermata-go/fermata/tool"
)

// scenario 38
func TestRunner_ACustomAgentWaitsAndGoesOnInTheModeThatItBeganWith(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		mode := true
		p.change = func(config *agent.RunnerConfig) { config.EnableStreaming = mode }
		var resumed *agent.ResumeInfo
		p.build = func() agent.Agent {
			r := &resumer{player: player{name: "a"}}
			r.perform = func(ctx context.Context, _ *agent.Input, yield yield) {
				_ = yield(&agent.Event{Body: agent.Token{Text: "hello "}}, nil) && yield(&agent.Event{Body: agent.Token{Text: "world"}}, nil) &&
					yield(says("hello world"), nil) && yield(agent.Interrupt(ctx, "go on?"), nil)
			}
			r.resume = func(_ context.Context, info *agent.ResumeInfo, yield yield) {
				resumed = info
				yield(says("going on"), nil)
			}
			return r
		}
		first := p.query("go")
		first.wantLog(t, "a token hello ", "a token world", "a says hello world", "a waits for [go on?]")
		mode, p.now = false, nil
		p.answer(one(t, first.waits(t)), nil).wantLog(t, "a says going on", "a finished")
		if !resumed.EnableStreaming || !resumed.IsResumeTarget || resumed.ResumeData != nil {
			t.Errorf("got %+v", resumed)
		}
	})
}

// scenario 51
func TestRunner_AnUnknownRunIsAnErrorAndNothingRuns(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent { return chat(&c, "clerk", nil, script.Say("x")) }
		if got := p.resume(); !errors.Is(got.err, graph.ErrUnknownRun) || len(got.events) != 0 {
			t.Errorf("got %q", got.log())
		}
		if got := p.answers(map[string]any{"int_x": 1}); !errors.Is(got.err, graph.ErrUnknownRun) || len(got.events) != 0 {
			t.Errorf("got %q", got.log())
		}
		if _, err := p.runner().Inspect(t.Context(), "run"); !errors.Is(err, graph.ErrUnknownRun) {
			t.Errorf("got %v", err)
		}
		c.want(t, nil)
	})
}

// hidden is a wrapper that hides Resume.
type hidden struct{ agent.Agent }

// scenario 52: an agent whose Resume is hidden by a wrapper is entered again from the start, and
// asks; it does not pass.
func TestRunner_AWrapperThatHidesResumeDoesNotPassTheQuestion(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent { return hidden{holder(&c, "h", 1)} }
		first := p.query("go")
		second := p.answer(one(t, first.waits(t)), "x")
		second.wantLog(t, "h waits for [h 1?]")
		if one(t, second.waits(t)).ID == one(t, first.waits(t)).ID {
			t.Error("an answered interrupt was raised again with its old id")
		}
		c.want(t, map[string]int{"run h": 2})
		// without the wrapper it continues
		p.build, p.now = func() agent.Agent { return holder(&c, "h", 1) }, nil
		p.answer(one(t, second.waits(t)), "y").wantLog(t, "h says h heard y at 1", "h finished")
	})
}

// scenario 53
func TestRunner_WithoutAStoreNoInterruptIsReported(t *testing.T) {
	var c counter
	for name, a := range map[string]agent.Agent{
		"a tool":  chat(&c, "clerk", tools(asking(&c, "ask")), script.Calls(call("ask", "x"))),
		"inside":  chat(&c, "clerk", tools(agent.AsTool(asker(&c, "inner"))), script.Call("inner", `{"request":"x"}`)),
		"a limit": chat(&c, "clerk", nil, script.Say("x")),
	} {
		r := newRunner(t, a, func(config *agent.RunnerConfig) {
			config.Store = nil
			if name == "a limit" {
				config.Limits.Tokens = 1
				config.Agent = must(agent.NewSequential("two", "", a, chat(&c, "other", nil, script.Say("y"))))
			}
		})
		p := record(r.Query(t.Context(), "go"))
		if !errors.Is(p.err, graph.ErrNoStore) || slices.ContainsFunc(p.log(), func(line string) bool { return strings.Contains(line, "waits for") }) {
			t.Errorf("%s: got %q", name, p.log())
		}
	}
}

func TestRunner_WithoutAStoreARunThatDoesNotWaitWorks(t *testing.T) {
	var c counter
	r := newRunner(t, chat(&c, "clerk", tools(booking(&c)), script.Calls(call("book", "Paris")), script.Say("Done.")),
		func(config *agent.RunnerConfig) { config.Store = nil })
	record(r.Query(t.Context(), "go")).finished(t)
}

func TestI9_UnsavedInterruptIsNotReported(t *testing.T) {
	var c counter
	down := errors.New("the disk is full")
	for n := 1; ; n++ {
		st := storetest.NewFaulty(memory.New())
		st.FailSave(n, storetest.BeforeWrite, down)
		r := newRunner(t, chat(&c, "clerk", tools(asking(&c, "ask")), script.Calls(call("ask", "x"))), func(config *agent.RunnerConfig) { config.Store = st })
		p := record(r.Query(t.Context(), "go"))
		if p.err == nil {
			p.waits(t)
			if st.Saves() >= n {
				t.Errorf("save %d failed, but an interrupt was reported", n)
			}
			return
		}
		if !errors.Is(p.err, down) || slices.ContainsFunc(p.events, func(e *agent.Event) bool { _, ok := e.Body.(agent.Interrupted); return ok }) {
			t.Errorf("save %d: got %q", n, p.log())
		}
	}
}

func TestRunner_AnswersMayComeWithTheContext(t *testing.T) {
	var c counter
	r := newRunner(t, chat(&c, "clerk", tools(asking(&c, "ask")), script.Calls(call("ask", "a"), call("ask", "b")), script.Say("Done.")))
	open := record(r.Query(t.Context(), "go", agent.WithRun("run"))).waits(t)
	ctx := fermata.ResumeWithData(t.Context(), find(t, open, "ask a?").ID, "A")
	record(r.ResumeWithParams(ctx, "run", answer(find(t, open, "ask b?"), "B"))).finished(t)
}

func TestRunner_NilParamsAreNoAnswers(t *testing.T) {
	var c counter
	r := newRunner(t, asker(&c, "a"))
	open := record(r.Query(t.Context(), "go", agent.WithRun("run"))).waits(t)
	for _, params := range []*agent.ResumeParams{nil, {}} {
		if again := record(r.ResumeWithParams(t.Context(), "run", params)).waits(t); one(t, again).ID != one(t, open).ID {
			t.Error("the id changed")
		}
	}
}

func TestRunner_ARunHasOneNameAndEveryEventCarriesIt(t *testing.T) {
	var c counter
	r := newRunner(t, chat(&c, "clerk", nil, script.Say("x")))
	seen := make(map[string]bool)
	for range 2 {
		p := record(r.Query(t.Context(), "go"))
		for _, e := range p.events {
			seen[e.Run] = true
		}
		if seen[""] {
			t.Errorf("an event without a run: %q", p.log())
		}
	}
	if len(seen) != 2 {
		t.Errorf("two runs had the names %v", seen)
	}
	record(r.Query(t.Context(), "go", agent.WithRun("mine"))).finished(t)
	if p := record(r.Query(t.Context(), "go", agent.WithRun("mine"))); !errors.Is(p.err, graph.ErrRunExists) || len(p.events) != 0 {
		t.Errorf("got %q", p.log())
	}
}

func TestI8_AnotherAccountDoesNotSeeTheRun(t *testing.T) {
	var c counter
	st := memory.New()
	runner := func(account string) *agent.Runner {
		return newRunner(t, asker(&c, "a"), func(config *agent.RunnerConfig) { config.Store, config.Account = st, account })
	}
	open := record(runner("ann").Query(t.Context(), "go", agent.WithRun("run"))).waits(t)
	p := record(runner("bob").ResumeWithParams(t.Context(), "run", answer(one(t, open), "x")))
	if !errors.Is(p.err, graph.ErrUnknownRun) || len(p.events) != 0 {
		t.Errorf("got %q", p.log())
	}
	record(runner("ann").ResumeWithParams(t.Context(), "run", answer(one(t, open), "x"))).finished(t)
}

func TestI1_OfManyAnswersAtOnceOneCountsAndTheCallIsMadeOnce(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return chat(&c, "clerk", tools(tool.Approve(booking(&c))), script.Calls(call("book", "Paris")), script.Say("Done."))
		}
		ic := one(t, p.query("go").waits(t))
		runners := make([]*agent.Runner, 6)
		for i := range runners {
			runners[i] = p.runner()
		}
		results := make([]*recording, len(runners))
		var wg sync.WaitGroup
		for i, r := range runners {
			wg.Go(func() {
				decision := yes
				if i%2 == 1 {
					decision = no
				}
				results[i] = record(r.ResumeWithParams(t.Context(), "run", answer(ic, decision)))
			})
		}
		wg.Wait()
		won := 0
		for i, result := range results {
			switch {
			case result.err == nil:
				won++
				if booked := slices.Contains(result.log(), "clerk did book: booked Paris"); booked != (i%2 == 0) {
					t.Errorf("answer %d won: %q", i, result.log())
				}
			case len(result.events) != 0:
				t.Errorf("one that lost showed %q", result.log())
			}
		}
		if won != 1 || c.of("book Paris") > 1 {
			t.Errorf("%d won, booked %d times", won, c.of("book Paris"))
		}
	})
}

func TestRunner_ThePolicyOfTheRunDecides(t *testing.T) {
	for verdict, want := range map[fermata.Verdict]string{
		fermata.Allow: "clerk did book: booked Paris",
		fermata.Deny:  "clerk did book: book was refused by policy: not today. It was not done. Do not ask for the same again; take another way, or say that it cannot be done.",
	} {
		var c counter
		a := chat(&c, "clerk", tools(tool.Guard(booking(&c), nil)), script.Calls(call("book", "Paris")), script.Say("Done."))
		r := newRunner(t, a, func(config *agent.RunnerConfig) {
			config.Policy = fermata.PolicyFunc(func(_ context.Context, action fermata.ActionRequest) (fermata.Ruling, error) {
				if action.Action != "book" || !strings.Contains(action.Address.String(), "agent:clerk;tool:book#call_1_1") {
					t.Errorf("got %+v", action)
				}
				return fermata.Ruling{Verdict: verdict, Reason: "not today"}, nil
			})
		})
		if p := record(r.Query(t.Context(), "go")); !slices.Contains(p.log(), want) {
			t.Errorf("%s: got %q", verdict, p.log())
		}
	}
}

func TestRunner_UsageIsThatOfAllModelsAcrossInterrupts(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			inner := chat(&c, "inner", tools(asking(&c, "ask")), script.Calls(call("ask", "x")), script.Say("four words are here"))
			return chat(&c, "outer", tools(agent.AsTool(inner)), script.Call("inner", `{"request":"x"}`), script.Say("two words"))
		}
		ic := one(t, p.query("go").waits(t))
		done := p.answer(ic, "x").finished(t)
		if done.Usage.OutputTokens != 2+2+4+2 || done.Usage.InputTokens == 0 {
			t.Errorf("got %+v", done.Usage)
		}
	})
}

func TestInspect_ReadsWithoutChanges(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return must(agent.NewParallel("par", "", asker(&c, "a"), chat(&c, "clerk", tools(asking(&c, "ask")), script.Calls(call("ask", "x")), script.Say("Done."))))
		}
		open := p.query("go").waits(t)
		for range 2 {
			snapshot, err := p.runner().Inspect(t.Context(), "run")
			if err != nil || snapshot.Status != graph.StatusWaiting || snapshot.Run != "run" || snapshot.Messages[0].Text != "go" || snapshot.Output != nil {
				t.Fatalf("got %+v, %v", snapshot, err)
			}
			checkPlaces(t, snapshot.Interrupts)
			if !slices.Equal(ids(snapshot.Interrupts), ids(open)) || !slices.Equal(addresses(snapshot.Interrupts), addresses(open)) || !slices.Equal(infos(snapshot.Interrupts), infos(open)) {
				t.Errorf("got %v at %v", infos(snapshot.Interrupts), addresses(snapshot.Interrupts))
			}
		}
		p.answers(map[string]any{open[0].ID: "x", open[1].ID: "x"}).finished(t)
		snapshot, err := p.runner().Inspect(t.Context(), "run")
		if err != nil || snapshot.Status != graph.StatusFinished || snapshot.Output.Text() != "Done." || snapshot.Spent.ModelCalls != 2 || len(snapshot.Interrupts) != 0 {
			t.Errorf("got %+v, %v", snapshot, err)
		}
	})
}

func TestInspect_SaysWhyARunFailed(t *testing.T) {
	var c counter
	r := newRunner(t, chat(&c, "clerk", nil, script.Fail(errors.New("overloaded"))))
	record(r.Query(t.Context(), "go", agent.WithRun("run")))
	if snapshot, err := r.Inspect(t.Context(), "run"); err != nil || snapshot.Status != graph.StatusFailed || !strings.Contains(snapshot.Error, "overloaded") {
		t.Errorf("got %+v, %v", snapshot, err)
	}
}

func TestRunner_WhoStopsListeningLeavesAResumableRun(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return chat(&c, "clerk", tools(booking(&c), asking(&c, "ask")), script.Calls(call("book", "Paris")), script.Calls(call("ask", "x")), script.Say("Done."))
		}
		for event, err := range p.runner().Query(t.Context(), "go", agent.WithRun("run")) {
			if err != nil {
				t.Fatal(err)
			}
			if _, done := event.Body.(agent.ToolDone); done {
				break
			}
		}
		ic := one(t, p.resume().waits(t))
		p.answer(ic, "x").finished(t)
		if c.of("book Paris") != 1 || c.of("ask done") != 1 || c.of("model clerk") > 4 {
			t.Errorf("this happened: %v", c.n)
		}
	})
}

func TestRunner_WhoStopsListeningAtTheAnnouncementCanAnswer(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent { return asker(&c, "a") }
		var open []*fermata.InterruptCtx
		for event, err := range p.runner().Query(t.Context(), "go", agent.WithRun("run")) {
			if err != nil {
				t.Fatal(err)
			}
			if waits, ok := event.Body.(agent.Interrupted); ok {
				open = waits.Interrupts
				break
			}
		}
		p.answer(one(t, open), "x").wantLog(t, "a says a heard x", "a finished")
	})
}

func TestNewRunner_InvalidConfigReturnsError(t *testing.T) {
	var c counter
	for name, bad := range map[string]agent.RunnerConfig{
		"no agent":              {},
		"a cost without prices": {Agent: asker(&c, "a"), Limits: agent.Limits{Cost: 1}},
	} {
		if _, err := agent.NewRunner(bad); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
