package inproc_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/provider/providertest"
	"github.com/fermata-go/fermata/tool"
)

// deployed is an executor with one version of a program.
func deployed(t *testing.T, s store.Store, g inproc.Graph, change func(*executor.Config)) *executor.Executor {
	t.Helper()
	sealer, err := seal.New(seal.Key{1})
	if err != nil {
		t.Fatal(err)
	}
	config := executor.Config{Store: s, Providers: []provider.Provider{newProvider(t, g)}, Sealer: sealer, Poll: 5 * time.Millisecond, Wait: time.Minute}
	change(&config)
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

func nothing(context.Context) error { return nil }

// does is work that is done once.
func does[T any](result T) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := fermata.Do(ctx, "look", func(context.Context) (T, error) { return result, nil })
		return err
	}
}

// Regression: a program that lacked the waiting place was deployed for an hour, and every run that
// was answered in that hour failed, with its approval. The program fails, not the run: the run
// continues with its answer in a program that has the place.
func TestI2_AnAnswerThatMetAProgramWithoutItsPlaceIsNotLost(t *testing.T) {
	once := func(c *executor.Config) { c.MaxAttempts = 1 }
	var booked atomic.Int64
	book := tool.New("book", "Books a ticket.", func(context.Context, trip) (string, error) { booked.Add(1); return "booked", nil })
	clerk := func(t *testing.T, tools ...*tool.Tool) inproc.Graph {
		a, err := agent.NewChat(agent.Chat{Name: "clerk", Model: script.New(script.Call("book", `{"to":"Paris"}`), script.Say("Done.")), Tools: tools})
		if err != nil {
			t.Fatal(err)
		}
		return inproc.Agent(agent.RunnerConfig{Agent: a})
	}
	flow := func(t *testing.T, node string, prepare func(context.Context) error) inproc.Graph {
		g := graph.New[trip]("clerk")
		g.Node(node, func(ctx context.Context, in trip) (trip, error) {
			if err := prepare(ctx); err != nil {
				return in, err
			}
			yes, err := fermata.Approve(ctx, fermata.Action[trip]{Name: "book", Args: in})
			if err != nil {
				return in, err
			}
			_, err = fermata.Effect(ctx, yes, func(context.Context, trip, string) (string, error) { booked.Add(1); return "booked", nil })
			return in, err
		})
		g.Edge(graph.Start, node)
		g.Edge(node, graph.End)
		compiled, err := g.Compile()
		if err != nil {
			t.Fatal(err)
		}
		return inproc.Flow(compiled, inproc.FlowConfig[trip]{})
	}
	for name, test := range map[string]struct {
		input         string
		before, after func(t *testing.T) inproc.Graph
	}{
		"a tool is gone": {`{"query":"To Paris."}`,
			func(t *testing.T) inproc.Graph { return clerk(t, tool.Approve(book)) }, func(t *testing.T) inproc.Graph { return clerk(t) }},
		"a tool no longer asks": {`{"query":"To Paris."}`,
			func(t *testing.T) inproc.Graph { return clerk(t, tool.Approve(book)) }, func(t *testing.T) inproc.Graph { return clerk(t, book) }},
		"a node is gone": {`{"to":"Paris"}`,
			func(t *testing.T) inproc.Graph { return flow(t, "booking", nothing) }, func(t *testing.T) inproc.Graph { return flow(t, "reserving", nothing) }},
		"a saved result has another form": {`{"to":"Paris"}`,
			func(t *testing.T) inproc.Graph {
				return flow(t, "booking", does(struct{ Full bool }{true}))
			}, func(t *testing.T) inproc.Graph {
				return flow(t, "booking", does(struct{ Occupied bool }{true}))
			}},
	} {
		t.Run(name, func(t *testing.T) {
			booked.Store(0)
			s := newStore(t)
			old := deployed(t, s, test.before(t), once)
			asks(t, start(t, old, test.input), fermata.Approval.Name())
			yes := decision(t, old, first, "1", `{"verb":"approve"}`)

			other := deployed(t, s, test.after(t), once)
			impatient := yes
			impatient.Wait = 200 * time.Millisecond
			if outcome, err := other.Run(t.Context(), impatient); !errors.Is(err, executor.ErrPending) {
				t.Fatalf("the program without it: %#v, %v", outcome, err)
			}
			if err := other.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}

			old.StartWorkers()
			for event, err := range old.FollowEvents(t.Context(), "acme", "trip-1", store.Event{}) {
				// it was tried once; the default is 25 times
				if err == nil && event.Kind == store.EventParked {
					err = old.Retry(t.Context(), "acme", "trip-1", desk.From{Actor: desk.PersonActor("ops", "")})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			outcome, err := old.Run(t.Context(), yes)
			if _, ok := outcome.(fermata.Completed); err != nil || !ok || booked.Load() != 1 {
				t.Errorf("the program with it: %#v, %v, booked %d times", outcome, err, booked.Load())
			}
		})
	}
}

// The same for a run that a newer Fermata has saved: this one is an older replica that will be
// replaced soon.
func TestExecute_AFormatThatItDoesNotKnowIsNotTheRunsFailure(t *testing.T) {
	p, s := newProvider(t, reviewFlow(t, new(providertest.World))), memory.New()
	run := provider.Run{Account: "acme", ID: "run_1", Graph: "content-review", State: s}
	head := store.Part{Name: "run", Data: []byte(`{"format":99,"run":"run_1","graph":"content-review"}`)}
	if _, err := s.Save(t.Context(), store.Key{Account: "acme", Run: "run_1"}, 0, store.Delta{Put: []store.Part{head}}); err != nil {
		t.Fatal(err)
	}
	result, err := p.Execute(t.Context(), provider.Execution{Run: run, Input: json.RawMessage(`{}`), Owner: noOwner{}})
	if !errors.Is(err, graph.ErrFormat) || result.Outcome != nil {
		t.Errorf("%#v, %v", result, err)
	}
}

// noOwner is an owner that records nothing.
type noOwner struct{}

func (noOwner) SetRef(context.Context, string) error { return nil }
func (noOwner) Ledger() fermata.Ledger               { return nil }
