package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
)

// written is a store that records the writes of runs, in order.
type written struct {
	store.Store
	mu    sync.Mutex
	calls []string
	last  *store.CheckpointSave // part of EndExecution
	fail  error                 // error of the next save, which takes effect
}

func (w *written) note(call string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, call)
}

// since returns the recorded writes and clears them.
func (w *written) since() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.calls = nil }()
	return w.calls
}

func (w *written) EndExecution(ctx context.Context, lease store.Lease, rest store.ExecutionEnd) (store.Status, error) {
	w.note("rest")
	if rest.Checkpoint != nil {
		w.note("with state")
		w.last = rest.Checkpoint
	}
	return w.Store.EndExecution(ctx, lease, rest)
}

func (w *written) Decide(ctx context.Context, d store.Decision) (store.DecisionReceipt, error) {
	w.note("decide")
	return w.Store.Decide(ctx, d)
}

func (w *written) Claim(ctx context.Context, claim store.Claim) (*store.ClaimedRun, error) {
	work, err := w.Store.Claim(ctx, claim)
	if work != nil {
		w.note("claim")
	}
	return work, err
}

func (w *written) BeginEffect(ctx context.Context, lease store.Lease, effect store.NewEffect) (store.Effect, bool, error) {
	w.note("begin")
	return w.Store.BeginEffect(ctx, lease, effect)
}

func (w *written) SetProviderRef(ctx context.Context, lease store.Lease, ref []byte) error {
	w.note("ref")
	return w.Store.SetProviderRef(ctx, lease, ref)
}

func (w *written) Fenced(lease store.Lease) store.Checkpoints {
	return &writtenState{w.Store.Fenced(lease), w}
}

type writtenState struct {
	store.Checkpoints
	*written
}

func (s *writtenState) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	s.note("load")
	return s.Checkpoints.Load(ctx, key)
}

func (s *writtenState) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	s.note("save")
	version, err := s.Checkpoints.Save(ctx, key, base, delta)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		err, s.fail = s.fail, nil
	}
	return version, err
}

func (s *writtenState) Delete(ctx context.Context, key store.Key) error {
	return s.Checkpoints.Delete(ctx, key)
}

// savesSteps saves steps of a run, each in its own part, after those that exist.
func savesSteps(t *testing.T, e provider.Execution, steps ...string) error {
	t.Helper()
	key := store.Key{Account: e.Run.Account, Run: e.Run.ID}
	base := int64(0)
	if saved, err := e.Run.State.Load(t.Context(), key); err == nil {
		base = saved.Version
	}
	for _, step := range steps {
		version, err := e.Run.State.Save(t.Context(), key, base, store.Delta{Put: []store.Part{{Name: step, Data: []byte("done")}}})
		if err != nil {
			return err
		}
		if version != base+1 {
			t.Errorf("version %d follows %d", version, base)
		}
		base = version
	}
	return nil
}

// stepsOf returns the saved steps that an execution finds.
func stepsOf(t *testing.T, state store.Checkpoints, run store.Run) []string {
	t.Helper()
	saved, err := state.Load(t.Context(), store.Key{Account: "acme", Run: run.ID})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	var steps []string
	for step := range saved.Parts {
		steps = append(steps, step)
	}
	slices.Sort(steps)
	return steps
}

func wantCalls(t *testing.T, w *written, want ...string) {
	t.Helper()
	if got := w.since(); !slices.Equal(got, want) {
		t.Errorf("writes %q, want %q", got, want)
	}
}

func newest(t *testing.T, s store.Store) store.Run {
	t.Helper()
	run, err := s.Get(t.Context(), "acme", "x-1")
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// soonStart does not wait for a second execution.
func soonStart() executor.RunRequest {
	request := scriptedStart()
	request.Wait = time.Minute
	return request
}

const allowsTea = `
default: deny
rules:
- id: tea
  when: req.tool == "tea"
  then: allow
`

// Steps in quick succession are saved together, in EndExecution. The run sees them as saved before
// that.
func TestWriteBehind_QuickStepsAreOneTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &written{Store: memory.NewStore(nil)}
		p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
			err := savesSteps(t, e, "a", "b", "c")
			if steps := stepsOf(t, e.Run.State, store.Run{ID: e.Run.ID}); !slices.Equal(steps, []string{"a", "b", "c"}) {
				t.Errorf("the run sees %q", steps)
			}
			return done, err
		}}
		completed(t, mustRun(t, executorOf(t, w, p, nil), scriptedStart()))
		wantCalls(t, w, "rest", "with state")
		if steps := stepsOf(t, w, newest(t, w)); !slices.Equal(steps, []string{"a", "b", "c"}) {
			t.Errorf("stored %q", steps)
		}
	})
}

