package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/storetest"
	"github.com/fermata-go/fermata/tool"
)

// agentHarness is a program in which a test can intervene whenever a model or a tool runs. Each
// start and resume has its own runner.
type agentHarness struct {
	*processStory
	c counter
	// moment is called with the name of the running work, for one start or resume. Its result is
	// the error of the model or the tool.
	moment func(ctx context.Context, what string) error
	cancel agent.CancelFunc
	asked  *agent.Cancellation
	mu     sync.Mutex
}

func newAgentHarness(t testing.TB, build func(x *agentHarness) agent.Agent, changes ...func(*agent.RunnerConfig)) *agentHarness {
	st := memory.New()
	p := &processStory{t: t, change: func(config *agent.RunnerConfig) {
		for _, change := range changes {
			change(config)
		}
	}}
	p.begin = func() store.Checkpoints { p.now = nil; return st }
	return newAgentHarnessIn(p, build)
}

func newAgentHarnessIn(p *processStory, build func(x *agentHarness) agent.Agent) *agentHarness {
	x := &agentHarness{processStory: p}
	p.build = func() agent.Agent { return build(x) }
	return x
}

func (x *agentHarness) at(ctx context.Context, what string) error {
	x.c.add(what)
	if x.moment == nil {
		return nil
	}
	return x.moment(ctx, what)
}

// scriptedModel is a scripted model with intervention points: "model name" when it is called,
// "stream name" after its first word.
type scriptedModel struct {
	x      *agentHarness
	name   string
	script *script.Model
}

func (a *scriptedModel) Generate(ctx context.Context, r *agent.Request) (*agent.Response, error) {
	if err := a.x.at(ctx, "model "+a.name); err != nil {
		return nil, err
	}
	return a.script.Generate(ctx, r)
}

func (a *scriptedModel) Stream(ctx context.Context, r *agent.Request) iter.Seq2[*agent.Chunk, error] {
	return func(yield func(*agent.Chunk, error) bool) {
		if err := a.x.at(ctx, "model "+a.name); err != nil {
			yield(nil, err)
			return
		}
		first := true
		for piece, err := range a.script.Stream(ctx, r) {
			if !yield(piece, err) {
				return
			}
			if err == nil && piece.Text != "" && first {
				first = false
				if err := a.x.at(ctx, "stream "+a.name); err != nil {
					yield(nil, err)
					return
				}
			}
		}
	}
}

func (x *agentHarness) chat(name string, list []*tool.Tool, lines ...script.Line) agent.Agent {
	return must(agent.NewChat(agent.Chat{Name: name, Description: "does " + name, Model: &scriptedModel{x, name, script.New(lines...)}, Tools: list}))
}

// tool returns a tool with the intervention point "tool name" and the result "name done".
func (x *agentHarness) tool(name string) *tool.Tool {
	return tool.New(name, "Does "+name+".", func(ctx context.Context, _ struct{}) (string, error) {
		return name + " done", x.at(ctx, "tool "+name)
	})
}

// cancelAt cancels the next start or resume when this work runs for the first time. With CancelNow
// the work notices.
func (x *agentHarness) cancelAt(what string, mode agent.CancelMode, options ...agent.CancelOption) {
	var once sync.Once
	x.moment = func(ctx context.Context, now string) (err error) {
		if now == what {
			once.Do(func() {
				x.asked = x.cancel(mode, options...)
				if mode == agent.CancelNow {
					<-ctx.Done()
					err = ctx.Err()
				}
			})
		}
		return err
	}
}

// cancellable returns a context for one start or resume that events in it can cancel.
func (x *agentHarness) cancellable() context.Context {
	var ctx context.Context
	ctx, x.cancel = agent.WithCancel(x.t.Context())
	return ctx
}

func (x *agentHarness) start(options ...agent.RunOption) *recording {
	defer func() { x.moment = nil }()
	return record(x.runner().Query(x.cancellable(), "Go.", append(options, agent.WithRun("run"))...))
}

func (x *agentHarness) goOn(targets map[string]any, options ...agent.RunOption) *recording {
	defer func() { x.moment = nil }()
	return record(x.runner().ResumeWithParams(x.cancellable(), "run", &agent.ResumeParams{Targets: targets}, options...))
}

// streamingTool returns a tool with the intervention point "tool name" between two chunks.
func (x *agentHarness) streamingTool(name string) *tool.Tool {
	return tool.NewStream(name, "Does "+name+".", func(ctx context.Context, _ struct{}) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			if !yield(name, nil) {
				return
			}
			err := x.at(ctx, "tool "+name)
			yield(" done", err)
		}
	})
}

