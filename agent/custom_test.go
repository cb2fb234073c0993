package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/tool"
)

type yield = func(*agent.Event, error) bool

// player is a custom agent.
type player struct {
	name    string
	perform func(ctx context.Context, input *agent.Input, yield yield)
}

func (a *player) Name() string        { return a.name }
func (a *player) Description() string { return "does " + a.name }
func (a *player) Run(ctx context.Context, input *agent.Input) iter.Seq2[*agent.Event, error] {
	return func(yield func(*agent.Event, error) bool) { a.perform(ctx, input, yield) }
}

// resumer is a player that implements Resumable.
type resumer struct {
	player
	resume func(ctx context.Context, info *agent.ResumeInfo, yield yield)
}

func (r *resumer) Resume(ctx context.Context, info *agent.ResumeInfo) iter.Seq2[*agent.Event, error] {
	return func(yield func(*agent.Event, error) bool) { r.resume(ctx, info, yield) }
}

var _ agent.Resumable = (*resumer)(nil)

func says(text string) *agent.Event {
	return &agent.Event{Body: agent.MessageAdded{Message: agent.Assistant(text)}}
}

// asker adds a message, asks, and adds the answer. It is entered from the start after the answer.
func asker(c *counter, name string) agent.Agent {
	return &player{name, func(ctx context.Context, _ *agent.Input, yield yield) {
		c.add("enter " + name)
		if !yield(says(name+" begins"), nil) {
			return
		}
		said, err := question.Ask(ctx, name+"?")
		if err != nil {
			yield(nil, err)
			return
		}
		yield(says(name+" heard "+said), nil)
	}}
}

// holder interrupts itself with a state, and reports the answer when it is resumed. It asks count
// times.
func holder(c *counter, name string, count int) agent.Agent {
	r := &resumer{player: player{name: name}}
	r.perform = func(ctx context.Context, _ *agent.Input, yield yield) {
		c.add("run " + name)
		_ = yield(says(name+" begins"), nil) && yield(agent.StatefulInterrupt(ctx, name+" 1?", 1), nil)
	}
	r.resume = func(ctx context.Context, info *agent.ResumeInfo, yield yield) {
		c.add("resume " + name)
		_, _, state := fermata.GetInterruptState[int](ctx)
		target, _, said := fermata.GetResumeContext[string](ctx)
		if !target {
			yield(agent.StatefulInterrupt(ctx, fmt.Sprintf("%s %d?", name, state), state), nil)
			return
		}
		if !yield(says(fmt.Sprintf("%s heard %s at %d", name, said, state)), nil) {
			return
		}
		if state < count {
			yield(agent.StatefulInterrupt(ctx, fmt.Sprintf("%s %d?", name, state+1), state+1), nil)
		}
	}
	return r
}

func TestCustom_ReentryAfterAnswerShowsNoEventTwice(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent { return asker(&c, "a") }
		first := p.query("go")
		first.wantLog(t, "a says a begins", "a waits for [a?]")
		done := p.answer(one(t, first.waits(t)), "yes")
		done.wantLog(t, "a says a heard yes", "a finished")
		if output := done.finished(t).Output; len(output.Messages) != 2 || output.Text() != "a heard yes" {
			t.Errorf("got %+v", output)
		}
		c.want(t, map[string]int{"enter a": 2})
	})
}

func TestCustom_ResumeContinuesAfterEarlierEvents(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent { return holder(&c, "h", 2) }
		first := p.query("go")
		first.wantLog(t, "h says h begins", "h waits for [h 1?]")
		second := p.answer(one(t, first.waits(t)), "x")
		second.wantLog(t, "h says h heard x at 1", "h waits for [h 2?]")
		done := p.answer(one(t, second.waits(t)), "y")
		done.wantLog(t, "h says h heard y at 2", "h finished")
		var texts []string
		for _, m := range done.finished(t).Output.Messages {
			texts = append(texts, m.Text)
		}
		if !slices.Equal(texts, []string{"h begins", "h heard x at 1", "h heard y at 2"}) {
			t.Errorf("got %q", texts)
		}
		c.want(t, map[string]int{"run h": 1, "resume h": 2})
	})
}

