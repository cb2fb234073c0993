package inproc_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/tool"
)

// office is an agent that books tickets after approval.
type office struct {
	booked  atomic.Int64
	entered chan struct{} // receives each booking, if not nil
	hold    chan struct{} // each booking waits for it, ignoring its context
}

type trip struct {
	To string `json:"to"`
}

func (o *office) book(_ context.Context, t trip) (string, error) {
	o.booked.Add(1)
	if o.hold != nil {
		o.entered <- struct{}{}
		<-o.hold
	}
	return "booked: " + t.To, nil
}

func (o *office) executor(t *testing.T, s store.Store, options ...tool.Option) *executor.Executor {
	t.Helper()
	clerk, err := agent.NewChat(agent.Chat{
		Name: "clerk", Model: script.New(script.Call("book", `{"to":"Paris"}`), script.Say("Have a nice trip!")),
		Tools: []*tool.Tool{tool.Approve(tool.New("book", "Books a ticket.", o.book, options...))},
	})
	if err != nil {
		t.Fatal(err)
	}
	return deployed(t, s, inproc.Agent(agent.RunnerConfig{Agent: clerk}), func(c *executor.Config) { c.Lease = time.Hour })
}

func start(t *testing.T, e *executor.Executor, input string) fermata.Outcome {
	t.Helper()
	outcome, err := e.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "trip-1", Graph: "inproc:clerk", Input: json.RawMessage(input)})
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// decision decides one of the open interrupts, the first or the last.
func decision(t *testing.T, e *executor.Executor, which func([]executor.RequestView) executor.RequestView, id, value string) executor.RunRequest {
	t.Helper()
	view, err := e.GetRun(t.Context(), "acme", "trip-1")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]executor.Answer{which(view.Interrupts).ID: {Value: json.RawMessage(value)}}
	return executor.RunRequest{Account: "acme", StateKey: "trip-1", ResumeID: id, Actor: "ann", Targets: targets}
}

func first(asked []executor.RequestView) executor.RequestView { return asked[0] }
func last(asked []executor.RequestView) executor.RequestView  { return asked[len(asked)-1] }

// asks returns a run that waits for one answer.
func asks(t *testing.T, outcome fermata.Outcome, kind string) fermata.OpenInterrupt {
	t.Helper()
	waiting, ok := outcome.(fermata.NeedsInput)
	if !ok || len(waiting.Interrupts) != 1 || waiting.Interrupts[0].Kind != kind {
		t.Fatalf("it does not ask: %#v", outcome)
	}
	return waiting.Interrupts[0]
}

func TestExecutor_AHeldToolIsCalledWhenAPersonSaysSo(t *testing.T) {
	o := new(office)
	e := o.executor(t, newStore(t))
	q := asks(t, start(t, e, `{"query":"To Paris, please."}`), fermata.Approval.Name())
	var asked fermata.ApprovalRequest
	if err := json.Unmarshal(q.Data, &asked); err != nil || asked.Action != "book" || string(asked.Args) != `{"to":"Paris"}` || o.booked.Load() != 0 {
		t.Fatalf("%+v, %v, booked %d times", asked, err, o.booked.Load())
	}
	_, err := e.Run(t.Context(), decision(t, e, first, "1", `{"verb":"approve","args":{"to":"Rome"}}`))
	if _, unfit := errors.AsType[*fermata.AnswerError](err); !unfit || o.booked.Load() != 0 {
		t.Errorf("fixed arguments: %v, booked %d times", err, o.booked.Load())
	}
	outcome, err := e.Run(t.Context(), decision(t, e, last, "2", `{"verb":"approve"}`))
	if done, ok := outcome.(fermata.Completed); err != nil || !ok || done.Content != "Have a nice trip!" || done.Usage == nil || o.booked.Load() != 1 {
		t.Errorf("%#v, %v, booked %d times", outcome, err, o.booked.Load())
	}
}

func TestExecutor_ARefusalReachesTheModel(t *testing.T) {
	o := new(office)
	e := o.executor(t, newStore(t))
	start(t, e, `{"query":"To Paris, please."}`)
	outcome, err := e.Run(t.Context(), decision(t, e, first, "1", `{"verb":"reject","reason":"too far"}`))
	if done, ok := outcome.(fermata.Completed); err != nil || !ok || done.Content != "Have a nice trip!" || o.booked.Load() != 0 {
		t.Errorf("%#v, %v, booked %d times", outcome, err, o.booked.Load())
	}
}

