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

// scenario 44: one resume answers the tool and changes the history of the model.
func TestChat_OneResumeAnswersTheToolAndEditsTheHistory(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		var saw []string
		p.build = func() agent.Agent {
			return chat(&c, "clerk", tools(asking(&c, "ask")), script.Call("ask", `{"to":"Rome"}`), func(r *agent.Request) (agent.Message, error) {
				saw = nil
				for _, m := range r.Messages {
					saw = append(saw, m.Text)
				}
				return script.Say("Done.")(r)
			})
		}
		ic := one(t, p.query("my card is 1234").waits(t))
		edit := func(at fermata.Address, history []agent.Message) ([]agent.Message, error) {
			if at.String() != "agent:clerk" || len(history) != 3 {
				t.Errorf("edited at %s: %+v", at, history)
			}
			history[0].Text = "my card is ****"
			return history, nil
		}
		p.answer(ic, "go", agent.WithHistoryEdit(edit)).wantLog(t, "clerk did ask: ask heard go", "clerk says Done.", "clerk finished")
		if !slices.Equal(saw, []string{"my card is ****", "", "ask heard go"}) {
			t.Errorf("the model saw %q", saw)
		}
		c.want(t, map[string]int{"model clerk": 2, "enter ask": 2, "ask done": 1})
	})
}

// counting is a tool that interrupts with a counter as its state until the answer says stop.
func counting(c *counter, name string) *tool.Tool {
	return tool.New(name, "Counts.", func(ctx context.Context, in city) (string, error) {
		was, _, n := fermata.GetInterruptState[int](ctx)
		target, _, said := fermata.GetResumeContext[string](ctx)
		c.add(fmt.Sprintf("enter %s was=%v target=%v", name, was, target))
		if !target || said != "stop" {
			return "", fermata.StatefulInterrupt(ctx, fmt.Sprintf("%s %s %d?", name, in.To, n+1), n+1)
		}
		return fmt.Sprint(name, " counted ", n), nil
	})
}

// scenario 48
func TestChat_TwoParallelToolsAreAnsweredOneByOneAndNewCallsStartClean(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		both := func(to string) script.Line {
			return script.Calls(agent.ToolCall{Name: "t1", Args: `{"to":"` + to + `"}`}, agent.ToolCall{Name: "t2", Args: `{"to":"` + to + `"}`})
		}
		p.build = func() agent.Agent {
			return chat(&c, "clerk", tools(counting(&c, "t1"), counting(&c, "t2")), both("a"), both("b"), script.Say("Done."))
		}
		open := p.query("go").waits(t)
		if !slices.Equal(infos(open), []string{"t1 a 1?", "t2 a 1?"}) || open[0].Parent != open[1].Parent {
			t.Fatalf("got %v", infos(open))
		}
		// t1 asks again, t2 is not entered
		again := p.answer(find(t, open, "t1 a 1?"), "more").waits(t)
		if !slices.Equal(infos(again), []string{"t1 a 2?", "t2 a 1?"}) || find(t, again, "t2 a 1?").ID != find(t, open, "t2 a 1?").ID ||
			find(t, again, "t1 a 2?").ID == find(t, open, "t1 a 1?").ID {
			t.Fatalf("got %v", infos(again))
		}
		left := p.answer(find(t, again, "t1 a 2?"), "stop")
		left.wantLog(t, "clerk did t1: t1 counted 2", "clerk waits for [t2 a 1?]")
		fresh := p.answer(one(t, left.waits(t)), "stop").waits(t)
		if !slices.Equal(infos(fresh), []string{"t1 b 1?", "t2 b 1?"}) {
			t.Fatalf("the new calls should start clean, but ask %v", infos(fresh))
		}
		done := p.answers(map[string]any{fresh[0].ID: "stop", fresh[1].ID: "stop"})
		if got := done.finished(t).Output.Text(); got != "Done." {
			t.Errorf("got %q", got)
		}
		c.want(t, map[string]int{"model clerk": 3,
			"enter t1 was=false target=false": 2, "enter t1 was=true target=true": 3,
			"enter t2 was=false target=false": 2, "enter t2 was=true target=true": 2})
	})
}

