package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

type note struct {
	Text string `json:"text"`
}

// counting is a graph that completes at once and counts its executions.
func counting(t *testing.T, ran *atomic.Int64) provider.Provider {
	return single(t, "count", inproc.FlowConfig[note]{}, func(_ context.Context, n note) (note, error) {
		ran.Add(1)
		return n, nil
	})
}

func countStart(text string) executor.RunRequest {
	return executor.RunRequest{Account: "acme", StateKey: "count-1", Graph: "inproc:count", Input: json.RawMessage(`{"text":"` + text + `"}`)}
}

func TestStart_RepeatedStartReturnsTheSameRunAfterItsEnd(t *testing.T) {
	var ran atomic.Int64
	e := executorOf(t, memory.NewStore(nil), counting(t, &ran), nil)
	first := completed(t, mustRun(t, e, countStart("a")))
	if again := completed(t, mustRun(t, e, countStart("a"))); again.Run != first.Run || ran.Load() != 1 {
		t.Errorf("the same start made %s after %s, executed %d times", again.Run, first.Run, ran.Load())
	}
	if other := completed(t, mustRun(t, e, countStart("b"))); other.Run == first.Run || ran.Load() != 2 {
		t.Errorf("another start made %s, %d executions", other.Run, ran.Load())
	}
	anew := countStart("b")
	anew.StartID = "once more"
	if third := completed(t, mustRun(t, e, anew)); third.Run == first.Run || ran.Load() != 3 {
		t.Errorf("a start with its own id made %s, %d executions", third.Run, ran.Load())
	}
}

func TestStart_ConcurrentIdenticalStartsAreOneRun(t *testing.T) {
	for range 50 {
		var ran atomic.Int64
		runs := memory.NewStore(nil)
		executors := []*executor.Executor{executorOf(t, runs, counting(t, &ran), nil), executorOf(t, runs, counting(t, &ran), nil)}
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				if _, err := executors[i%2].Run(t.Context(), countStart("a")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if ran.Load() != 1 {
			t.Fatalf("executed %d times", ran.Load())
		}
	}
}

func TestStart_SupersedesOnlyARunWithAnotherInput(t *testing.T) {
	runs := memory.NewStore(nil)
	e := newExecutor(t, runs, new(world), nil)
	old := start(t, e, "demo-1")
	request := executor.RunRequest{Account: "acme", StateKey: "demo-1", Graph: "inproc:content-review", Input: json.RawMessage(`{"topic":"coffee"}`), Supersede: true}
	next := waits(t, mustRun(t, e, request))
	if next.Run == old.Run {
		t.Fatal("the start returned the old run")
	}
	if again := waits(t, mustRun(t, e, request)); again.Run != next.Run {
		t.Errorf("the same start superseded its own run: %s after %s", again.Run, next.Run)
	}
	// An approval of the old run, from an inbox that was not reloaded, must not apply to the new
	// run.
	late := executor.RunRequest{Account: "acme", StateKey: "demo-1", ResumeID: "late", Actor: "ann", Targets: map[string]executor.Answer{
		old.Interrupts[0].ID: {Value: json.RawMessage(`{"action":"approve"}`)},
	}}
	_, err := e.Run(t.Context(), late)
	if refused, ok := errors.AsType[*executor.RefusedError](err); !ok || refused.Result != store.ResultWithdrawn {
		t.Errorf("a late answer: %v", err)
	}
	if got := waits(t, mustRun(t, e, request)); got.Interrupts[0].ID != next.Interrupts[0].ID {
		t.Errorf("the late answer changed the new run: %+v", got)
	}
}

func TestCancel_EndsARunForWaitingCallers(t *testing.T) {
	runs, w := memory.NewStore(nil), &world{hold: make(chan struct{})}
	e := newExecutor(t, runs, w, nil)
	start(t, e, "demo-1")
	outcome := make(chan fermata.Outcome, 1)
	go func() {
		o, err := e.Run(context.Background(), answer("demo-1", "1", "approve"))
		if err != nil {
			t.Error(err)
		}
		outcome <- o
	}()
	for w.entered.Load() == 0 { // until the node runs
		runtime.Gosched()
	}
	if err := e.Cancel(t.Context(), "acme", "demo-1", by("ann")); err != nil {
		t.Fatal(err)
	}
	nobodyOwns(t, runs, "demo-1")
	close(w.hold)
	failedWith(t, <-outcome, "cancelled")
	if run, err := runs.Get(t.Context(), "acme", "demo-1"); err != nil || run.Status != store.StatusCancelled {
		t.Errorf("the run is %s, %v", run.Status, err)
	}
	if err := e.Cancel(t.Context(), "acme", "demo-1", by("ann")); !errors.Is(err, executor.ErrRunEnded) {
		t.Errorf("cancel again: %v", err)
	}
	if err := e.Cancel(t.Context(), "other", "demo-1", by("ann")); !errors.Is(err, executor.ErrRunNotFound) {
		t.Errorf("cancel from another account: %v", err)
	}
}

// nobodyOwns checks that the run has no lease.
func nobodyOwns(t *testing.T, s store.Store, key string) {
	t.Helper()
	run, err := s.Get(t.Context(), "acme", key)
	if err != nil {
		t.Fatal(err)
	}
	for fence := range run.Fence + 1 {
		if err := s.Renew(t.Context(), store.Lease{Account: "acme", Run: run.ID, Fence: fence}, 1); !errors.Is(err, store.ErrFenced) {
			t.Errorf("fence %d: %v", fence, err)
		}
	}
}

// Another start under the same state key was a moment earlier, and its run has ended by now. Its
// outcome is not the result of this start.
func TestStart_OutcomeOfAFasterStartIsNotReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore(nil)
		held := bar(s, "Create")
		p := single(t, "echo", inproc.FlowConfig[note]{Content: func(n note) string { return n.Text }}, func(_ context.Context, n note) (note, error) { return n, nil })
		slow, quick := executorOf(t, held, p, nil), executorOf(t, s, p, nil)
		start := func(text string) executor.RunRequest {
			return executor.RunRequest{Account: "acme", StateKey: "k", Graph: "inproc:echo", Input: json.RawMessage(`{"text":"` + text + `"}`)}
		}
		var all sync.WaitGroup
		var outcome fermata.Outcome
		all.Go(func() {
			var err error
			if outcome, err = slow.Run(t.Context(), start("mine")); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		completed(t, mustRun(t, quick, start("theirs")))
		close(held.open)
		all.Wait()
		if got := completed(t, outcome); got.Content != "mine" {
			t.Errorf("the start returned %q", got.Content)
		}
	})
}

