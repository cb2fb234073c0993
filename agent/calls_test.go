package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/storetest"
	"github.com/fermata-go/fermata/tool"
)

var errUnknown, errAnswered, errFinished = graph.ErrUnknownInterrupt, graph.ErrAlreadyAnswered, graph.ErrFinished

func call(name, to string) agent.ToolCall {
	return agent.ToolCall{Name: name, Args: `{"to":"` + to + `"}`}
}

func TestChat_ACallIsMadeAndItsResultGoesToTheModel(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return chat(&c, "clerk", tools(booking(&c), asking(&c, "ask")),
				script.Calls(call("book", "Paris")), script.Calls(call("ask", "Rome")), script.Say("Done."))
		}
		open := p.query("Book.")
		open.wantLog(t, `clerk says calls book({"to":"Paris"})`, "clerk did book: booked Paris", `clerk says calls ask({"to":"Rome"})`, "clerk waits for [ask Rome?]")
		again := p.resume()
		again.wantLog(t, "clerk waits for [ask Rome?]")
		if one(t, again.waits(t)).ID != one(t, open.waits(t)).ID {
			t.Error("the id changed")
		}
		p.answer(one(t, open.waits(t)), "go").wantLog(t, "clerk did ask: ask heard go", "clerk says Done.", "clerk finished")
		c.want(t, map[string]int{"model clerk": 3, "book Paris": 1, "enter ask": 2, "ask done": 1})
	})
}

func TestI6_ApprovedCallRunsOnceWithApprovedArguments(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return chat(&c, "clerk", tools(tool.Approve(booking(&c))), script.Calls(call("book", "Paris")), script.Say("Done."))
		}
		ic := one(t, p.query("Book.").waits(t))
		asked, err := fermata.Approval.Question(ic)
		if err != nil || asked.Action != "book" || string(asked.Args) != `{"to":"Paris"}` || ic.Address.String() != "agent:clerk;tool:book#call_1_1" {
			t.Errorf("got %+v, %v at %s", asked, err, ic.Address)
		}
		if c.of("book Paris") != 0 {
			t.Fatal("booked before the yes")
		}
		p.answer(ic, yes).wantLog(t, "clerk did book: booked Paris", "clerk says Done.", "clerk finished")
		c.want(t, map[string]int{"model clerk": 2, "book Paris": 1})
	})
}

func TestI4_ARefusedCallIsNotMadeAndTheModelGoesOn(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		var told agent.Message
		p.build = func() agent.Agent {
			return chat(&c, "clerk", tools(tool.Approve(booking(&c))), script.Calls(call("book", "Paris")), func(r *agent.Request) (agent.Message, error) {
				told = r.Messages[len(r.Messages)-1]
				return script.Say("Then not.")(r)
			})
		}
		ic := one(t, p.query("Book.").waits(t))
		refusal := no
		refusal.Reason = "too dear"
		done := p.answer(ic, refusal).finished(t)
		if done.Output.Text() != "Then not." || !told.Failed || !strings.Contains(told.Text, "too dear") || told.CallID != "call_1_1" || told.Tool != "book" {
			t.Errorf("got %q, told %+v", done.Output.Text(), told)
		}
		c.want(t, map[string]int{"model clerk": 2})
	})
}