// scenario 49
func TestFinal_FinishedToolNextToWaitingOneIsTheAnswer(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			answers := tool.New("answer", "", func(_ context.Context, in city) (string, error) {
				c.add("answer")
				return "the answer is " + in.To, nil
			}, tool.Final())
			return must(agent.NewChat(agent.Chat{Name: "clerk", Model: model(&c, "clerk",
				script.Calls(agent.ToolCall{Name: "ask", Args: `{"to":"Rome"}`}, agent.ToolCall{Name: "answer", Args: `{"to":"42"}`})),
				MoreTools: func(context.Context) ([]*tool.Tool, error) { return tools(asking(&c, "ask"), answers), nil }}))
		}
		first := p.query("go")
		first.wantLog(t, `clerk says calls ask({"to":"Rome"})calls answer({"to":"42"})`, "clerk did answer: the answer is 42", "clerk waits for [ask Rome?]")
		done := p.answer(one(t, first.waits(t)), "go")
		done.wantLog(t, "clerk did ask: ask heard go", "clerk finished")
		if got := done.finished(t).Output.Text(); got != "the answer is 42" {
			t.Errorf("got %q", got)
		}
		c.want(t, map[string]int{"model clerk": 1, "answer": 1, "enter ask": 2, "ask done": 1})
	})
}

func TestFinal_FailedCallDoesNotEndTheAgent(t *testing.T) {
	var c counter
	final := tool.New("answer", "", func(context.Context, city) (string, error) { return "", tool.Errorf("no answer") }, tool.Final())
	a := chat(&c, "clerk", tools(final), script.Call("answer", `{"to":"x"}`), script.Say("I do not know."))
	if got := record(newRunner(t, a).Query(t.Context(), "go")).finished(t).Output.Text(); got != "I do not know." {
		t.Errorf("got %q", got)
	}
}

// flaky is a model whose stream breaks off the first time.
type flaky struct {
	*script.Model
	c *counter
}

func (f *flaky) Stream(ctx context.Context, r *agent.Request) iter.Seq2[*agent.Chunk, error] {
	f.c.add("stream")
	if f.c.of("stream") > 1 {
		return f.Model.Stream(ctx, r)
	}
	return func(yield func(*agent.Chunk, error) bool) {
		if yield(&agent.Chunk{Text: "Let me "}, nil) {
			yield(nil, &agent.ModelError{Model: "flaky", Status: 529, Temporary: true, Err: errors.New("overloaded")})
		}
	}
}

// scenario 50
func TestChat_AStreamThatBrokeOffLeavesNothingInTheHistory(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.change = func(config *agent.RunnerConfig) { config.EnableStreaming = true }
		p.build = func() agent.Agent {
			m := &flaky{model(&c, "clerk", script.Call("ask", `{"to":"Rome"}`), script.Say("Done now.")), &c}
			return must(agent.NewChat(agent.Chat{Name: "clerk", Model: m, Tools: tools(asking(&c, "ask"))}))
		}
		first := p.query("go")
		if failure, ok := errors.AsType[*agent.ModelError](first.err); !ok || !failure.Temporary {
			t.Fatalf("got %q", first.log())
		}
		second := p.resume()
		second.wantLog(t, `clerk says calls ask({"to":"Rome"})`, "clerk waits for [ask Rome?]")
		done := p.answer(one(t, second.waits(t)), "go")
		done.wantLog(t, "clerk did ask: ask heard go", "clerk token Done ", "clerk token now.", "clerk says Done now.", "clerk finished")
		if n := len(done.finished(t).Output.Messages); n != 3 {
			t.Errorf("got %d messages", n)
		}
	})
}

func TestChat_TheModeOfTheRunIsKeptWhateverTheNextProcessWouldDo(t *testing.T) {
	for _, streams := range []bool{true, false} {
		t.Run(fmt.Sprint("streams ", streams), func(t *testing.T) {
			inEveryStore(t, func(t *testing.T, p *processStory) {
				var c counter
				mode := streams
				p.change = func(config *agent.RunnerConfig) { config.EnableStreaming = mode }
				p.build = func() agent.Agent {
					return chat(&c, "clerk", tools(asking(&c, "ask")), script.Call("ask", `{"to":"Rome"}`), script.Say("Done now."))
				}
				ic := one(t, p.query("go").waits(t))
				mode, p.now = !mode, nil
				done := p.answer(ic, "go")
				if got := slices.Contains(done.log(), "clerk token Done "); got != streams {
					t.Errorf("tokens: %v, want %v", got, streams)
				}
			})
		})
	}
}