// modelFunc is a model as a function.
type modelFunc func(ctx context.Context, r *agent.Request) (*agent.Response, error)

func (f modelFunc) Generate(ctx context.Context, r *agent.Request) (*agent.Response, error) {
	return f(ctx, r)
}

// clerk calls a tool and then adds two words.
func clerk(x *agentHarness) agent.Agent {
	return x.chat("clerk", tools(x.tool("work"), x.streamingTool("flow")), script.Calls(
		agent.ToolCall{Name: "work", Args: "{}"}, agent.ToolCall{Name: "flow", Args: "{}"}), script.Say("All done."))
}

func streaming(config *agent.RunnerConfig) { config.EnableStreaming = true }

// heldClerk calls a tool, asks a person, and adds two words.
func heldClerk(x *agentHarness) agent.Agent {
	return x.chat("clerk", tools(x.tool("work"), x.streamingTool("flow"), tool.Approve(x.tool("pay"))),
		script.Calls(agent.ToolCall{Name: "work", Args: "{}"}, agent.ToolCall{Name: "flow", Args: "{}"}),
		script.Call("pay", "{}"), script.Say("All done."))
}

func TestStream_ARunBeginsWhenItsEventsAreAskedFor(t *testing.T) {
	x := newAgentHarness(t, clerk)
	events := x.runner().Query(t.Context(), "Go.", agent.WithRun("run"))
	x.c.want(t, nil)
	if _, err := x.runner().Inspect(t.Context(), "run"); !errors.Is(err, graph.ErrUnknownRun) {
		t.Errorf("the iteration has not begun, but: %v", err)
	}
	record(events).finished(t)
	if again := record(events); !errors.Is(again.err, graph.ErrRunExists) {
		t.Errorf("the second iteration got %q", again.log())
	}
}

// Leaving the loop cancels the run immediately. At any point the run can be resumed from there, and
// nothing is left running.
func TestStream_BreakingOutAtAnyEventLeavesAResumableRun(t *testing.T) {
	whole := newAgentHarness(t, heldClerk, streaming)
	open := whole.start()
	end := whole.goOn(map[string]any{one(t, open.waits(t)).ID: yes})
	want := end.finished(t).Output
	first, second := len(open.events), len(end.events)
	for n := range first + second {
		synctest.Test(t, func(t *testing.T) {
			x := newAgentHarness(t, heldClerk, streaming)
			listen := func(events iter.Seq2[*agent.Event, error], n int) {
				for _, err := range events {
					if err != nil {
						t.Fatal(err)
					}
					if n--; n < 0 {
						break
					}
				}
			}
			listen(x.runner().Query(t.Context(), "Go.", agent.WithRun("run")), n)
			ask := one(t, x.goOn(nil).waits(t))
			if n < first {
				x.goOn(map[string]any{ask.ID: yes}).finished(t)
			} else {
				listen(x.runner().ResumeWithParams(t.Context(), "run", answer(ask, yes)), n-first)
				// it may have ended by then
				if p := x.goOn(nil); !errors.Is(p.err, graph.ErrFinished) {
					p.finished(t)
				}
			}
			saved := must(x.runner().Inspect(t.Context(), "run"))
			if got := saved.Output; saved.Status != graph.StatusFinished || got.Text() != want.Text() || len(got.Messages) != len(want.Messages) {
				t.Errorf("after event %d it ended with %+v, want %+v", n, saved, want)
			}
			if x.c.of("tool pay") != 1 || x.c.of("tool work") != 1 {
				t.Errorf("after event %d: %v", n, x.c.n)
			}
		})
	}
}

func TestStream_AListenerThatPanicsLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAgentHarness(t, clerk, streaming)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic belongs to the listener")
				}
			}()
			for range x.runner().Query(t.Context(), "Go.", agent.WithRun("run")) {
				panic("enough")
			}
		}()
		x.goOn(nil).finished(t)
	})
}