// A decision claims the run at once, reads its state once, and writes it once.
func TestWriteBehind_DecisionIsTwoTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &written{Store: memory.NewStore(nil)}
		asks := provider.Result{Outcome: provider.Waiting{Interrupts: []provider.Interrupt{{ID: "q"}}}}
		asks.Outcome.(provider.Waiting).Interrupts[0].Kind = "any"
		p := &scripted{execute: func(attempt int64, e provider.Execution) (provider.Result, error) {
			if attempt == 1 {
				return asks, savesSteps(t, e, "a", "b")
			}
			if steps := stepsOf(t, e.Run.State, store.Run{ID: e.Run.ID}); !slices.Equal(steps, []string{"a", "b"}) {
				t.Errorf("the run continues from %q", steps)
			}
			end := done
			end.Applied = []string{"q"}
			return end, savesSteps(t, e, "c", "d")
		}}
		e := executorOf(t, w, p, nil)
		waits(t, mustRun(t, e, scriptedStart()))
		wantCalls(t, w, "rest", "with state")
		completed(t, mustRun(t, e, executor.RunRequest{Account: "acme", StateKey: "x-1", ResumeID: "1", Actor: "ann", Value: []byte(`1`), Wait: time.Hour}))
		wantCalls(t, w, "decide", "load", "rest", "with state")
	})
}

// The steps of a run are saved after a short time, however long its next step takes.
func TestWriteBehind_I17_LongStepDoesNotDelaySaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &written{Store: memory.NewStore(nil)}
		p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
			if err := savesSteps(t, e, "a", "b"); err != nil {
				return done, err
			}
			if steps := stepsOf(t, w, newest(t, w)); len(steps) > 0 {
				t.Errorf("saved at once: %q", steps)
			}
			time.Sleep(time.Second)
			if steps := stepsOf(t, w, newest(t, w)); !slices.Equal(steps, []string{"a", "b"}) {
				t.Errorf("saved after a second: %q", steps)
			}
			err := savesSteps(t, e, "c")
			time.Sleep(time.Second)
			return done, err
		}}
		completed(t, mustRun(t, executorOf(t, w, p, nil), scriptedStart()))
		wantCalls(t, w, "save", "save", "rest")
	})
}

func TestWriteBehind_EachStepAtOnceIfConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &written{Store: memory.NewStore(nil)}
		p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) { return done, savesSteps(t, e, "a", "b") }}
		completed(t, mustRun(t, executorOf(t, w, p, func(c *executor.Config) { c.SaveDelay = -1 }), scriptedStart()))
		wantCalls(t, w, "save", "save", "rest")
	})
}

// The steps that led to an effect are saved before it begins, and before the provider ref is
// stored.
func TestWriteBehind_I4_StepsAreSavedBeforeTheEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := &written{Store: memory.NewStore(nil)}, new(dropper)
		e := d.executor(t, w, func(c *executor.Config) { c.SaveDelay = time.Hour })
		startDrop(t, e)
		wantCalls(t, w, "rest", "with state")
		completed(t, mustRun(t, e, addressed(t, e, decision("1", "approve"))))
		if got := w.since(); !slices.Equal(got, []string{"decide", "save", "begin", "rest", "with state"}) {
			t.Errorf("writes %q", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := &written{Store: memory.NewStore(nil)}
		p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
			return done, errors.Join(savesSteps(t, e, "a"), e.Owner.SetRef(t.Context(), "mine"))
		}}
		completed(t, mustRun(t, executorOf(t, w, p, nil), scriptedStart()))
		wantCalls(t, w, "save", "ref", "rest")
	})
}