// scenario 56
func TestChat_TwoInterruptsInARowInOneToolAndInTwoTurns(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			twice := tool.New("twice", "", func(ctx context.Context, in city) (string, error) {
				c.add("enter twice")
				first, err := question.Ask(ctx, "first "+in.To+"?")
				if err != nil {
					return "", err
				}
				second, err := question.Ask(ctx, "second "+in.To+"?")
				return first + second, err
			})
			return chat(&c, "clerk", tools(twice), script.Call("twice", `{"to":"a"}`), script.Call("twice", `{"to":"b"}`), script.Say("Done."))
		}
		got := p.query("go")
		for _, asked := range []string{"first a?", "second a?", "first b?", "second b?"} {
			ic := one(t, got.waits(t))
			if ic.Info != asked {
				t.Fatalf("got %v, want %s", ic.Info, asked)
			}
			got = p.answer(ic, "x")
		}
		got.wantLog(t, "clerk did twice: xx", "clerk says Done.", "clerk finished")
		c.want(t, map[string]int{"model clerk": 3, "enter twice": 6})
	})
}

func TestI5_AnswersToUnknownAnsweredAndFinishedQuestionsRunNothing(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return chat(&c, "clerk", tools(asking(&c, "ask")), script.Call("ask", `{"to":"a"}`), script.Call("ask", `{"to":"b"}`), script.Say("Done."))
		}
		first := one(t, p.query("go").waits(t))
		if got := p.answers(map[string]any{"int_unknown": "x"}); !isErr(got.err, errUnknown) || len(got.events) != 0 {
			t.Errorf("got %q", got.log())
		}
		second := one(t, p.answer(first, "x").waits(t))
		if got := p.answer(first, "x"); !isErr(got.err, errAnswered) || len(got.events) != 0 {
			t.Errorf("got %q", got.log())
		}
		if got := p.answers(map[string]any{second.ID: "x", first.ID: "x"}); !isErr(got.err, errAnswered) || len(got.events) != 0 {
			t.Errorf("got %q", got.log())
		}
		if got := p.answer(second, 42); got.err == nil || len(got.events) != 0 {
			t.Errorf("got %q", got.log())
		}
		p.answer(second, "y").finished(t)
		if got := p.answer(second, "y"); !isErr(got.err, errFinished) || len(got.events) != 0 {
			t.Errorf("got %q", got.log())
		}
		c.want(t, map[string]int{"model clerk": 3, "enter ask": 4, "ask done": 2})
	})
}

// Opaque data of a model client, such as signed reasoning, is returned with the message, also in
// another process.
func TestChat_OpaqueDataIsReturnedUnchanged(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		var back string
		p.build = func() agent.Agent {
			thinking := agent.Assistant("I think.", call("ask", "Rome"))
			thinking.Opaque = []byte(`{"signature":"a+b"}`)
			return chat(&c, "clerk", tools(asking(&c, "ask")), script.Message(thinking), func(r *agent.Request) (agent.Message, error) {
				m := r.Messages[1]
				back = m.Text + " " + string(m.Opaque) + " " + m.ToolCalls[0].ID
				return script.Say("Done.")(r)
			})
		}
		p.answer(one(t, p.query("go").waits(t)), "x").finished(t)
		if back != `I think. {"signature":"a+b"} call_1_1` {
			t.Errorf("got %q", back)
		}
	})
}

func TestChat_InstructionIsBuiltPerCallAndNotInOutput(t *testing.T) {
	var c counter
	var systems []string
	line := func(next script.Line) script.Line {
		return func(r *agent.Request) (agent.Message, error) {
			if r.Messages[0].Role == agent.RoleSystem {
				systems = append(systems, r.Messages[0].Text)
			}
			return next(r)
		}
	}
	a := must(agent.NewChat(agent.Chat{Name: "clerk", Instruction: "unused", Tools: tools(booking(&c)),
		InstructionFunc: func(context.Context) (string, error) {
			c.add("instruct")
			return fmt.Sprint("instruction ", c.of("instruct")), nil
		},
		Model: model(&c, "clerk", line(script.Call("book", `{"to":"Paris"}`)), line(script.Say("Done.")))}))
	done := record(newRunner(t, a).Query(t.Context(), "go")).finished(t)
	if !slices.Equal(systems, []string{"instruction 1", "instruction 2"}) {
		t.Errorf("got %q", systems)
	}
	for _, m := range done.Output.Messages {
		if m.Role == agent.RoleSystem || m.Role == agent.RoleUser {
			t.Errorf("the output has %+v", m)
		}
	}
}

