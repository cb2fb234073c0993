package inproc_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/tool"
)

// The names have equal length: a checkpoint with one replaced by the other is that of a program
// which has the other.
var (
	whereTo  = fermata.NewKind[string, string]("unfit-where-to")
	howMany  = fermata.NewKind[string, int]("unfit-how-many")
	kindGone = "unfit-was-gone"
)

// heldTwice waits before both of its nodes.
func heldTwice[S any](t *testing.T) inproc.Graph {
	g := graph.New[S]("held")
	for _, node := range []string{"here", "there"} {
		g.Node(node, func(_ context.Context, s S) (S, error) { return s, nil })
		g.HoldBefore(node)
		g.Edge(graph.Start, node)
		g.Edge(node, graph.End)
	}
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Flow(flow, inproc.FlowConfig[S]{})
}

// asked executes a run that waits afterwards.
func asked(t *testing.T, p provider.Provider, e provider.Execution) []provider.Interrupt {
	t.Helper()
	result, err := p.Execute(t.Context(), e)
	waiting, ok := result.Outcome.(provider.Waiting)
	if err != nil || !ok {
		t.Fatalf("it does not wait: %#v, %v", result, err)
	}
	for _, a := range e.Answers {
		if !slices.Contains(result.Applied, a.InterruptID) {
			t.Errorf("%s is not applied, and would be delivered again: %q", a.InterruptID, result.Applied)
		}
	}
	return waiting.Interrupts
}

// Regression: a state was returned to the program before a deployment, or to a replica that was not
// replaced yet, and lacked the field that the deployment added: the run failed.
func TestI13_AnswerThatOnlyAnotherProgramAcceptsIsAskedAgain(t *testing.T) {
	type before struct{ Text string }
	type after struct{ Text, More string }
	run := provider.Execution{Run: provider.Run{Account: "acme", ID: "run_1", Graph: "held", State: memory.New()}, Input: json.RawMessage(`{}`), Owner: noOwner{}}
	open := asked(t, newProvider(t, heldTwice[before](t)), run)
	run.Answers = []provider.Answer{{InterruptID: open[0].ID, Data: json.RawMessage(`{"Text":"edited"}`)}, {InterruptID: open[1].ID, Data: json.RawMessage(`null`)}}
	now := newProvider(t, heldTwice[after](t))
	again := asked(t, now, run)
	if len(again) != 1 || again[0].ID != open[0].ID {
		t.Fatalf("%+v is asked again", again)
	}
	run.Answers = []provider.Answer{{InterruptID: open[0].ID, Data: json.RawMessage(`{"Text":"edited","More":""}`)}}
	result, err := now.Execute(t.Context(), run)
	if done, ok := result.Outcome.(provider.Completed); err != nil || !ok || string(done.Output) != `{"Text":"edited","More":""}` {
		t.Errorf("%#v, %v", result, err)
	}
}

// The same for an agent whose tool now asks something else.
func TestI13_AnswerThatOnlyAnotherProgramAcceptsIsAskedAgainByAnAgent(t *testing.T) {
	run, s := asking(t, whereTo.Name())
	become(t, s, whereTo.Name(), howMany.Name())
	again := asked(t, clerkWhoAsks(t), run)
	if len(again) != 1 || again[0].Kind != howMany.Name() {
		t.Errorf("%+v is asked again", again)
	}
}

// Regression: a replica from before a deployment, or after a rollback, does not have the kind of an
// interrupt. It failed the run.
func TestI2_AnAnswerOfAKindThatTheProgramLacksIsKept(t *testing.T) {
	run, s := asking(t, whereTo.Name())
	become(t, s, whereTo.Name(), kindGone)
	p := clerkWhoAsks(t)
	result, err := p.Execute(t.Context(), run)
	if _, changed := errors.AsType[*graph.ProgramChangedError](err); !changed || result.Outcome != nil {
		t.Errorf("%#v, %v", result, err)
	}
	if err := p.CheckResumable(t.Context(), run.Run); err == nil || !strings.Contains(err.Error(), kindGone) {
		t.Errorf("check says: %v", err)
	}
	become(t, s, kindGone, whereTo.Name())
	if result, err := p.Execute(t.Context(), run); err != nil || result.Outcome.(provider.Completed).Content != "Off to Paris." {
		t.Errorf("the program that has it: %#v, %v", result, err)
	}
}