func TestStream_TheCallersContextEndsTheRunAndNotItsState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAgentHarness(t, clerk)
		ctx, hangUp := context.WithCancelCause(t.Context())
		why := errors.New("the user went away")
		x.moment = func(ctx context.Context, what string) error {
			if what == "tool work" {
				hangUp(why)
				<-ctx.Done()
			}
			return context.Cause(ctx)
		}
		stopped := record(x.runner().Query(ctx, "Go.", agent.WithRun("run")))
		if _, cancelled := errors.AsType[*agent.CancelError](stopped.err); cancelled || !errors.Is(stopped.err, why) {
			t.Errorf("no cancel was requested, the caller left: %v", stopped.err)
		}
		x.moment = nil
		x.goOn(nil).finished(t)
		x.c.want(t, map[string]int{"model clerk": 2, "tool work": 2, "tool flow": x.c.of("tool flow")})
	})
}

func TestStream_AWholeAnswerFollowsItsPieces(t *testing.T) {
	x := newAgentHarness(t, heldClerk, streaming)
	open := x.start()
	x.change = nil // the run keeps its mode, even if the program has changed it
	end := x.goOn(map[string]any{one(t, open.waits(t)).ID: yes})
	end.wantLog(t, "clerk did pay: pay done", "clerk token All ", "clerk token done.", "clerk says All done.", "clerk finished")
	log := open.log()
	for i, want := range []string{"clerk output flow", "clerk output  done", "clerk did flow: flow done"} {
		at := slices.Index(log, want)
		if at < 0 {
			t.Fatalf("%q is missing in %q", want, log)
		}
		if i > 0 && at < slices.Index(log, "clerk output flow") {
			t.Errorf("%q comes too early in %q", want, log)
		}
	}
}

// Scenario 50. Tokens of a truncated answer are not part of the conversation.
func TestStream_TruncatedAnswerIsRetried(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		broken := &agent.ModelError{Model: "actor", Status: 503, Temporary: true, Err: errors.New("overloaded")}
		x := newAgentHarnessIn(p, func(x *agentHarness) agent.Agent {
			return x.chat("clerk", tools(tool.Approve(x.tool("pay"))),
				script.Message(agent.Assistant("One moment.", agent.ToolCall{Name: "pay", Args: "{}"})), script.Say("All done."))
		})
		x.change = streaming
		x.moment = func(_ context.Context, what string) error {
			if what == "stream clerk" {
				return broken
			}
			return nil
		}
		failed := x.start()
		failed.events = slices.DeleteFunc(failed.events, func(e *agent.Event) bool { _, piece := e.Body.(agent.Token); return piece })
		got, ok := errors.AsType[*agent.ModelError](failed.err)
		if !ok || !got.Temporary || len(failed.events) != 0 {
			t.Fatalf("got %q", failed.log())
		}
		open := x.goOn(nil)
		open.wantLog(t, "clerk token One ", "clerk token moment.", "clerk says One moment.calls pay({})", fmt.Sprint("clerk waits for ", infos(open.waits(t))))
		end := x.goOn(map[string]any{one(t, open.waits(t)).ID: yes})
		if said := end.finished(t).Output.Messages; len(said) != 3 || said[0].Text != "One moment." {
			t.Errorf("the conversation is %+v", said)
		}
		x.c.want(t, map[string]int{"model clerk": 3, "stream clerk": 3, "tool pay": 1})
	})
}

// mute is a model whose stream ends before its answer.
type mute struct{ agent.Model }

func (mute) Stream(context.Context, *agent.Request) iter.Seq2[*agent.Chunk, error] {
	return func(yield func(*agent.Chunk, error) bool) { yield(&agent.Chunk{Text: "Well,"}, nil) }
}

func TestStream_UnfinishedAnswerReturnsError(t *testing.T) {
	st := memory.New()
	build := func(m agent.Model, on bool) *agent.Runner {
		return newRunner(t, must(agent.NewChat(agent.Chat{Name: "clerk", Model: m})), func(config *agent.RunnerConfig) {
			config.Store, config.EnableStreaming = st, on
		})
	}
	good := script.New(script.Say("Well, yes."))
	failed := record(build(mute{good}, true).Query(t.Context(), "Go.", agent.WithRun("run")))
	if failed.err == nil || !strings.Contains(failed.err.Error(), "returned nothing") {
		t.Fatalf("got %q", failed.log())
	}
	end := record(build(good, true).Resume(t.Context(), "run"))
	end.wantLog(t, "clerk token Well, ", "clerk token yes.", "clerk says Well, yes.", "clerk finished")
}