// The process dies after the call and before its result is saved.
func TestI4_CallInDoubtIsRepeatedOnlyIfTheToolAllowsIt(t *testing.T) {
	for name, test := range map[string]struct {
		options []tool.Option
		doubt   bool
	}{
		"default":    {nil, true},
		"idempotent": {[]tool.Option{tool.Idempotent()}, false},
		"repeatable": {[]tool.Option{tool.Repeatable()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var c counter
			st := storetest.NewFaulty(memory.New())
			crash := true
			pay := tool.New("pay", "", func(context.Context, city) (string, error) {
				c.add("pay")
				if crash {
					st.CrashSave(st.Saves()+1, storetest.BeforeWrite)
				}
				return "paid", nil
			}, test.options...)
			r := newRunner(t, chat(&c, "clerk", tools(tool.Approve(pay)), script.Calls(call("pay", "x")), script.Say("Done.")),
				func(config *agent.RunnerConfig) { config.Store = st })
			ic := one(t, record(r.Query(t.Context(), "go", agent.WithRun("run"))).waits(t))
			if p := record(r.ResumeWithParams(t.Context(), "run", answer(ic, yes))); !errors.Is(p.err, storetest.ErrCrashed) || len(p.events) != 0 {
				t.Fatalf("got %q", p.log())
			}
			st.Restart()
			crash = false
			p := record(r.Resume(t.Context(), "run", agent.TakeOver()))
			calls := 2
			if test.doubt {
				ic := one(t, p.waits(t))
				if ic.Kind != fermata.EffectInDoubt.Name() || ic.Address.String() != "agent:clerk;tool:pay#call_1_1" {
					t.Errorf("got %s at %s", ic.Kind, ic.Address)
				}
				calls = 1
				p = record(r.ResumeWithParams(t.Context(), "run", answer(ic, fermata.EffectResolution{Happened: true, Receipt: json.RawMessage(`{"text":"paid"}`)})))
			}
			p.wantLog(t, "clerk did pay: paid", "clerk says Done.", "clerk finished")
			c.want(t, map[string]int{"model clerk": 2, "pay": calls})
		})
	}
}

func TestCalls_OneFailsWhileAnotherWaitsAndNothingFinishedIsLost(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		down := true
		p.build = func() agent.Agent {
			failing := tool.New("fail", "", func(context.Context, city) (string, error) {
				c.add("fail")
				if down {
					return "", errors.New("the line is down")
				}
				return "recovered", nil
			})
			return chat(&c, "clerk", tools(booking(&c), asking(&c, "ask"), failing),
				script.Calls(call("book", "Paris"), call("ask", "Rome"), call("fail", "x")), script.Say("Done."))
		}
		first := p.query("go")
		if first.err == nil || !strings.Contains(first.err.Error(), "the line is down") {
			t.Fatalf("got %q", first.log())
		}
		down = false
		second := p.resume()
		second.wantLog(t, "clerk did fail: recovered", "clerk waits for [ask Rome?]")
		p.answer(one(t, second.waits(t)), "go").wantLog(t, "clerk did ask: ask heard go", "clerk says Done.", "clerk finished")
		if c.of("model clerk") != 2 || c.of("book Paris") != 1 || c.of("fail") != 2 || c.of("ask done") != 1 {
			t.Errorf("this happened: %v", c.n)
		}
	})
}

func TestCalls_APanicIsAnErrorOfTheRunAndFinishedCallsStay(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		boom := true
		p.build = func() agent.Agent {
			bomb := tool.New("bomb", "", func(context.Context, city) (string, error) {
				if boom {
					panic("boom")
				}
				return "defused", nil
			})
			return chat(&c, "clerk", tools(booking(&c), bomb), script.Calls(call("book", "Paris"), call("bomb", "x")), script.Say("Done."))
		}
		first := p.query("go")
		if _, ok := errors.AsType[*graph.PanicError](first.err); !ok {
			t.Fatalf("got %q", first.log())
		}
		boom = false
		p.resume().wantLog(t, "clerk did bomb: defused", "clerk says Done.", "clerk finished")
		c.want(t, map[string]int{"model clerk": 2, "book Paris": 1})
	})
}