// Regression: Run was called in addition to Resume, for an iterator that was then dropped; an agent
// that works before it returns its iterator worked twice.
func TestCustom_RunIsNotCalledForAnAgentThatIsResumed(t *testing.T) {
	var c counter
	eager := &eagerAgent{holder(&c, "h", 1).(*resumer), &c}
	r := newRunner(t, eager)
	open := record(r.Query(t.Context(), "go", agent.WithRun("run"))).waits(t)
	record(r.ResumeWithParams(t.Context(), "run", answer(one(t, open), "x"))).finished(t)
	c.want(t, map[string]int{"eager work": 1, "run h": 1, "resume h": 1})
}

type eagerAgent struct {
	*resumer
	c *counter
}

func (a *eagerAgent) Run(ctx context.Context, input *agent.Input) iter.Seq2[*agent.Event, error] {
	a.c.add("eager work")
	return a.resumer.Run(ctx, input)
}

func TestResumeInfo_HasStateAndAnswer(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var got *agent.ResumeInfo
		p.change = func(config *agent.RunnerConfig) { config.EnableStreaming = true }
		p.build = func() agent.Agent {
			r := &resumer{player: player{name: "h"}}
			r.perform = func(ctx context.Context, _ *agent.Input, yield yield) {
				yield(agent.StatefulInterrupt(ctx, "?", map[string]int{"at": 7}), nil)
			}
			r.resume = func(_ context.Context, info *agent.ResumeInfo, yield yield) { got = info }
			return r
		}
		open := p.query("go").waits(t)
		p.answer(one(t, open), []string{"x"}).finished(t)
		if got == nil || !got.WasInterrupted || !got.IsResumeTarget || got.AnsweredBelow || !got.EnableStreaming ||
			string(got.InterruptState) != `{"at":7}` || string(got.ResumeData) != `["x"]` || got.Input.Messages[0].Text != "go" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestResumeInfo_AnAnswerWithoutDataIsATargetToo(t *testing.T) {
	var got *agent.ResumeInfo
	r := &resumer{player: player{name: "h"}}
	r.perform = func(ctx context.Context, _ *agent.Input, yield yield) { yield(agent.Interrupt(ctx, "?"), nil) }
	r.resume = func(_ context.Context, info *agent.ResumeInfo, yield yield) { got = info }
	runner := newRunner(t, r)
	open := record(runner.Query(t.Context(), "go", agent.WithRun("run"))).waits(t)
	record(runner.ResumeWithParams(t.Context(), "run", answer(one(t, open), nil))).finished(t)
	if got == nil || !got.IsResumeTarget || got.ResumeData != nil || got.InterruptState != nil {
		t.Errorf("got %+v", got)
	}
}

func TestI13_AResumableAgentThatCannotUseTheAnswerStaysOpenUnderItsID(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent { return holder(&c, "h", 1) }
		ic := one(t, p.query("go").waits(t))
		again := p.answer(ic, 42).interrupted(t)
		if one(t, again.Interrupts).ID != ic.ID || len(again.BadAnswers) != 1 || again.BadAnswers[0].ID != ic.ID {
			t.Errorf("got %+v", again)
		}
		p.answer(ic, "x").wantLog(t, "h says h heard x at 1", "h finished")
	})
}

// Regression: messages of a failed Resume were shown again, and were twice in the output.
func TestCustom_RepeatedResumeShowsNoEventTwice(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		fail := true
		p.build = func() agent.Agent {
			r := &resumer{player: player{name: "h"}}
			r.perform = func(ctx context.Context, _ *agent.Input, yield yield) {
				_ = yield(says("one"), nil) && yield(agent.Interrupt(ctx, "?"), nil)
			}
			r.resume = func(_ context.Context, _ *agent.ResumeInfo, yield yield) {
				if !yield(says("two"), nil) {
					return
				}
				if fail {
					yield(nil, errors.New("the network is down"))
					return
				}
				yield(says("three"), nil)
			}
			return r
		}
		open := p.query("go").waits(t)
		if failed := p.answer(one(t, open), "x"); failed.err == nil || len(failed.events) != 1 {
			t.Fatalf("got %q", failed.log())
		}
		fail = false
		done := p.resume()
		done.wantLog(t, "h says three", "h finished")
		if n := len(done.finished(t).Output.Messages); n != 3 {
			t.Errorf("got %d messages: %+v", n, done.finished(t).Output.Messages)
		}
	})
}

