package executor_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// slowly is a store under load, which gives up with whoever waits for it.
func slowly(ctx context.Context) error {
	select {
	case <-time.After(5 * time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A process that is asked to end gives what it works on to another one at once, and not when its lease is over. Whoever waits for it there hears that it is
// under way; they were kept waiting until their connection was cut.
func TestStop_HandsOverWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := memory.NewStore(nil)
		slow, w := &world{hold: make(chan struct{})}, new(world)
		leaving := newExecutor(t, runs, slow, func(c *executor.Config) { c.Lease = time.Hour })
		staying := newExecutor(t, runs, w, func(c *executor.Config) { c.Poll = 3 * time.Second }) // not when the other one ends
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
		synctest.Wait() // it publishes, and that takes for ever
		patience, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := leaving.Stop(patience); err != nil {
			t.Fatal(err)
		}
		if pending, ok := errors.AsType[*executor.PendingError](<-waited); !ok || pending.StateKey != "demo-1" || time.Since(begin) > 10*time.Second {
			t.Errorf("who waited heard %v after %v", pending, time.Since(begin))
		}
		completed(t, mustRun(t, staying, request))
		if took := time.Since(begin); w.published.Load() != 1 || slow.published.Load() != 0 || took > 15*time.Second {
			t.Errorf("published %d times there and %d here, after %v", w.published.Load(), slow.published.Load(), took)
		}
		if _, err := leaving.Run(t.Context(), answer("demo-1", "1", "approve")); err != executor.ErrClosed {
			t.Errorf("after its end: %v", err)
		}
	})
}

// Who is asked to end while something is being written waits for that, as for the rest of what it writes last.
func TestDraft_I17_AStopDoesNotTearAWrite(t *testing.T) {
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
			t.Fatal("it is done")
		}
		time.Sleep(time.Second) // what it saved is being written
		impatient, cancel := context.WithCancel(t.Context())
		cancel()
		if err := e.Stop(impatient); err != nil {
			t.Fatal(err)
		}
		if run := newest(t, s); run.Status != store.StatusReady {
			t.Errorf("the run is %s", run.Status)
		}
		if steps := stepsOf(t, s, newest(t, s)); !slices.Equal(steps, []string{"a"}) {
			t.Errorf("handed over is %q", steps)
		}
	})
}

// A process that is stopped between a decision and its execution does not sit on the run until the lease is over.
func TestDraft_I17_WhoIsStoppedWhileItDecidesGivesTheRunBack(t *testing.T) {
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
			t.Fatal("it is done")
		}
		if run := newest(t, s); run.Status != store.StatusReady {
			t.Errorf("the run is %s", run.Status)
		}
	})
}

// hangsUp is a store to which a caller is gone as soon as it is asked to decide.
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

// A decision that is under way does not end with whoever made it: the run that it takes would be nobody's until its lease is over.
func TestDraft_I17_WhoHangsUpLeavesNoRunBehind(t *testing.T) {
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
			t.Errorf("it is %s, dropped %d times, %v", run.Status, d.dropped.Load(), err)
		}
	})
}