func TestOneByOne_StopsAtTheFirstThatWaits(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return must(agent.NewChat(agent.Chat{Name: "clerk", Sequential: true, Tools: tools(booking(&c), asking(&c, "ask")), Model: model(&c, "clerk",
				script.Calls(call("book", "a"), call("ask", "b"), call("book", "c"), call("ask", "d"), call("book", "e")), script.Say("Done."))}))
		}
		first := p.query("go")
		ic := one(t, first.waits(t))
		if ic.Info != "ask b?" || c.of("book c") != 0 {
			t.Fatalf("got %q", first.log())
		}
		second := p.answer(ic, "x")
		second.wantLog(t, "clerk did ask: ask heard x", "clerk did book: booked c", "clerk waits for [ask d?]")
		p.answer(one(t, second.waits(t)), "y").wantLog(t, "clerk did ask: ask heard y", "clerk did book: booked e", "clerk says Done.", "clerk finished")
		c.want(t, map[string]int{"model clerk": 2, "book a": 1, "book c": 1, "book e": 1, "enter ask": 4, "ask done": 2})
	})
}

func TestOneByOne_StopsAtTheFirstThatFails(t *testing.T) {
	var c counter
	failing := tool.New("fail", "", func(context.Context, city) (string, error) { return "", errors.New("down") })
	a := must(agent.NewChat(agent.Chat{Name: "clerk", Sequential: true, Tools: tools(booking(&c), failing),
		Model: model(&c, "clerk", script.Calls(call("book", "a"), call("fail", "b"), call("book", "c")))}))
	if p := record(newRunner(t, a).Query(t.Context(), "go")); p.err == nil {
		t.Fatalf("got %q", p.log())
	}
	c.want(t, map[string]int{"model clerk": 1, "book a": 1})
}

// withIDs makes calls of ask with these ids.
func withIDs(ids ...string) script.Line {
	var calls []agent.ToolCall
	for i, id := range ids {
		one := call("ask", fmt.Sprint(i))
		one.ID = id
		calls = append(calls, one)
	}
	return script.Calls(calls...)
}

func TestCalls_EveryCallHasAnIDOfItsOwnWhateverTheModelGave(t *testing.T) {
	for name, test := range map[string]struct {
		first, second []string
		want          []string
	}{
		"as they are":       {[]string{"x", "y"}, nil, []string{"x", "y"}},
		"missing":           {[]string{"", ""}, []string{""}, []string{"call_1_1", "call_1_2", "call_2_1"}},
		"the same":          {[]string{"x", "x", "x"}, nil, []string{"x", "x-2", "x-3"}},
		"made to clash":     {[]string{"x", "x", "x-2"}, nil, []string{"x", "x-2", "x-2-2"}},
		"in another turn":   {[]string{"x"}, []string{"x", "x-2"}, []string{"x", "x-2", "x-2-2"}},
		"like ours":         {[]string{"call_1_2", ""}, nil, []string{"call_1_2", "call_1_2-2"}},
		"full of our signs": {[]string{"a;b:c#d/é", "a;b"}, nil, []string{"a;b:c#d/é", "a;b"}},
	} {
		t.Run(name, func(t *testing.T) {
			inEveryStore(t, func(t *testing.T, p *processStory) {
				var c counter
				p.build = func() agent.Agent {
					return chat(&c, "clerk", tools(asking(&c, "ask")), withIDs(test.first...), withIDs(test.second...), script.Say("Done."))
				}
				got := p.query("go")
				var seen []string
				for got.err == nil && len(got.events) > 0 {
					waits, ok := got.events[len(got.events)-1].Body.(agent.Interrupted)
					if !ok {
						break
					}
					ic := waits.Interrupts[0]
					seen = append(seen, ic.Address[1].SubID)
					// The answer is returned to the call that asked.
					got = p.answer(ic, fmt.Sprint("answer to ", ic.Info))
					if done, ok := got.events[0].Body.(agent.ToolDone); !ok || done.Call.ID != ic.Address[1].SubID || done.Result.Text != fmt.Sprint("ask heard answer to ", ic.Info) {
						t.Errorf("%s got %+v", ic.Address, got.events[0].Body)
					}
				}
				got.finished(t)
				slices.Sort(seen)
				want := slices.Sorted(slices.Values(test.want))
				if !slices.Equal(seen, want) {
					t.Errorf("the ids were %q, want %q", seen, want)
				}
			})
		})
	}
}

