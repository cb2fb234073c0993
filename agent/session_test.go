package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/storetest"
	"github.com/fermata-go/fermata/tool"
)

type keyed struct {
	Key   string `json:"key"`
	Value string `json:"value,omitempty"`
}

// setting is a tool that sets a session value, and getting one that reads it.
func setting(c *counter) *tool.Tool {
	return tool.New("set", "Sets.", func(ctx context.Context, in keyed) (string, error) {
		c.add("set " + in.Key + "=" + in.Value)
		return "set", agent.SetValue(ctx, in.Key, in.Value)
	})
}

func getting() *tool.Tool {
	return tool.New("get", "Gets.", func(ctx context.Context, in keyed) (string, error) {
		value, ok, err := agent.Value[string](ctx, in.Key)
		return fmt.Sprintf("%s=%s %v", in.Key, value, ok), err
	})
}

func set(key, value string) script.Line {
	return script.Call("set", fmt.Sprintf(`{"key":%q,"value":%q}`, key, value))
}

func get(key string) script.Line { return script.Call("get", fmt.Sprintf(`{"key":%q}`, key)) }

var askOnce = script.Call("ask", `{"to":"go on"}`)

// lastWord is the instruction that a chat agent had for its last request.
type lastWord struct{ instruction string }

func (l *lastWord) says(text string) script.Line {
	return func(r *agent.Request) (agent.Message, error) {
		l.instruction = r.Messages[0].Text
		return agent.Assistant(text), nil
	}
}

func TestSession_ValueSetByAToolIsReadInAnotherProcess(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		var last lastWord
		instruct := func(ctx context.Context) (string, error) {
			name, ok, err := agent.Value[string](ctx, "user")
			return fmt.Sprintf("You speak to %q %v.", name, ok), err
		}
		p.build = func() agent.Agent {
			first := must(agent.NewChat(agent.Chat{Name: "first", InstructionFunc: instruct, Tools: tools(setting(&c), getting(), asking(&c, "ask")), Model: script.New(
				func(r *agent.Request) (agent.Message, error) {
					last.instruction = r.Messages[0].Text
					return set("user", "Ann")(r)
				},
				get("user"), askOnce, get("user"), last.says("Done."))}))
			second := must(agent.NewFunc("second", "", func(ctx context.Context, _ *agent.Input) (*agent.Output, error) {
				user, _, err := agent.Value[string](ctx, "user")
				return &agent.Output{Messages: []agent.Message{agent.Assistant("Bye, " + user)}}, errors.Join(err, agent.SetValue(ctx, "user", user+"!"))
			}))
			third := must(agent.NewChat(agent.Chat{Name: "third", InstructionFunc: instruct, Model: script.New(last.says("Really."))}))
			return must(agent.NewSequential("all", "", first, second, third))
		}
		open := p.query("Go.")
		if last.instruction != `You speak to "" false.` || !strings.Contains(fmt.Sprint(open.log()), "did get: user=Ann true") {
			t.Errorf("at first: %q, %q", last.instruction, open.log())
		}
		end := p.answer(one(t, open.waits(t)), "yes")
		if want := []string{"first did ask: ask heard yes", `first says calls get({"key":"user"})`, "first did get: user=Ann true", "first says Done.", "second says Bye, Ann", "third says Really.", "all finished"}; cmp.Diff(want, end.log()) != "" {
			t.Errorf("after the resume: %q", end.log())
		}
		if last.instruction != `You speak to "Ann!" true.` {
			t.Errorf("at last: %q", last.instruction)
		}
		if c.of("set user=Ann") != 1 {
			t.Error("it was set again")
		}
	})
}

// reads runs a function in an agent, before and after an interrupt, and returns the results.
func reads(t *testing.T, values map[string]any, first, then func(ctx context.Context) error, more ...agent.RunOption) (start, end *recording) {
	t.Helper()
	r := newRunner(t, must(agent.NewFunc("reader", "", func(ctx context.Context, _ *agent.Input) (*agent.Output, error) {
		_, err := fermata.Do(ctx, "first", func(ctx context.Context) (bool, error) { return true, first(ctx) })
		if err != nil {
			return nil, err
		}
		if _, err := question.Ask(ctx, "Go on?"); err != nil {
			return nil, err
		}
		return nil, then(ctx)
	})))
	start = record(r.Query(t.Context(), "Go.", agent.WithRun("run"), agent.WithSessionValues(values)))
	if start.err != nil {
		return start, nil
	}
	return start, record(r.ResumeWithParams(t.Context(), "run", answer(one(t, start.waits(t)), "yes"), more...))
}

// is checks one value.
func is(ctx context.Context, key, want string) error {
	got, ok, err := agent.Value[string](ctx, key)
	if err != nil || got != want || ok != (want != "") {
		return fmt.Errorf("%s is %q %v %w, want %q", key, got, ok, err, want)
	}
	return nil
}