// The next execution continues from the last step, not from the last write.
func TestWriteBehind_I17_StepsAreSavedOnRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := memory.NewStore(nil)
		p := &scripted{execute: func(attempt int64, e provider.Execution) (provider.Result, error) {
			if attempt == 1 {
				return provider.Result{}, errors.Join(savesSteps(t, e, "a", "b"), errors.New("not now"))
			}
			if steps := stepsOf(t, e.Run.State, store.Run{ID: e.Run.ID}); !slices.Equal(steps, []string{"a", "b"}) {
				t.Errorf("the next execution continues from %q", steps)
			}
			return done, nil
		}}
		e := executorOf(t, runs, p, func(c *executor.Config) { c.SaveDelay = time.Hour })
		e.StartWorkers()
		completed(t, mustRun(t, e, scriptedStart()))
	})
}

// After a write with an unknown result the execution ends: its next write may not be based on the
// stored state.
func TestWriteBehind_I16_NothingIsWrittenAfterAnUnknownResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &written{Store: memory.NewStore(nil), fail: errors.New("reset")}
		p := &scripted{execute: func(attempt int64, e provider.Execution) (provider.Result, error) {
			if attempt > 1 {
				return done, nil
			}
			if err := savesSteps(t, e, "a"); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second) // the background write fails
			if err := savesSteps(t, e, "b"); err == nil || err.Error() != "reset" {
				t.Errorf("the next save returns %v", err)
			}
			return done, nil // ignores the error
		}}
		e := executorOf(t, w, p, nil)
		e.StartWorkers()
		completed(t, mustRun(t, e, scriptedStart()))
		if p.executed.Load() != 2 {
			t.Errorf("the run was executed %d times", p.executed.Load())
		}
		if calls := w.since(); calls[0] != "save" || calls[1] != "claim" {
			t.Errorf("writes %q", calls)
		}
	})
}

// A save after the end of the execution is rejected, and is not part of the next write.
func TestWriteBehind_I16_NothingIsSavedAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := memory.NewStore(nil)
		var late provider.Execution
		p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
			late = e
			return done, savesSteps(t, e, "a")
		}}
		completed(t, mustRun(t, executorOf(t, runs, p, nil), scriptedStart()))
		if err := savesSteps(t, late, "b"); !errors.Is(err, store.ErrFenced) {
			t.Errorf("a late save returns %v", err)
		}
		time.Sleep(time.Second)
		if steps := stepsOf(t, runs, newest(t, runs)); !slices.Equal(steps, []string{"a"}) {
			t.Errorf("stored %q", steps)
		}
	})
}

// The version is the only lock, as in a store: of two saves on the same version one is rejected.
func TestWriteBehind_I16_OldVersionIsRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
			key := store.Key{Account: e.Run.Account, Run: e.Run.ID}
			save := func(base int64) error {
				_, err := e.Run.State.Save(t.Context(), key, base, store.Delta{Put: []store.Part{{Name: "a"}}})
				return err
			}
			if err := errors.Join(save(0), save(1)); err != nil {
				t.Error(err)
			}
			for _, base := range []int64{0, 1, 3} {
				if err := save(base); !errors.Is(err, store.ErrStale) {
					t.Errorf("on version %d: %v", base, err)
				}
			}
			if err := e.Run.State.Delete(t.Context(), key); err != nil {
				t.Error(err)
			}
			if _, err := e.Run.State.Load(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("a deleted checkpoint: %v", err)
			}
			return done, save(0)
		}}
		completed(t, mustRun(t, executorOf(t, memory.NewStore(nil), p, nil), scriptedStart()))
	})
}

// A part that was put and deleted before the write is not written. A part that was written must be
// deleted.
func TestWriteBehind_UnwrittenPartIsNotDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &written{Store: memory.NewStore(nil)}
		p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
			key := store.Key{Account: e.Run.Account, Run: e.Run.ID}
			change := func(base int64, delta store.Delta) {
				if _, err := e.Run.State.Save(t.Context(), key, base, delta); err != nil {
					t.Error(err)
				}
			}
			change(0, store.Delta{Put: []store.Part{{Name: "written"}, {Name: "stays"}}})
			time.Sleep(time.Second)
			change(1, store.Delta{Put: []store.Part{{Name: "brief"}}})
			change(2, store.Delta{Delete: []string{"brief", "written"}})
			return done, nil
		}}
		completed(t, mustRun(t, executorOf(t, w, p, nil), scriptedStart()))
		if w.last == nil || !slices.Equal(w.last.Delta.Delete, []string{"written"}) || len(w.last.Delta.Put) > 0 {
			t.Errorf("EndExecution saves %+v", w.last)
		}
		if steps := stepsOf(t, w, newest(t, w)); !slices.Equal(steps, []string{"stays"}) {
			t.Errorf("stored %q", steps)
		}
	})
}