// constant is a model that always returns the same response.
type constant struct{ response *agent.Response }

func (m constant) Generate(context.Context, *agent.Request) (*agent.Response, error) {
	return m.response, nil
}

func TestCalls_ModelMayReturnTheSameResponseTwice(t *testing.T) {
	var c counter
	same := call("book", "Paris")
	same.ID = "same"
	m := constant{&agent.Response{Message: agent.Message{Text: "again", ToolCalls: []agent.ToolCall{same}}}}
	a := must(agent.NewChat(agent.Chat{Name: "clerk", Model: m, MaxTurns: 4, Tools: tools(booking(&c))}))
	var ids []string
	for _, e := range record(newRunner(t, a).Query(t.Context(), "go")).events {
		if done, ok := e.Body.(agent.ToolDone); ok {
			ids = append(ids, done.Call.ID)
		}
	}
	if !slices.Equal(ids, []string{"same", "same-2", "same-3", "same-4"}) || m.response.Message.ToolCalls[0].ID != "same" || m.response.Message.Role != "" {
		t.Errorf("the ids were %q, and the model's response is %+v", ids, m.response)
	}
}

// A model that would return other ids on a second call is not called again.
func TestCalls_IDsStayAsTheyWereSaved(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		process := 0
		p.build = func() agent.Agent {
			process++
			return chat(&c, "clerk", tools(asking(&c, "ask")), withIDs(fmt.Sprint("process-", process)), script.Say("Done."))
		}
		ic := one(t, p.query("go").waits(t))
		if got := one(t, p.resume().waits(t)); got.ID != ic.ID || got.Address.String() != ic.Address.String() {
			t.Errorf("got %s, want %s", got.Address, ic.Address)
		}
		p.answer(ic, "x").finished(t)
	})
}

func TestCalls_UnknownOrInvalidCallsAreReportedToTheModel(t *testing.T) {
	for name, test := range map[string]struct {
		call agent.ToolCall
		says string
	}{
		"unknown tool":      {call("fly", "x"), `There is no tool "fly". The tools are: ask, book.`},
		"no transfer":       {agent.ToolCall{Name: "transfer_to_agent", Args: `{"agent_name":"x"}`}, `There is no tool "transfer_to_agent"`},
		"no name":           {call("", "x"), `There is no tool ""`},
		"wrong arguments":   {agent.ToolCall{Name: "book", Args: `{"to":7}`}, "book was not called"},
		"not JSON":          {agent.ToolCall{Name: "book", Args: `Paris`}, "book was not called"},
		"no arguments":      {agent.ToolCall{Name: "book", Args: ` `}, "book was not called"},
		"arguments twice":   {agent.ToolCall{Name: "book", Args: `{"to":"a","to":"b"}`}, "book was not called"},
		"a name with signs": {call("a;b#c\x00", "x"), "There is no tool"},
	} {
		t.Run(name, func(t *testing.T) {
			var c counter
			var told agent.Message
			a := chat(&c, "clerk", tools(booking(&c), asking(&c, "ask")), script.Calls(test.call), func(r *agent.Request) (agent.Message, error) {
				told = r.Messages[len(r.Messages)-1]
				return script.Say("Sorry.")(r)
			})
			record(newRunner(t, a).Query(t.Context(), "go")).finished(t)
			if told.Role != agent.RoleTool || !told.Failed || !strings.Contains(told.Text, test.says) {
				t.Errorf("got %+v", told)
			}
			c.want(t, map[string]int{"model clerk": 2})
		})
	}
}

func TestCalls_NoArgumentsAreAnEmptyObject(t *testing.T) {
	var c counter
	ping := tool.New("ping", "", func(context.Context, struct{}) (string, error) { c.add("ping"); return "pong", nil })
	a := chat(&c, "clerk", tools(ping), script.Call("ping", ""), script.Say("Done."))
	record(newRunner(t, a).Query(t.Context(), "go")).wantLog(t, "clerk says calls ping()", "clerk did ping: pong", "clerk says Done.", "clerk finished")
}