func TestExecutor_InvalidConversationFailsTheRun(t *testing.T) {
	for _, input := range []string{`{}`, `{"query":7}`, `{"question":"To Paris?"}`, `"To Paris?"`} {
		o := new(office)
		outcome := start(t, o.executor(t, newStore(t)), input)
		if failed, ok := outcome.(fermata.Failed); !ok || failed.Code != "invalid_input" {
			t.Errorf("%s: %#v", input, outcome)
		}
	}
}

// The error says what is wrong with an input, but contains nothing of the input.
func TestExecutor_InvalidInputErrorNamesTheField(t *testing.T) {
	for input, want := range map[string]string{
		`{"query":"CANARY","CANARY":1}`: `it has an unknown field; expected is {"query": "…"}`,
		`{"query":4711}`:                "query must be of type string",
		`"CANARY"`:                      `the input does not match the graph; expected is {"query": "…"}`,
		`{}`:                            `the input does not match the graph; expected is {"query": "…"}`,
		`{"Query":"CANARY"}`:            `it has an unknown field; expected is {"query": "…"}`,
	} {
		outcome := start(t, new(office).executor(t, newStore(t)), input)
		failed, ok := outcome.(fermata.Failed)
		if !ok || !strings.HasSuffix(failed.Message, want) || strings.Contains(failed.Message, "CANARY") || strings.Contains(failed.Message, "4711") {
			t.Errorf("%s: %#v", input, outcome)
		}
	}
}

// lost is an agent in a stalled process: it is booking, and its lease has expired. wake lets it
// continue to its end.
func lost(t *testing.T, s store.Store, options ...tool.Option) (o *office, wake func()) {
	t.Helper()
	o = &office{entered: make(chan struct{}), hold: make(chan struct{})}
	release := sync.OnceFunc(func() { close(o.hold) })
	e := o.executor(t, s, options...)
	t.Cleanup(release) // before the executor is stopped, which would wait forever
	start(t, e, `{"query":"To Paris, please."}`)
	yes := decision(t, e, first, "1", `{"verb":"approve"}`)
	go func() { _, _ = e.Run(context.Background(), yes) }()
	<-o.entered
	run, err := s.Get(t.Context(), "acme", "trip-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Renew(t.Context(), store.Lease{Account: "acme", Run: run.ID, Fence: run.Fence}, -time.Second); err != nil {
		t.Fatal(err)
	}
	return o, func() {
		release()
		if err := e.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A call that may have happened is not repeated: a person is asked. The late process can still
// record the end, and changes nothing else.
func TestI16_ASecondExecutorTakesAnAgentOverAndAsksAboutItsCall(t *testing.T) {
	s := newStore(t)
	dead, wake := lost(t, s)
	o := new(office)
	second := o.executor(t, s)
	second.StartWorkers()
	outcome, err := second.Run(t.Context(), decision(t, second, first, "1", `{"verb":"approve"}`))
	if err != nil {
		t.Fatal(err)
	}
	asks(t, outcome, fermata.EffectInDoubt.Name())
	wake()
	outcome, err = second.Run(t.Context(), decision(t, second, last, "2", `{"happened":true,"receipt":{"text":"booked: Paris"}}`))
	if done, ok := outcome.(fermata.Completed); err != nil || !ok || done.Content != "Have a nice trip!" || o.booked.Load() != 0 || dead.booked.Load() != 1 {
		t.Errorf("%#v, %v, booked %d and %d times", outcome, err, dead.booked.Load(), o.booked.Load())
	}
}

func TestI16_TakeoverByASecondExecutorRepeatsOnlyRepeatableCalls(t *testing.T) {
	s := newStore(t)
	_, wake := lost(t, s, tool.Repeatable())
	o := new(office)
	second := o.executor(t, s, tool.Repeatable())
	second.StartWorkers()
	outcome, err := second.Run(t.Context(), decision(t, second, first, "1", `{"verb":"approve"}`))
	if done, ok := outcome.(fermata.Completed); err != nil || !ok || done.Content != "Have a nice trip!" || o.booked.Load() != 1 {
		t.Errorf("%#v, %v, booked %d times", outcome, err, o.booked.Load())
	}
	wake()
	run, err := s.Get(t.Context(), "acme", "trip-1")
	if err != nil || run.Status != store.StatusCompleted {
		t.Errorf("the late one made it %s, %v", run.Status, err)
	}
}
