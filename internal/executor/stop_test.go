package executor_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
)

// slowly simulates a store under load that observes the context of its caller.
func slowly(ctx context.Context) error {
	select {
	case <-time.After(5 * time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A process that is stopped releases its runs to another process at once, not when the lease ends.
// Callers that wait get a PendingError. Regression: they waited until their connection was closed.
func TestStop_ReleasesExecutingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := memory.NewStore(nil)
		slow, w := &world{hold: make(chan struct{})}, new(world)
		leaving := newExecutor(t, runs, slow, func(c *executor.Config) { c.Lease = time.Hour })
		// not at the moment when the other one stops
		staying := newExecutor(t, runs, w, func(c *executor.Config) { c.Poll = 3 * time.Second })
		staying.StartWorkers()
		start(t, leaving, "demo-1")
		waited := make(chan error)
		begin := time.Now()
		request := answer("demo-1", "1", "approve")
		request.Wait = time.Hour
		go func() {
			_, err := leaving.Run(context.Background(), request)
			waited <- err
		}()
		synctest.Wait() // the node publishes, which does not return
		patience, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := leaving.Stop(patience); err != nil {
			t.Fatal(err)
		}
		if pending, ok := errors.AsType[*executor.PendingError](<-waited); !ok || pending.StateKey != "demo-1" || time.Since(begin) > 10*time.Second {
			t.Errorf("the waiting caller got %v after %v", pending, time.Since(begin))
		}
		completed(t, mustRun(t, staying, request))
		if took := time.Since(begin); w.published.Load() != 1 || slow.published.Load() != 0 || took > 15*time.Second {
			t.Errorf("published %d times there and %d here, after %v", w.published.Load(), slow.published.Load(), took)
		}
		if _, err := leaving.Run(t.Context(), answer("demo-1", "1", "approve")); err != executor.ErrClosed {
			t.Errorf("Run after Stop: %v", err)
		}
	})
}

// A stop during a write waits for it, like for the last writes of an execution.
func TestWriteBehind_I17_StopDoesNotInterruptAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &intruder{Store: memory.NewStore(nil), save: slowly}
		p := &scripted{}
		e := executorOf(t, s, p, func(c *executor.Config) { c.Lease = time.Hour })
		p.execute = func(n int64, x provider.Execution) (provider.Result, error) {
			if n > 1 {
				return done, nil
			}
			err := savesSteps(t, x, "a")
			<-e.Done()
			return provider.Result{}, errors.Join(err, context.Canceled)
		}
		request := scriptedStart()
		request.Wait = -1
		if _, err := e.Run(t.Context(), request); err == nil {
			t.Fatal("the run is complete")
		}
		time.Sleep(time.Second) // the saved steps are being written
		impatient, cancel := context.WithCancel(t.Context())
		cancel()
		if err := e.Stop(impatient); err != nil {
			t.Fatal(err)
		}
		if run := newest(t, s); run.Status != store.StatusReady {
			t.Errorf("the run is %s", run.Status)
		}
		if steps := stepsOf(t, s, newest(t, s)); !slices.Equal(steps, []string{"a"}) {
			t.Errorf("released with the steps %q", steps)
		}
	})
}

// A process that is stopped between a decision and its execution does not keep the run until the
// lease ends.
func TestWriteBehind_I17_StopDuringADecisionReleasesTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &intruder{Store: memory.NewStore(nil)}
		p := &scripted{execute: func(int64, provider.Execution) (provider.Result, error) {
			asks := provider.Interrupt{ID: "q", Envelope: fermata.Envelope{Kind: "any"}}
			return provider.Result{Outcome: provider.Waiting{Interrupts: []provider.Interrupt{asks}}}, nil
		}}
		leaving := executorOf(t, s, p, func(c *executor.Config) { c.Lease = time.Hour })
		waits(t, mustRun(t, leaving, scriptedStart()))
		s.decided = func() {
			if err := leaving.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
		request := executor.RunRequest{Account: "acme", StateKey: "x-1", ResumeID: "1", Actor: "ann", Value: []byte(`1`), Wait: -1}
		if _, err := leaving.Run(t.Context(), request); err == nil {
			t.Fatal("the run is complete")
		}
		if run := newest(t, s); run.Status != store.StatusReady {
			t.Errorf("the run is %s", run.Status)
		}
	})
}

// hangsUp is a store whose caller cancels during Decide.
type hangsUp struct {
	store.Store
	gone context.CancelFunc
}

func (h hangsUp) Decide(ctx context.Context, d store.Decision) (store.DecisionReceipt, error) {
	h.gone()
	if err := ctx.Err(); err != nil {
		return store.DecisionReceipt{}, err
	}
	return h.Store.Decide(ctx, d)
}

// A decision in progress does not end with its caller. Otherwise the claimed run would have no
// worker until its lease ends.
func TestWriteBehind_I17_CancelledCallerLeavesNoClaimedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, d := memory.NewStore(nil), new(dropper)
		ctx, gone := context.WithCancel(t.Context())
		e := d.executor(t, hangsUp{runs, gone}, func(c *executor.Config) { c.Lease = time.Hour })
		startDrop(t, e)
		_, err := e.Run(ctx, addressed(t, e, decision("1", "approve")))
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, executor.ErrPending) {
			t.Error(err)
		}
		synctest.Wait()
		run, err := runs.Get(t.Context(), "acme", "drop-1")
		if err != nil || run.Status != store.StatusCompleted || d.dropped.Load() != 1 {
			t.Errorf("the run is %s, dropped %d times, %v", run.Status, d.dropped.Load(), err)
		}
	})
}