func TestStream_EventsOfParallelAgentsNameTheirOwnPlaces(t *testing.T) {
	x := newAgentHarness(t, func(x *agentHarness) agent.Agent {
		var lanes []agent.Agent
		for i := range 8 {
			lanes = append(lanes, x.chat(fmt.Sprint("lane", i), tools(x.tool("work")), script.Call("work", "{}"), script.Say(fmt.Sprintf("I am lane%d indeed.", i))))
		}
		return must(agent.NewParallel("all", "", lanes...))
	}, streaming)
	p := x.start()
	done := p.finished(t)
	if len(done.Output.Messages) != 8*3 {
		t.Errorf("the output has %d messages", len(done.Output.Messages))
	}
	pieces := make(map[string]string)
	for _, e := range p.events {
		if e.Run != "run" {
			t.Errorf("%s is of run %q", line(e.Body), e.Run)
		}
		switch body := e.Body.(type) {
		case agent.Token:
			pieces[e.Path.String()] += body.Text
		case agent.MessageAdded:
			if body.Message.Text != pieces[e.Path.String()] || body.Message.Agent != e.Agent {
				t.Errorf("%s has the text %q, but its tokens are %q", e.Path, body.Message.Text, pieces[e.Path.String()])
			}
		case agent.ToolOutput, agent.ToolDone, agent.Transferred, agent.Exit, agent.Interrupted, agent.Finished:
		}
	}
	for i := range 8 {
		place := fmt.Sprintf("agent:all;agent:lane%d", i)
		if want := fmt.Sprintf("I am lane%d indeed.", i); pieces[place] != want {
			t.Errorf("at %s there was %q", place, pieces[place])
		}
	}
}

// Shown events are saved: after a store failure at any point they are not shown again.
func TestI9_EventsAreSavedBeforeTheyAreShown(t *testing.T) {
	for n := 1; ; n++ {
		st := storetest.NewFaulty(memory.New())
		st.FailSave(n, storetest.BeforeWrite, errDisk)
		x := newAgentHarness(t, func(x *agentHarness) agent.Agent {
			report := must(agent.NewFunc("report", "", func(context.Context, *agent.Input) (*agent.Output, error) {
				return &agent.Output{Messages: []agent.Message{agent.Assistant("It went well.")}}, nil
			}))
			return must(agent.NewSequential("all", "", clerk(x), report))
		}, func(config *agent.RunnerConfig) { config.Store = st })
		p := x.start()
		if p.err == nil {
			if st.Saves() < 6 {
				t.Fatalf("there were only %d saves", st.Saves())
			}
			break
		}
		again := x.goOn(nil, agent.TakeOver())
		if errors.Is(again.err, graph.ErrUnknownRun) {
			again = x.start()
		}
		again.finished(t)
		for i, line := range p.log()[:len(p.events)] {
			if _, piece := p.events[i].Body.(agent.ToolOutput); !piece && slices.Contains(again.log(), line) {
				t.Errorf("save %d failed, and %q was shown twice", n, line)
			}
		}
	}
}

// wantCancelled checks that the run was cancelled cleanly, and that all results agree.
func (x *agentHarness) wantCancelled(p *recording) *agent.CancelError {
	x.t.Helper()
	cancelled, ok := errors.AsType[*agent.CancelError](p.err)
	if !ok || cancelled.Run != "run" || !errors.Is(p.err, graph.ErrStopped) {
		x.t.Fatalf("the run should be cancelled, but: %q", p.log())
	}
	var want error
	if cancelled.Escalated {
		want = agent.ErrCancelTimeout
	}
	if err := x.asked.Wait(x.t.Context()); !errors.Is(err, want) {
		x.t.Errorf("Wait returns %v, want %v", err, want)
	}
	saved, err := x.runner().Inspect(x.t.Context(), "run")
	if err != nil || saved.Status != graph.StatusStopped {
		x.t.Errorf("it should be saved as stopped, but: %+v, %v", saved, err)
	}
	return cancelled
}

// wantEnded checks that a cancel came too late.
func (x *agentHarness) wantEnded() {
	x.t.Helper()
	if err := x.asked.Wait(x.t.Context()); !errors.Is(err, agent.ErrRunEnded) {
		x.t.Errorf("Wait returns %v, want %v", err, agent.ErrRunEnded)
	}
}

func (m *simulatedModel) Stream(ctx context.Context, r *agent.Request) iter.Seq2[*agent.Chunk, error] {
	return func(yield func(*agent.Chunk, error) bool) {
		response, err := m.Generate(ctx, r)
		if err != nil {
			yield(nil, err)
		} else if yield(&agent.Chunk{Text: "um"}, nil) {
			yield(&agent.Chunk{Response: response}, nil)
		}
	}
}