func TestCustom_AQuestionAskedInResumeShowsNothingTwice(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		p.build = func() agent.Agent {
			r := &resumer{player: player{name: "h"}}
			r.perform = func(ctx context.Context, _ *agent.Input, yield yield) {
				_ = yield(says("one"), nil) && yield(agent.Interrupt(ctx, "first?"), nil)
			}
			r.resume = func(ctx context.Context, _ *agent.ResumeInfo, yield yield) {
				if !yield(says("two"), nil) {
					return
				}
				said, err := question.Ask(ctx, "second?")
				if err != nil {
					yield(nil, err)
					return
				}
				yield(says("heard "+said), nil)
			}
			return r
		}
		open := p.query("go").waits(t)
		second := p.answer(one(t, open), nil)
		second.wantLog(t, "h says two", "h waits for [second?]")
		done := p.answer(one(t, second.waits(t)), "x")
		done.wantLog(t, "h says heard x", "h finished")
		if n := len(done.finished(t).Output.Messages); n != 3 {
			t.Errorf("got %d messages: %+v", n, done.finished(t).Output.Messages)
		}
	})
}

func TestCustom_MayAskAndInterruptInTurn(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		p.build = func() agent.Agent {
			r := &resumer{player: player{name: "h"}}
			r.perform = func(ctx context.Context, _ *agent.Input, yield yield) {
				if !yield(says("one"), nil) {
					return
				}
				said, err := question.Ask(ctx, "first?")
				if err != nil {
					yield(nil, err)
					return
				}
				_ = yield(says("heard "+said), nil) && yield(agent.Interrupt(ctx, "second?"), nil)
			}
			r.resume = func(_ context.Context, _ *agent.ResumeInfo, yield yield) { yield(says("end"), nil) }
			return r
		}
		first := p.query("go")
		first.wantLog(t, "h says one", "h waits for [first?]")
		second := p.answer(one(t, first.waits(t)), "x")
		second.wantLog(t, "h says heard x", "h waits for [second?]")
		done := p.answer(one(t, second.waits(t)), nil)
		done.wantLog(t, "h says end", "h finished")
		if n := len(done.finished(t).Output.Messages); n != 3 {
			t.Errorf("got %d messages: %+v", n, done.finished(t).Output.Messages)
		}
	})
}

// Regression: events of an inner agent were counted as shown by the agent that forwarded them; on
// re-entry they were not repeated, and the next messages of the outer agent were dropped instead.
func TestCustom_ForwardedEventsDoNotHideItsOwnMessages(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			inner := chat(&c, "inner", nil, script.Say("from inside"))
			return &player{"outer", func(ctx context.Context, input *agent.Input, yield yield) {
				if !yield(says("before"), nil) {
					return
				}
				for event, err := range inner.Run(ctx, input) {
					if !yield(event, err) {
						return
					}
				}
				said, err := question.Ask(ctx, "go on?")
				if err != nil {
					yield(nil, err)
					return
				}
				_ = yield(says("heard "+said), nil) && yield(says("end"), nil)
			}}
		}
		first := p.query("go")
		first.wantLog(t, "outer says before", "inner says from inside", "outer waits for [go on?]")
		p.answer(one(t, first.waits(t)), "x").wantLog(t, "outer says heard x", "outer says end", "outer finished")
		c.want(t, map[string]int{"model inner": 1})
	})
}

// wrapping is an agent that forwards all events of another one, or drops the interrupts.
func wrapping(name string, inner agent.Agent, swallow bool) agent.Agent {
	return &player{name, func(ctx context.Context, input *agent.Input, yield yield) {
		for event, err := range inner.Run(ctx, input) {
			if _, waits := eventBody(event).(agent.Interrupted); waits && swallow {
				continue
			}
			if !yield(event, err) {
				return
			}
		}
	}}
}