func TestSession_ValuesToStartAndToGoOnWith(t *testing.T) {
	_, end := reads(t, map[string]any{"a": "start", "b": "start", "c": "start"},
		func(ctx context.Context) error {
			return errors.Join(is(ctx, "a", "start"), is(ctx, "d", ""), agent.SetValue(ctx, "b", "agent"), agent.SetValue(ctx, "c", "agent"), agent.SetValue(ctx, "e", "agent"))
		},
		func(ctx context.Context) error {
			return errors.Join(is(ctx, "a", "start"), is(ctx, "b", "agent"), is(ctx, "c", "resume"), is(ctx, "d", "resume"), is(ctx, "e", "agent"))
		}, agent.WithSessionValues(map[string]any{"c": "resume", "d": "resume"}))
	end.finished(t)
}

// Values of a start or a resume are set once: they do not overwrite later values.
func TestSession_ReplayDoesNotSetAgain(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return chat(&c, "clerk", tools(setting(&c), getting(), asking(&c, "ask")),
				set("a", "one"), set("a", "two"), askOnce, get("a"), set("a", "four"), script.Call("ask", `{"to":"go on again"}`), get("a"), script.Say("Done."))
		}
		open := one(t, p.query("Go.", agent.WithSessionValues(map[string]any{"a": "zero"})).waits(t))
		next := p.answer(open, "yes", agent.WithSessionValues(map[string]any{"b": "three"}))
		if log := fmt.Sprint(next.log()); !strings.Contains(log, "did get: a=two true") {
			t.Errorf("after the first resume: %s", log)
		}
		end := p.answer(one(t, next.waits(t)), "yes")
		if log := fmt.Sprint(end.log()); !strings.Contains(log, "did get: a=four true") {
			t.Errorf("after the second resume: %s", log)
		}
		end.finished(t)
	})
}

func TestSession_AWrongTypeIsAnErrorAndNotAZero(t *testing.T) {
	_, end := reads(t, map[string]any{"n": 7}, func(context.Context) error { return nil }, func(ctx context.Context) error {
		_, ok, err := agent.Value[string](ctx, "n")
		if err == nil || !ok || !strings.Contains(err.Error(), `"n"`) {
			return fmt.Errorf("got %v, %w", ok, err)
		}
		n, ok, err := agent.Value[int](ctx, "n")
		if n != 7 || !ok || err != nil {
			return fmt.Errorf("got %v, %v, %w", n, ok, err)
		}
		return nil
	})
	end.finished(t)
}

func TestSession_AnUntypedNumberIsExact(t *testing.T) {
	_, end := reads(t, map[string]any{"row": map[string]any{"id": 9007199254740993}}, func(ctx context.Context) error {
		row, _, err := agent.Value[map[string]any](ctx, "row")
		if id := fmt.Sprint(row["id"]); err != nil || id != "9007199254740993" {
			return fmt.Errorf("got %s, %w", id, err)
		}
		return nil
	}, func(context.Context) error { return nil })
	end.finished(t)
}

func TestSession_SetValueWithUnencodableValueReturnsError(t *testing.T) {
	_, end := reads(t, map[string]any{"a": "old"}, func(ctx context.Context) error {
		err := agent.SetValue(ctx, "a", make(chan int))
		if _, ok := errors.AsType[*fermata.EncodeError](err); !ok {
			return fmt.Errorf("got %w", err)
		}
		return is(ctx, "a", "old")
	}, func(ctx context.Context) error { return is(ctx, "a", "old") })
	end.finished(t)
}

func TestSession_UnencodableValueOptionReturnsError(t *testing.T) {
	bad := agent.WithSessionValues(map[string]any{"f": func() {}})
	var c counter
	r := newRunner(t, chat(&c, "clerk", tools(asking(&c, "ask")), askOnce, script.Say("Done.")))
	refused := func(p *recording) {
		t.Helper()
		if _, ok := errors.AsType[*fermata.EncodeError](p.err); !ok || len(p.events) > 0 {
			t.Errorf("got %q", p.log())
		}
	}
	refused(record(r.Query(t.Context(), "Go.", agent.WithRun("run"), bad)))
	if _, err := r.Inspect(t.Context(), "run"); !errors.Is(err, graph.ErrUnknownRun) {
		t.Errorf("it should not have started: %v", err)
	}
	open := one(t, record(r.Query(t.Context(), "Go.", agent.WithRun("run"))).waits(t))
	refused(record(r.ResumeWithParams(t.Context(), "run", answer(open, "yes"), bad)))
	if saved := must(r.Inspect(t.Context(), "run")); saved.Status != graph.StatusWaiting || len(saved.Interrupts) != 1 {
		t.Errorf("it should still wait: %+v", saved)
	}
	record(r.ResumeWithParams(t.Context(), "run", answer(open, "yes"))).finished(t)
}