func TestChat_TheModelIsOfferedItsTools(t *testing.T) {
	var c counter
	var offered []string
	a := chat(&c, "clerk", tools(booking(&c), agent.ExitTool()), func(r *agent.Request) (agent.Message, error) {
		for _, spec := range r.Tools {
			offered = append(offered, spec.Name+": "+spec.Description)
		}
		if !strings.Contains(string(r.Tools[0].Schema), `"to"`) {
			t.Errorf("got %s", r.Tools[0].Schema)
		}
		return script.Say("Done.")(r)
	})
	record(newRunner(t, a).Query(t.Context(), "go")).finished(t)
	if !slices.Equal(offered, []string{"book: Books a ticket.", "exit_loop: Ends the work when nothing is left to be done."}) {
		t.Errorf("got %q", offered)
	}
}

func TestChat_TooManyTurnsIsAnErrorThatAProgramWithMoreCanGetOver(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		turns := 2
		p.build = func() agent.Agent {
			book := script.Call("book", `{"to":"Paris"}`)
			return must(agent.NewChat(agent.Chat{Name: "clerk", MaxTurns: turns, Tools: tools(booking(&c)),
				Model: model(&c, "clerk", book, book, script.Say("Done."))}))
		}
		first := p.query("go")
		if limit, ok := errors.AsType[*agent.MaxTurnsError](first.err); !ok || limit.Agent != "clerk" || limit.Max != 2 {
			t.Fatalf("got %q", first.log())
		}
		turns, p.now = 3, nil
		p.resume().wantLog(t, "clerk says Done.", "clerk finished")
		c.want(t, map[string]int{"model clerk": 3, "book Paris": 2})
	})
}

func TestChat_TwentyTurnsIsTheDefault(t *testing.T) {
	var c counter
	a := must(agent.NewChat(agent.Chat{Name: "clerk", Tools: tools(booking(&c)), Model: endless{&c}}))
	limit, ok := errors.AsType[*agent.MaxTurnsError](record(newRunner(t, a).Query(t.Context(), "go")).err)
	if !ok || limit.Max != 20 || c.of("model") != 20 {
		t.Errorf("got %v after %d calls", limit, c.of("model"))
	}
}

// endless is a model that always calls the same tool with the same id.
type endless struct{ c *counter }

func (e endless) Generate(context.Context, *agent.Request) (*agent.Response, error) {
	e.c.add("model")
	return &agent.Response{Message: agent.Assistant("", agent.ToolCall{ID: "same", Name: "book", Args: `{"to":"Paris"}`})}, nil
}

func TestNewChat_InvalidConfigReturnsError(t *testing.T) {
	var c counter
	m, b := model(&c, "m"), booking(&c)
	other := chat(&c, "other", nil)
	for name, bad := range map[string]agent.Chat{
		"no model":           {Name: "a"},
		"no name":            {Model: m},
		"a bad name":         {Name: "a b", Model: m},
		"a long name":        {Name: strings.Repeat("a", 65), Model: m},
		"negative turns":     {Name: "a", Model: m, MaxTurns: -1},
		"nil tool":           {Name: "a", Model: m, Tools: tools(nil)},
		"two tools":          {Name: "a", Model: m, Tools: tools(b, b)},
		"the transfer tool":  {Name: "a", Model: m, Tools: tools(tool.New("transfer_to_agent", "", func(context.Context, city) (string, error) { return "", nil }))},
		"nil agent":          {Name: "a", Model: m, Agents: []agent.Agent{nil}},
		"two agents":         {Name: "a", Model: m, Agents: []agent.Agent{other, other}},
		"everything at once": {MaxTurns: -1, Tools: tools(nil)},
	} {
		if made, err := agent.NewChat(bad); err == nil || made != nil {
			t.Errorf("%s: got %v, %v", name, made, err)
		}
	}
}

func TestMoreTools_MustNotClash(t *testing.T) {
	var c counter
	a := must(agent.NewChat(agent.Chat{Name: "a", Model: model(&c, "m", script.Say("x")), Tools: tools(booking(&c)),
		MoreTools: func(context.Context) ([]*tool.Tool, error) { return tools(booking(&c)), nil }}))
	if p := record(newRunner(t, a).Query(t.Context(), "go")); p.err == nil || c.of("model m") != 0 {
		t.Errorf("got %q", p.log())
	}
}

func TestOutput_TextIsTheLastThingThatTheAgentSaid(t *testing.T) {
	call := agent.ToolCall{ID: "1", Name: "t"}
	for want, messages := range map[string][]agent.Message{
		"":     {agent.User("u"), agent.Assistant("thinking", call), agent.ToolResult(call, "got")},
		"said": {agent.Assistant("said"), agent.Assistant("thinking", call), agent.User("u")},
	} {
		if got := (&agent.Output{Messages: messages}).Text(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