func TestCustom_MayPassOnEverythingOfAnother(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return wrapping("outer", chat(&c, "inner", tools(tool.Approve(booking(&c))), script.Calls(call("book", "Paris")), script.Say("Done.")), false)
		}
		ic := one(t, p.query("go").waits(t))
		if ic.Address.String() != "agent:outer;agent:inner;tool:book#call_1_1" {
			t.Errorf("got %s", ic.Address)
		}
		p.answer(ic, yes).wantLog(t, "inner did book: booked Paris", "inner says Done.", "outer finished")
		c.want(t, map[string]int{"model inner": 2, "book Paris": 1})
	})
}

func TestI5_AnAgentThatDropsTheInterruptOfAnotherFails(t *testing.T) {
	var c counter
	r := newRunner(t, wrapping("outer", must(agent.NewSequential("seq", "", asker(&c, "inner"))), true))
	if p := record(r.Query(t.Context(), "go")); !errors.Is(p.err, fermata.ErrSwallowed) {
		t.Errorf("got %q", p.log())
	}
}

func TestCustom_MayYieldTheSameEventInEveryRun(t *testing.T) {
	hello, exit := says("hello"), &agent.Event{Body: agent.Exit{}}
	r := newRunner(t, &player{"greeter", func(_ context.Context, _ *agent.Input, yield yield) {
		for _, event := range []*agent.Event{hello, hello, exit} {
			if !yield(event, nil) {
				return
			}
		}
	}})
	for _, run := range []string{"first", "second"} {
		p := record(r.Query(t.Context(), "go", agent.WithRun(run)))
		p.wantLog(t, "greeter says hello", "greeter says hello", "greeter exits", "greeter finished")
		for _, event := range p.events[:3] {
			if event.Run != run || event.Path.String() != "agent:greeter" {
				t.Errorf("an event of run %s claims to be of %s at %s", run, event.Run, event.Path)
			}
		}
	}
}

// Regression: the tokens of earlier messages were repeated, and nothing after them.
func TestCustom_TokensOfShownMessagesAreNotShownAgain(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		token := func(text string) *agent.Event { return &agent.Event{Body: agent.Token{Text: text}} }
		p.build = func() agent.Agent {
			return &player{"a", func(ctx context.Context, _ *agent.Input, yield yield) {
				if !yield(token("o"), nil) || !yield(token("ne"), nil) || !yield(says("one"), nil) {
					return
				}
				if _, err := question.Ask(ctx, "a?"); err != nil {
					yield(nil, err)
					return
				}
				_ = yield(token("two"), nil) && yield(says("two"), nil)
			}}
		}
		first := p.query("go")
		first.wantLog(t, "a token o", "a token ne", "a says one", "a waits for [a?]")
		p.answer(one(t, first.waits(t)), "x").wantLog(t, "a token two", "a says two", "a finished")
	})
}

// pair is a custom agent that runs two others itself and combines their interrupts.
func pair(name string, children ...agent.Agent) agent.Agent {
	r := &resumer{player: player{name: name}}
	work := func(ctx context.Context, input *agent.Input, yield yield) {
		var waiting []*agent.Event
		for _, child := range children {
			for event, err := range child.Run(ctx, input) {
				if _, waits := eventBody(event).(agent.Interrupted); waits {
					waiting = append(waiting, event)
					continue
				}
				if !yield(event, err) || err != nil {
					return
				}
			}
		}
		if waiting != nil {
			yield(agent.CompositeInterrupt(ctx, name+" bundles", len(waiting), waiting...), nil)
			return
		}
		yield(says(name+" is done"), nil)
	}
	r.perform = work
	r.resume = func(ctx context.Context, info *agent.ResumeInfo, yield yield) {
		if info.IsResumeTarget || !info.AnsweredBelow {
			yield(nil, fmt.Errorf("resumed with %+v", info))
			return
		}
		_ = yield(says(fmt.Sprintf("%s goes on with %s waiting", name, info.InterruptState)), nil)
		work(ctx, info.Input, yield)
	}
	return r
}

func eventBody(e *agent.Event) agent.Body {
	if e == nil {
		return nil
	}
	return e.Body
}