// The run that had the state key has ended, and is deleted while the next one is about to start.
// Then the key is free.
func TestStart_PreviousRunIsDeletedMeanwhile(t *testing.T) {
	var ran atomic.Int64
	s := memory.NewStore(nil)
	p := counting(t, &ran)
	first := completed(t, mustRun(t, executorOf(t, s, p, nil), countStart("a")))
	e := executorOf(t, &intruder{Store: s, got: sync.OnceFunc(func() {
		if err := s.DeleteRun(t.Context(), "acme", first.Run, store.Writes{}); err != nil {
			t.Error(err)
		}
	})}, p, nil)
	if second := completed(t, mustRun(t, e, countStart("b"))); string(second.Output) != `{"text":"b"}` || ran.Load() != 2 {
		t.Errorf("output %s, %d executions", second.Output, ran.Load())
	}
}

// A start is repeated, and before it returns another run takes the state key. The start returns the
// outcome of its own run.
func TestStart_RepeatedStartReturnsItsOwnRunAfterTheStateKeyMoved(t *testing.T) {
	var ran atomic.Int64
	s := memory.NewStore(nil)
	p := counting(t, &ran)
	other := executorOf(t, s, p, nil)
	first := completed(t, mustRun(t, other, countStart("a")))
	e := executorOf(t, &intruder{Store: s, got: sync.OnceFunc(func() { completed(t, mustRun(t, other, countStart("b"))) })}, p, nil)
	if again := completed(t, mustRun(t, e, countStart("a"))); again.Run != first.Run || string(again.Output) != `{"text":"a"}` {
		t.Errorf("the start returned %+v", again)
	}
}

// Two identical starts that supersede a run end one run, and create one.
func TestStart_IdenticalSupersedingStartsMakeOneRun(t *testing.T) {
	s := memory.NewStore(nil)
	p := single(t, "ask", inproc.FlowConfig[note]{}, func(ctx context.Context, n note) (note, error) {
		_, err := sealKind.Ask(ctx, n.Text)
		return n, err
	})
	start := func(text string) executor.RunRequest {
		return executor.RunRequest{Account: "acme", StateKey: "k", Graph: "inproc:ask", Input: json.RawMessage(`{"text":"` + text + `"}`), Supersede: true}
	}
	twin := executorOf(t, s, p, nil)
	waits(t, mustRun(t, twin, start("old")))
	var first fermata.NeedsInput
	e := executorOf(t, &intruder{Store: s, got: sync.OnceFunc(func() { first = waits(t, mustRun(t, twin, start("new"))) })}, p, nil)
	if second := waits(t, mustRun(t, e, start("new"))); second.Run != first.Run {
		t.Errorf("the same start made %s and %s", first.Run, second.Run)
	}
}
