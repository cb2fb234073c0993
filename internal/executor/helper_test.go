package executor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/storetest"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

func testBox(t *testing.T) *seal.Sealer {
	t.Helper()
	return boxOf(t, 1)
}

// boxOf seals with the first of some keys.
func boxOf(t *testing.T, keys ...byte) *seal.Sealer {
	t.Helper()
	var all []seal.Key
	for _, k := range keys {
		all = append(all, seal.Key{k})
	}
	b, err := seal.New(all[0], all[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// providing offers a graph, under its own name.
func providing[S any](t *testing.T, g *graph.Graph[S]) provider.Provider {
	t.Helper()
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	p, err := inproc.New(inproc.Flow(flow, inproc.FlowConfig[S]{}))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// executorOf makes an executor with one provider, which looks for work often and is stopped after
// the test. Each status change that it writes without an audit line fails the test.
func executorOf(t *testing.T, s store.Store, p provider.Provider, change func(*executor.Config)) *executor.Executor {
	t.Helper()
	config := executor.Config{Store: s, Providers: []provider.Provider{p}, Sealer: testBox(t), Poll: 5 * time.Millisecond, Wait: time.Minute}
	if change != nil {
		change(&config)
	}
	config.Store = storetest.Audited(t, config.Store)
	e, err := executor.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// single is a graph of one node.
func single[S any](t *testing.T, name string, config inproc.FlowConfig[S], node graph.Func[S]) provider.Provider {
	t.Helper()
	g := graph.New[S](name)
	g.Node("only", node)
	g.Edge(graph.Start, "only")
	g.Edge("only", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	p, err := inproc.New(inproc.Flow(flow, config))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// began starts a run that must come to something.
func began(t *testing.T, e *executor.Executor, key, graphID, input string) fermata.Outcome {
	t.Helper()
	return mustRun(t, e, executor.RunRequest{Account: "acme", StateKey: key, Graph: graphID, Input: json.RawMessage(input)})
}

func mustRun(t *testing.T, e *executor.Executor, request executor.RunRequest) fermata.Outcome {
	t.Helper()
	outcome, err := e.Run(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

func completed(t *testing.T, outcome fermata.Outcome) fermata.Completed {
	t.Helper()
	done, ok := outcome.(fermata.Completed)
	if !ok {
		t.Fatalf("it is not completed: %#v", outcome)
	}
	return done
}

// failedWith checks how a run failed.
func failedWith(t *testing.T, outcome fermata.Outcome, code string) {
	t.Helper()
	if failed, ok := outcome.(fermata.Failed); !ok || failed.Code != code {
		t.Fatalf("it came to %#v, not to %s", outcome, code)
	}
}

// known is everything that the store knows of a run.
func known(t *testing.T, s store.Store, key string) store.History {
	t.Helper()
	run, err := s.Get(t.Context(), "acme", key)
	if err != nil {
		t.Fatal(err)
	}
	history, err := s.History(t.Context(), "acme", run.ID)
	if err != nil {
		t.Fatal(err)
	}
	return history
}

// addressed names the question that a decision is about: the one that is open, or else the last.
func addressed(t *testing.T, e *executor.Executor, request executor.RunRequest) executor.RunRequest {
	t.Helper()
	view, err := e.GetRun(t.Context(), request.Account, request.StateKey)
	if err != nil {
		t.Fatal(err)
	}
	var id string
	for _, i := range view.Interrupts {
		if id = i.ID; i.State == store.InterruptPending {
			break
		}
	}
	request.Targets, request.Value = map[string]executor.Answer{id: {Value: request.Value}}, nil
	return request
}

func loadRules(t *testing.T, text string) *policy.Set {
	t.Helper()
	set, err := policy.Load("policy.yaml", []byte(text), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// liveRules are rules that can be exchanged.
func liveRules(t *testing.T, text string) (*policy.LiveSet, func(string)) {
	t.Helper()
	live := policy.NewLiveSet(func(context.Context) (string, []byte, error) { return "policy", []byte(text), nil }, policy.Options{})
	set := func(now string) {
		text = now
		if _, err := live.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	set(text)
	return live, set
}

// submission is an answer to a question.
func word(who, key, resume, interrupt, value string) executor.RunRequest {
	return executor.RunRequest{Account: "acme", StateKey: key, ResumeID: resume, Actor: who, Targets: map[string]executor.Answer{interrupt: {Value: json.RawMessage(value)}}}
}

// by is somebody who is known well enough to decide.
func by(who string) desk.From {
	return desk.From{Actor: desk.PersonActor(who, requirement.AuthSSO), Via: "test"}
}

// acts does what decides nothing with a request.
func acts(t *testing.T, e *executor.Executor, id string, all ...desk.Command) {
	t.Helper()
	for _, act := range all {
		if _, err := e.Act(t.Context(), "acme", id, act); err != nil {
			t.Fatalf("%T: %v", act, err)
		}
	}
}

// recorded are the bodies of a type in the log of acme, in order.
func recorded[B audit.Body](t *testing.T, s store.Store) (bodies []B) {
	t.Helper()
	for r, err := range audit.ParseRecords(audit.NewStoreLog(s).Records(t.Context(), "acme", 0, 0)) {
		if err != nil {
			t.Fatal(err)
		}
		if body, ok := r.Body.(B); ok {
			bodies = append(bodies, body)
		}
	}
	return bodies
}

// syncBuffer is a log that several write to.
type syncBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

func (b *syncBuffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all.Reset()
}
