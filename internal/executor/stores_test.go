package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/simtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/postgres"
	"github.com/fermata-go/fermata/internal/store/sqlite"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// onEachStore runs a test on every store. Each call of open is a replica: another process, as far
// as the store can tell. With the race detector it is only the store in memory: the goroutines of
// the executor are the same, and the databases take most of the time.
func onEachStore(t *testing.T, test func(t *testing.T, open func() store.Store)) {
	t.Run("memory", func(t *testing.T) {
		s := memory.NewStore(nil)
		test(t, func() store.Store { return s })
	})
	if simtest.RaceEnabled {
		return
	}
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "fermata.db")
		test(t, func() store.Store {
			s, err := sqlite.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		})
	})
	t.Run("postgres", func(t *testing.T) {
		database := pgtest.Prepared(t, func(empty string) error {
			s, err := postgres.Open(t.Context(), empty, postgres.Config{})
			if err != nil {
				return err
			}
			return s.Close()
		})
		test(t, func() store.Store {
			s, err := postgres.Open(t.Context(), database, postgres.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		})
	})
}

func TestStores_TheSeedsAcceptanceChecks(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		w := new(world)
		p := reviewProvider(t, w)
		one, two := executorOf(t, open(), p, nil), executorOf(t, open(), p, nil)
		first := start(t, one, "demo-1")
		second := waits(t, mustRun(t, two, answer("demo-1", "1", "revise"))) // another replica
		if second.Interrupts[0].ID == first.Interrupts[0].ID {
			t.Fatal("it asks the same again")
		}
		done := completed(t, mustRun(t, one, answer("demo-1", "2", "approve")))
		if done.Content != "about tea, shorter" || w.published.Load() != 1 {
			t.Errorf("it came to %+v, published %d times", done, w.published.Load())
		}
		if again := completed(t, mustRun(t, two, answer("demo-1", "2", "approve"))); again.Content != done.Content || w.published.Load() != 1 {
			t.Errorf("the same resume again: %+v, published %d times", again, w.published.Load())
		}
	})
}

// Replicas share the work: many runs, decided at random replicas, twice each, are all done, and
// every effect happens once.
func TestStores_ReplicasShareTheWork(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		d := new(dropper)
		var replicas []*executor.Executor
		for range 3 {
			e := d.executor(t, open(), nil)
			e.StartWorkers()
			replicas = append(replicas, e)
		}
		const runs = 20
		var all sync.WaitGroup
		for i := range runs {
			all.Go(func() {
				key := fmt.Sprint("drop-", i)
				outcome, err := replicas[i%3].Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: key, Graph: "inproc:drop", Input: json.RawMessage(`{"table":"t"}`)})
				if _, ok := outcome.(fermata.NeedsInput); err != nil || !ok {
					t.Errorf("%s: %#v, %v", key, outcome, err)
					return
				}
				var clicks sync.WaitGroup
				for click := range 2 {
					clicks.Go(func() {
						request := decision(key, "approve")
						request.StateKey, request.Wait = key, time.Minute
						outcome, err := replicas[(i+click)%3].Run(t.Context(), addressed(t, replicas[i%3], request))
						if _, ok := outcome.(fermata.Completed); err != nil || !ok {
							t.Errorf("%s: %#v, %v", key, outcome, err)
						}
					})
				}
				clicks.Wait()
			})
		}
		all.Wait()
		if d.dropped.Load() != runs {
			t.Errorf("%d effects of %d runs", d.dropped.Load(), runs)
		}
	})
}

// firstEvents are some of those that drop-1 has so far.
func firstEvents(t *testing.T, e *executor.Executor, count int) (first []store.Event) {
	t.Helper()
	for event, err := range e.FollowEvents(t.Context(), "acme", "drop-1", store.Event{}) {
		if err != nil {
			t.Fatal(err)
		}
		if first = append(first, event); len(first) == count {
			break
		}
	}
	return first
}

// Events are counted from one in each run, so a number alone is not a cursor: the state
// key may be that of a newer run by then.
func TestFollowEvents_CursorOfEarlierRunReturnsAllOfTheNewRun(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		e := new(dropper).executor(t, open(), nil)
		startDrop(t, e)
		before := firstEvents(t, e, 2)[1]
		again := executor.RunRequest{Account: "acme", StateKey: "drop-1", Graph: "inproc:drop", Input: json.RawMessage(`{"table":"orders"}`), Supersede: true}
		waits(t, mustRun(t, e, again))
		for event, err := range e.FollowEvents(t.Context(), "acme", "drop-1", before) {
			if err != nil || event.Kind != store.EventCreated || event.Run == before.Run {
				t.Errorf("behind %+v comes %+v, %v", before, event, err)
			}
			break
		}
	})
}