// asking returns an agent's run that waits for an answer of this kind, and the answer.
func asking(t *testing.T, kind string) (provider.Execution, *memory.Checkpoints) {
	t.Helper()
	s := memory.New()
	run := provider.Execution{Run: provider.Run{Account: "acme", ID: "run_1", Graph: "clerk", State: s}, Input: json.RawMessage(`{"query":"Go."}`), Owner: noOwner{}}
	open := asked(t, clerkWhoAsks(t), run)
	if len(open) != 1 || open[0].Kind != kind {
		t.Fatalf("it asks %+v", open)
	}
	run.Answers = []provider.Answer{{InterruptID: open[0].ID, Data: json.RawMessage(`"Paris"`)}}
	return run, s
}

func clerkWhoAsks(t *testing.T) *inproc.Provider {
	t.Helper()
	travel := tool.New("travel", "Travels.", func(ctx context.Context, _ struct{}) (string, error) { return whereTo.Ask(ctx, "Where to?") })
	a, err := agent.NewChat(agent.Chat{Name: "clerk", Tools: []*tool.Tool{travel}, Model: script.New(script.Call("travel", `{}`), func(r *agent.Request) (agent.Message, error) {
		return agent.Assistant("Off to " + r.Messages[len(r.Messages)-1].Text + "."), nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	return newProvider(t, inproc.Agent(agent.RunnerConfig{Agent: a}))
}

// become replaces one kind by another in a checkpoint.
func become(t *testing.T, s *memory.Checkpoints, old, now string) {
	t.Helper()
	key := store.Key{Account: "acme", Run: "run_1"}
	saved, err := s.Load(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	var delta store.Delta
	for name, data := range saved.Parts {
		delta.Put = append(delta.Put, store.Part{Name: name, Data: []byte(strings.ReplaceAll(string(data), old, now))})
	}
	if _, err := s.Save(t.Context(), key, saved.Version, delta); err != nil {
		t.Fatal(err)
	}
}

// An answer that node code rejects, together with a retryable error, is no reason to deliver the
// others again: they are applied.
func TestExecute_AnAnswerThatCodeRefusesDoesNotHaveTheOthersDeliveredTwice(t *testing.T) {
	type travel struct{ To, Many, Done string }
	g := graph.New[travel]("trip")
	g.Node("to", func(ctx context.Context, s travel) (_ travel, err error) {
		s.To, err = whereTo.Ask(ctx, "Where to?")
		return s, err
	})
	g.Node("many", func(ctx context.Context, s travel) (travel, error) {
		if may, _, _ := fermata.GetResumeContext[int](ctx); may {
			return s, nil
		}
		return s, fermata.Interrupt(ctx, "How many?")
	})
	answered := false
	g.Node("later", func(ctx context.Context, s travel) (travel, error) {
		if _, err := whereTo.Ask(ctx, "Where else?"); err != nil {
			return s, err
		}
		if !answered {
			answered = true
			return s, &fermata.RetryError{After: time.Nanosecond, Err: errors.New("not now")}
		}
		return s, nil
	})
	for _, node := range []string{"to", "many", "later"} {
		g.Edge(graph.Start, node)
		g.Edge(node, graph.End)
	}
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	p := newProvider(t, inproc.Flow(flow, inproc.FlowConfig[travel]{}))
	run := provider.Execution{Run: provider.Run{Account: "acme", ID: "run_1", Graph: "trip", State: memory.New()}, Input: json.RawMessage(`{}`), Owner: noOwner{}}
	for _, q := range asked(t, p, run) {
		run.Answers = append(run.Answers, provider.Answer{InterruptID: q.ID, Data: json.RawMessage(`"Paris"`)})
	}
	result, err := p.Execute(t.Context(), run)
	if _, later := errors.AsType[*fermata.RetryError](err); !later {
		t.Fatalf("%#v, %v", result, err)
	}
	if again := asked(t, p, run); len(again) != 1 || string(again[0].Data) != `"How many?"` {
		t.Errorf("%+v is asked again", again)
	}
}