func TestCalls_ResultsComeInTheOrderOfTheCalls(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		var results []string
		p.build = func() agent.Agent {
			return chat(&c, "clerk", tools(booking(&c), asking(&c, "ask")),
				script.Calls(call("ask", "1"), call("book", "2"), call("ask", "3"), call("book", "4")), func(r *agent.Request) (agent.Message, error) {
					for _, m := range r.Messages[2:] {
						results = append(results, m.CallID+" "+m.Text)
					}
					return script.Say("Done.")(r)
				})
		}
		open := p.query("go").waits(t)
		p.answers(map[string]any{find(t, open, "ask 3?").ID: "three", find(t, open, "ask 1?").ID: "one"}).finished(t)
		if !slices.Equal(results, []string{"call_1_1 ask heard one", "call_1_2 booked 2", "call_1_3 ask heard three", "call_1_4 booked 4"}) {
			t.Errorf("got %q", results)
		}
	})
}

func TestCalls_PiecesOfAStreamingToolAreShownBeforeItsEnd(t *testing.T) {
	var c counter
	reads := tool.NewStream("read", "", func(context.Context, city) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) { _ = yield("once ", nil) && yield("upon", nil) }
	})
	a := chat(&c, "clerk", tools(reads), script.Calls(call("read", "x")), script.Say("Done."))
	record(newRunner(t, a).Query(t.Context(), "go")).wantLog(t, `clerk says calls read({"to":"x"})`,
		"clerk output once ", "clerk output upon", "clerk did read: once upon", "clerk says Done.", "clerk finished")
}

// Interrupts that a tool raises in several parts are answered separately.
func TestCalls_AToolMayBundleQuestions(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			both := tool.New("both", "", func(ctx context.Context, _ city) (string, error) {
				left, errL := question.Ask(fermata.AppendAddressSegment(ctx, "side", "left"), "left?")
				right, errR := question.Ask(fermata.AppendAddressSegment(ctx, "side", "right"), "right?")
				if err := errors.Join(errL, errR); err != nil {
					return "", fermata.CompositeInterrupt(ctx, "both sides", nil, errL, errR)
				}
				return left + right, nil
			})
			return chat(&c, "clerk", tools(both), script.Calls(call("both", "x")), script.Say("Done."))
		}
		open := p.query("go").waits(t)
		// the parts are not agents or tools: the public view shows the tool
		for _, ic := range open {
			if ic.Address.String() != "agent:clerk;tool:both#call_1_1" {
				t.Errorf("got %s", ic.Address)
			}
		}
		rest := p.answer(find(t, open, "right?"), "R")
		if one(t, rest.waits(t)).ID != find(t, open, "left?").ID {
			t.Error("the id changed")
		}
		p.answer(find(t, open, "left?"), "L").wantLog(t, "clerk did both: LR", "clerk says Done.", "clerk finished")
	})
}

// Regression: the initial conversation of a run may contain calls. Calls of a model without ids got
// the same ids again, and services reject duplicate ids.
func TestCalls_IDsDifferFromThoseInTheInput(t *testing.T) {
	var c counter
	var ids []string
	a := chat(&c, "clerk", tools(booking(&c)), nil, script.Call("book", `{"to":"Rome"}`), func(r *agent.Request) (agent.Message, error) {
		for _, m := range r.Messages {
			for _, call := range m.ToolCalls {
				ids = append(ids, call.ID)
			}
		}
		return agent.Assistant("Done."), nil
	})
	before := agent.ToolCall{ID: "call_1_1", Name: "book", Args: `{"to":"Paris"}`}
	record(newRunner(t, a).Run(t.Context(), []agent.Message{agent.User("Paris."), agent.Assistant("", before), agent.ToolResult(before, "booked"), agent.User("And Rome.")})).finished(t)
	if len(ids) != 2 || ids[0] == ids[1] {
		t.Errorf("the calls are %q", ids)
	}
}