// scenario 37: the event has ids and addresses as soon as it is created; parents are linked and
// shared.
func TestCompositeInterrupt_TwoChildrenAreAnsweredOneAfterTheOther(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return pair("pair",
				chat(&c, "left", tools(asking(&c, "ask")), script.Call("ask", `{"to":"L"}`), script.Say("left is done")),
				chat(&c, "right", tools(asking(&c, "ask")), script.Call("ask", `{"to":"R"}`), script.Say("right is done")))
		}
		first := p.query("go")
		first.wantLog(t, `left says calls ask({"to":"L"})`, `right says calls ask({"to":"R"})`, "pair waits for [ask L? ask R?]")
		open := first.waits(t)
		if got := addresses(open); !slices.Equal(got, []string{"agent:pair;agent:left;tool:ask#call_1_1", "agent:pair;agent:right;tool:ask#call_1_1"}) {
			t.Errorf("got %q", got)
		}
		parent := open[0].Parent.Parent
		if parent != open[1].Parent.Parent || parent.Address.String() != "agent:pair" || fmt.Sprint(parent.Info) != "pair bundles" || parent.ID == "" || parent.IsRootCause {
			t.Errorf("got %+v", parent)
		}
		second := p.answer(find(t, open, "ask R?"), "r")
		second.wantLog(t, "pair says pair goes on with 2 waiting", "right did ask: ask heard r", "right says right is done", "pair waits for [ask L?]")
		if left := one(t, second.waits(t)); left.ID != find(t, open, "ask L?").ID {
			t.Errorf("the id changed to %s", left.ID)
		}
		p.answer(find(t, open, "ask L?"), "l").wantLog(t, "pair says pair goes on with 1 waiting",
			"left did ask: ask heard l", "left says left is done", "pair says pair is done", "pair finished")
		c.want(t, map[string]int{"model left": 2, "model right": 2, "enter ask": 4, "ask done": 2})
	})
}

// scenario 37
func TestInterrupt_TheEventHasIDAddressAndInfoAsSoonAsItIsMade(t *testing.T) {
	var made agent.Interrupted
	outer := must(agent.NewSequential("outer", "", &player{"inner", func(ctx context.Context, _ *agent.Input, yield yield) {
		event := agent.Interrupt(ctx, "info")
		if event.Agent != "inner" || event.Path.String() != "agent:outer;agent:inner" || event.Run != "run" {
			t.Errorf("got %+v", event)
		}
		made = event.Body.(agent.Interrupted)
		yield(event, nil)
	}}))
	seen := record(newRunner(t, outer).Query(t.Context(), "go", agent.WithRun("run"))).interrupted(t)
	checkPlaces(t, made.Interrupts)
	early, late := one(t, made.Interrupts), one(t, seen.Interrupts)
	if early.ID != late.ID || early.Address.String() != "agent:outer;agent:inner" || early.Info != "info" || early.Parent.Address.String() != "agent:outer" {
		t.Errorf("got %+v and later %+v", early, late)
	}
	full := one(t, seen.Info.Interrupts)
	if full.ID != late.ID || full.Address.String() != "runnable:outer;node:agent;agent:outer;agent:inner" {
		t.Errorf("got %s", full.Address)
	}
}

// scenario 37
func TestCompositeInterrupt_TheEventHasItsPartsAndTheirParentAsSoonAsItIsMade(t *testing.T) {
	var c counter
	var made agent.Interrupted
	outer := &player{"outer", func(ctx context.Context, input *agent.Input, yield yield) {
		var waiting []*agent.Event
		for _, name := range []string{"a", "b"} {
			for event, err := range must(agent.NewSequential("in-"+name, "", asker(&c, name))).Run(ctx, input) {
				if _, waits := eventBody(event).(agent.Interrupted); waits {
					waiting = append(waiting, event)
				} else if !yield(event, err) {
					return
				}
			}
		}
		event := agent.CompositeInterrupt(ctx, "both", 7, waiting...)
		made = event.Body.(agent.Interrupted)
		yield(event, nil)
	}}
	seen := record(newRunner(t, outer).Query(t.Context(), "go")).interrupted(t)
	checkPlaces(t, made.Interrupts)
	if !slices.Equal(ids(made.Interrupts), ids(seen.Interrupts)) || !slices.Equal(addresses(made.Interrupts), []string{"agent:outer;agent:in-a;agent:a", "agent:outer;agent:in-b;agent:b"}) {
		t.Fatalf("got %q and later %q", addresses(made.Interrupts), addresses(seen.Interrupts))
	}
	for _, view := range []agent.Interrupted{made, seen} {
		root := view.Interrupts[0].Parent.Parent
		if root != view.Interrupts[1].Parent.Parent || root.Info != "both" || root.ID == "" || root.Parent != nil {
			t.Errorf("got %+v", root)
		}
	}
}