func TestSession_ValueThatDoesNotRoundTripReturnsError(t *testing.T) {
	type seen struct {
		Name  string
		times int
	}
	for name, value := range map[string]any{"a field that is not exported": seen{"a", 2}, "text that is not UTF-8": "a\xff"} {
		_, end := reads(t, nil, func(ctx context.Context) error {
			if _, ok := errors.AsType[*fermata.EncodeError](agent.SetValue(ctx, "a", value)); !ok {
				t.Errorf("%s was taken", name)
			}
			return agent.SetValue(ctx, "a", nil)
		}, func(context.Context) error { return nil })
		end.finished(t)
	}
}

func TestSession_OutsideARunReturnsErrNoRun(t *testing.T) {
	if err := agent.SetValue(t.Context(), "a", 1); !errors.Is(err, fermata.ErrNoRun) {
		t.Errorf("got %v", err)
	}
	if _, ok, err := agent.Value[int](t.Context(), "a"); ok || !errors.Is(err, fermata.ErrNoRun) {
		t.Errorf("got %v, %v", ok, err)
	}
}

func TestSession_AnyKeyWillDo(t *testing.T) {
	keys := []string{"", " ", "a;b", "a:b", "a#1", "%", "%3B", "a", "A", "ä", "\xff", "\xfe", "value:a", strings.Repeat("long", 500)}
	_, end := reads(t, nil, func(ctx context.Context) error {
		var errs []error
		for i, key := range keys {
			errs = append(errs, agent.SetValue(ctx, key, fmt.Sprint("value ", i)))
		}
		return errors.Join(errs...)
	}, func(ctx context.Context) error {
		var errs []error
		for i, key := range keys {
			errs = append(errs, is(ctx, key, fmt.Sprint("value ", i)))
		}
		return errors.Join(errs...)
	})
	end.finished(t)
}

func TestSession_NoRunSeesTheValuesOfAnother(t *testing.T) {
	var c counter
	r := newRunner(t, chat(&c, "clerk", tools(setting(&c), getting()), set("a", "mine"), get("a"), get("b"), script.Say("Done.")))
	for _, run := range []string{"one", "two"} {
		p := record(r.Query(t.Context(), "Go.", agent.WithRun(run), agent.WithSessionValues(map[string]any{"b": run})))
		if log := fmt.Sprint(p.log()); !strings.Contains(log, "b="+run+" true") {
			t.Errorf("run %s: %s", run, log)
		}
	}
}

func TestSession_ManyMaySetAtTheSameTime(t *testing.T) {
	var c counter
	var lanes []agent.Agent
	for i := range 8 {
		name := fmt.Sprint("lane", i)
		lanes = append(lanes, chat(&c, name, tools(setting(&c), getting(), asking(&c, "ask")),
			script.Calls(agent.ToolCall{Name: "set", Args: `{"key":"` + name + `","value":"own"}`}, agent.ToolCall{Name: "set", Args: `{"key":"shared","value":"` + name + `"}`}),
			askOnce, get(name), get("shared"), script.Say("Done.")))
	}
	r := newRunner(t, must(agent.NewParallel("lanes", "", lanes...)))
	open := record(r.Query(t.Context(), "Go.", agent.WithRun("run")))
	all := make(map[string]any)
	for _, ic := range open.waits(t) {
		all[ic.ID] = "yes"
	}
	end := record(r.ResumeWithParams(t.Context(), "run", &agent.ResumeParams{Targets: all}))
	end.finished(t)
	log := fmt.Sprint(end.log())
	for i := range 8 {
		if !strings.Contains(log, fmt.Sprintf("lane%d=own true", i)) {
			t.Errorf("the value of branch %d is lost", i)
		}
	}
	if strings.Count(log, "shared=lane") != 8 {
		t.Errorf("the shared one is lost: %s", log)
	}
}

// A value is saved with the result of the tool that set it: a crash loses both or none.
func TestSession_AValueSharesTheFateOfItsTool(t *testing.T) {
	for n := 1; ; n++ {
		st := storetest.NewFaulty(memory.New())
		st.CrashSave(n, storetest.BeforeWrite)
		var c counter
		r := newRunner(t, chat(&c, "clerk", tools(setting(&c), getting()), set("a", "one"), get("a"), script.Say("Done.")), func(config *agent.RunnerConfig) { config.Store = st })
		p := record(r.Query(t.Context(), "Go.", agent.WithRun("run")))
		if p.err == nil {
			break
		}
		st.Restart()
		again := record(r.Resume(t.Context(), "run", agent.TakeOver()))
		if errors.Is(again.err, graph.ErrUnknownRun) {
			again = record(r.Query(t.Context(), "Go.", agent.WithRun("run")))
		}
		if output := fmt.Sprint(messageLines(again.finished(t).Output.Messages)); !strings.Contains(output, "a=one true") {
			t.Errorf("after a crash at save %d: %s", n, output)
		}
	}
}