// What became of a question is said also when its state key belongs to another run by then, and the
// same again. It was called unknown.
func TestDecide_RequestOfEarlierRunReturnsItsResult(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		e := new(dropper).executor(t, open(), nil)
		start := func(table string) fermata.NeedsInput {
			return waits(t, mustRun(t, e, executor.RunRequest{
				Account: "acme", StateKey: "drop-1", Graph: "inproc:drop", Input: json.RawMessage(`{"table":"` + table + `"}`), Supersede: true,
			}))
		}
		decided := start("users").Interrupts[0].ID
		late := word("bob", "drop-1", "early", decided, yes)
		mustRun(t, e, word("ann", "drop-1", "1", decided, yes))
		if _, err := e.Run(t.Context(), late); !isRefused(err, store.ResultAlreadyDecided, "ann") {
			t.Errorf("before: %v", err)
		}
		withdrawn := start("orders").Interrupts[0].ID
		asked := start("invoices").Interrupts[0].ID
		for range 2 {
			if _, err := e.Run(t.Context(), late); !isRefused(err, store.ResultAlreadyDecided, "ann") {
				t.Errorf("the same as before: %v", err)
			}
			if _, err := e.Run(t.Context(), word("bob", "drop-1", "2", decided, yes)); !isRefused(err, store.ResultAlreadyDecided, "ann") {
				t.Errorf("decided: %v", err)
			}
			if _, err := e.Run(t.Context(), word("bob", "drop-1", "3", withdrawn, yes)); !isRefused(err, store.ResultWithdrawn, "") {
				t.Errorf("withdrawn: %v", err)
			}
			if _, err := e.Run(t.Context(), word("bob", "drop-1", "4", "int_none", yes)); !isRefused(err, store.ResultNotFound, "") {
				t.Errorf("unknown: %v", err)
			}
		}
		completed(t, mustRun(t, e, word("bob", "drop-1", "5", asked, yes)))
	})
}

func isRefused(err error, why store.DecisionResult, by string) bool {
	refused, ok := errors.AsType[*executor.RefusedError](err)
	return ok && refused.Result == why && refused.By == by
}

// Subscribers at one replica receive the events of another.
func TestStores_EventsReachListenersOnAnyReplica(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		d := new(dropper)
		here, there := d.executor(t, open(), nil), d.executor(t, open(), nil)
		startDrop(t, here)
		asked := firstEvents(t, here, 2)[1]
		var kinds []store.EventKind
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var listening sync.WaitGroup
		listening.Go(func() {
			for event, err := range there.FollowEvents(ctx, "acme", "drop-1", asked) {
				if err != nil {
					t.Error(err)
				}
				kinds = append(kinds, event.Kind)
			}
		})
		completed(t, mustRun(t, here, addressed(t, here, decision("1", "approve"))))
		listening.Wait()
		if fmt.Sprint(kinds) != "[waiting decided effect_begun effect_ended completed]" {
			t.Errorf("it heard %v", kinds)
		}
	})
}

// A timer acts once, on one of the replicas, and never after the decision.
func TestI10_OfManyReplicasOneLetsAQuestionExpire(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		d := new(dropper)
		change := func(c *executor.Config) { c.RequestTimeout = 300 * time.Millisecond }
		var replicas []*executor.Executor
		s := open()
		for range 3 {
			e := d.executor(t, open(), change)
			e.StartWorkers()
			replicas = append(replicas, e)
		}
		var approved atomic.Int64
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				key := fmt.Sprint("drop-", i)
				if _, err := replicas[i%3].Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: key, Graph: "inproc:drop", Input: json.RawMessage(`{"table":"t"}`)}); err != nil {
					t.Error(err)
					return
				}
				// some are in time, some are not
				time.Sleep(time.Duration(i) * 50 * time.Millisecond)
				request := decision(key, "approve")
				request.StateKey, request.Wait = key, time.Minute
				_, err := replicas[(i+1)%3].Run(t.Context(), addressed(t, replicas[i%3], request))
				if _, refused := errors.AsType[*executor.RefusedError](err); refused {
					return
				}
				if err != nil {
					t.Error(err)
				}
				approved.Add(1)
			})
		}
		all.Wait()
		if approved.Load() != d.dropped.Load() {
			t.Errorf("%d approved, %d done", approved.Load(), d.dropped.Load())
		}
		for i := range 12 {
			settles(t, s, fmt.Sprint("drop-", i))
			expired := 0
			for _, event := range known(t, s, fmt.Sprint("drop-", i)).Events {
				if event.Kind == store.EventExpired || event.Kind == store.EventDecided {
					expired++
				}
			}
			if expired != 1 {
				t.Errorf("run %d was decided %d times", i, expired)
			}
		}
	})
}

// settles waits until a run is over.
func settles(t *testing.T, s store.Store, key string) {
	t.Helper()
	eventually(t, func() bool {
		run, err := s.Get(t.Context(), "acme", key)
		if err != nil {
			t.Fatal(err)
		}
		return !run.Status.Active()
	})
}