func TestInterrupt_OutsideARunReturnsErrNoRun(t *testing.T) {
	event := agent.Interrupt(context.Background(), "info")
	r := newRunner(t, &player{"a", func(_ context.Context, _ *agent.Input, yield yield) { yield(event, nil) }})
	if p := record(r.Query(t.Context(), "go")); !errors.Is(p.err, fermata.ErrNoRun) {
		t.Errorf("got %q", p.log())
	}
}

func TestCustom_NilEventReturnsError(t *testing.T) {
	for name, event := range map[string]*agent.Event{
		"nil":                   nil,
		"without a body":        {},
		"a home-made interrupt": {Body: agent.Interrupted{Interrupts: []*fermata.InterruptCtx{{ID: "int_x"}}}},
	} {
		r := newRunner(t, &player{"a", func(_ context.Context, _ *agent.Input, yield yield) { yield(event, nil) }})
		p := record(r.Query(t.Context(), "go"))
		if p.err == nil || !strings.Contains(p.err.Error(), "a yielded an ") {
			t.Errorf("%s: got %q", name, p.log())
		}
	}
}

func TestCustom_NothingAfterAnInterruptCounts(t *testing.T) {
	r := newRunner(t, &player{"a", func(ctx context.Context, _ *agent.Input, yield yield) {
		if yield(agent.Interrupt(ctx, "wait"), nil) {
			t.Error("the agent was called again")
		}
	}})
	record(r.Query(t.Context(), "go")).wantLog(t, "a waits for [wait]")
}

func TestCustom_APanicIsAnErrorAndTheRunCanBeResumed(t *testing.T) {
	boom := true
	r := newRunner(t, &player{"a", func(_ context.Context, _ *agent.Input, yield yield) {
		if boom {
			panic("boom")
		}
		yield(says("fine"), nil)
	}})
	if p := record(r.Query(t.Context(), "go", agent.WithRun("run"))); p.err == nil || !strings.Contains(p.err.Error(), "boom") {
		t.Fatalf("got %q", p.log())
	}
	boom = false
	record(r.Resume(t.Context(), "run")).wantLog(t, "a says fine", "a finished")
}

func TestNewFunc_SaysItsMessagesAndMayAskAndRemember(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return must(agent.NewFunc("f", "", func(ctx context.Context, input *agent.Input) (*agent.Output, error) {
				n, err := fermata.Do(ctx, "count", func(context.Context) (int, error) { c.add("counted"); return len(input.Messages), nil })
				if err != nil {
					return nil, err
				}
				said, err := question.Ask(ctx, "f?")
				if err != nil {
					return nil, err
				}
				return &agent.Output{Messages: []agent.Message{agent.Assistant(fmt.Sprint(n, said))}}, nil
			}))
		}
		open := p.query("go").waits(t)
		p.answer(one(t, open), "x").wantLog(t, "f says 1x", "f finished")
		c.want(t, map[string]int{"counted": 1})
	})
}

func TestNewFunc_NilOutputIsAnEmptyOne(t *testing.T) {
	r := newRunner(t, must(agent.NewFunc("f", "", func(context.Context, *agent.Input) (*agent.Output, error) { return nil, nil })))
	if output := record(r.Query(t.Context(), "go")).finished(t).Output; output == nil || len(output.Messages) != 0 || output.Text() != "" {
		t.Errorf("got %+v", output)
	}
}