// A ruling is charged and reported at once. If the model response that led to it could be lost
// after that, the run could come to another action and be charged for it as well, and the log would
// contain an action that was never done.
func TestWriteBehind_I9_StepsAreSavedBeforeTheRuling(t *testing.T) {
	for _, action := range []string{"tea", "coffee"} {
		t.Run(action, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &intruder{Store: memory.NewStore(nil)}
				told := 0
				s.amend = func() {
					if steps := stepsOf(t, s, newest(t, s)); !slices.Equal(steps, []string{"the model says"}) {
						t.Errorf("the ruling is reported while %q is saved", steps)
					}
					told++
				}
				p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
					if err := savesSteps(t, e, "the model says"); err != nil {
						return done, err
					}
					_, err := e.Policy.Decide(t.Context(), fermata.ActionRequest{Run: e.Run.ID, Action: action, Args: json.RawMessage(`{}`), Digest: "d"})
					return done, err
				}}
				completed(t, mustRun(t, executorOf(t, s, p, func(c *executor.Config) {
					c.SaveDelay, c.Desk.Policy = time.Hour, loadRules(t, allowsTea)
				}), soonStart()))
				if told != 1 {
					t.Errorf("the ruling is reported %d times", told)
				}
			})
		})
	}
}

// A node that outlives its execution cannot begin an effect based on a state that is not saved.
func TestWriteBehind_I4_NothingBeginsAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &intruder{Store: memory.NewStore(nil)}
		var late *provider.Execution
		tried := false
		s.rest = func() {
			if late == nil || tried {
				return
			}
			tried = true
			_, begun, err := late.Owner.Ledger().Begin(t.Context(), fermata.Intent{
				InterruptID: "a", Attempt: 1, Digest: "d", Key: "k", Allowed: &fermata.AllowedAction{Address: "x", By: "policy", Request: fermata.ApprovalRequest{Action: "tea", Digest: "d"}},
			})
			if begun || !errors.Is(err, store.ErrFenced) {
				t.Errorf("an effect has begun: %v, %v", begun, err)
			}
			if err := late.Run.State.Delete(t.Context(), store.Key{Account: "acme", Run: late.Run.ID}); !errors.Is(err, store.ErrFenced) {
				t.Errorf("the state is deleted: %v", err)
			}
		}
		p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
			late = &e
			return done, savesSteps(t, e, "a")
		}}
		completed(t, mustRun(t, executorOf(t, s, p, func(c *executor.Config) { c.SaveDelay = time.Hour }), soonStart()))
		if !tried {
			t.Error("the node did not try")
		}
	})
}

// A node whose context ends while its effect begins does not lose the steps of other nodes.
func TestWriteBehind_I14_CancelledNodeBreaksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &intruder{Store: memory.NewStore(nil), save: slowly}
		p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
			if err := savesSteps(t, e, "a"); err != nil {
				return done, err
			}
			impatient, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_ = e.Owner.SetRef(impatient, "ref")
			return done, savesSteps(t, e, "b")
		}}
		completed(t, mustRun(t, executorOf(t, s, p, func(c *executor.Config) { c.SaveDelay = time.Hour }), soonStart()))
		if steps := stepsOf(t, s, newest(t, s)); p.executed.Load() != 1 || !slices.Equal(steps, []string{"a", "b"}) {
			t.Errorf("after %d executions %q is saved", p.executed.Load(), steps)
		}
	})
}

// The buffer is bounded: thousands of saves, or a large state, must not become one transaction that
// exceeds the limits of a store.
func TestWriteBehind_I15_BufferIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &written{Store: memory.NewStore(nil)}
		p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
			for n := range int64(16) {
				delta := store.Delta{Put: []store.Part{{Name: "large", Data: make([]byte, 300<<10)}}}
				if _, err := e.Run.State.Save(t.Context(), store.Key{Account: "acme", Run: e.Run.ID}, n, delta); err != nil {
					return done, err
				}
			}
			return done, nil
		}}
		completed(t, mustRun(t, executorOf(t, w, p, func(c *executor.Config) { c.SaveDelay = time.Hour }), soonStart()))
		wantCalls(t, w, "save", "save", "save", "save", "rest")
	})
}
