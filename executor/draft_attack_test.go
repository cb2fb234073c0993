package executor_test

import (
	"context"
	"encoding/json"
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

// intruder is a store that does something else first, where it is told to.
type intruder struct {
	store.Store
	amend, rest, decided func()
	save                 func(context.Context) error
}

func first(what func()) {
	if what != nil {
		what()
	}
}

func (i *intruder) Amend(ctx context.Context, account string, beside store.Beside) error {
	first(i.amend)
	return i.Store.Amend(ctx, account, beside)
}

func (i *intruder) Rest(ctx context.Context, lease store.Lease, rest store.Rest) (store.Status, error) {
	first(i.rest)
	return i.Store.Rest(ctx, lease, rest)
}

func (i *intruder) Decide(ctx context.Context, decision store.Decision) (store.Receipt, error) {
	receipt, err := i.Store.Decide(ctx, decision)
	first(i.decided)
	return receipt, err
}

func (i *intruder) Fenced(lease store.Lease) store.Checkpoints {
	return &intruded{i.Store.Fenced(lease), i}
}

type intruded struct {
	store.Checkpoints
	by *intruder
}

func (i *intruded) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	if i.by.save != nil {
		if err := i.by.save(ctx); err != nil {
			return 0, err
		}
	}
	return i.Checkpoints.Save(ctx, key, base, delta)
}

// soonStart waits for no second execution.
func soonStart() executor.Request {
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

// What the rules said of an action is charged and told at once. If the model's word that led to it could be lost after that, the run would come
// to another action, be charged for it as well, and the log tell of one that never was.
func TestAttackDraft_I9_WhatLedToARulingIsSavedBefore(t *testing.T) {
	for _, action := range []string{"tea", "coffee"} {
		t.Run(action, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &intruder{Store: memory.NewRuns(nil)}
				told := 0
				s.amend = func() {
					if steps := stepsOf(t, s, newest(t, s)); !slices.Equal(steps, []string{"the model says"}) {
						t.Errorf("it is told while %q is saved", steps)
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
					c.SaveDelay, c.Desk.Rules = time.Hour, loadRules(t, allowsTea)
				}), soonStart()))
				if told != 1 {
					t.Errorf("it is told %d times", told)
				}
			})
		})
	}
}

// A node that outlives its execution cannot begin an effect on top of a state that is not saved yet, and may never be.
func TestAttackDraft_I4_NothingBeginsAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &intruder{Store: memory.NewRuns(nil)}
		var late *provider.Execution
		tried := false
		s.rest = func() {
			if late == nil || tried {
				return
			}
			tried = true
			_, begun, err := late.Owner.Ledger().Begin(t.Context(), fermata.Intent{
				Interrupt: "a", Try: 1, Digest: "d", Key: "k", Allowed: &fermata.Allowed{Address: "x", By: "policy", Request: fermata.ApprovalRequest{Action: "tea", Digest: "d"}},
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
			t.Error("nobody tried")
		}
	})
}

// One node that runs out of time while its effect begins does not take along what the others have done.
func TestAttackDraft_I14_AnImpatientNodeBreaksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &intruder{Store: memory.NewRuns(nil), save: slowly}
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

// slowly is a store under load, which gives up with whoever waits for it.
func slowly(ctx context.Context) error {
	select {
	case <-time.After(5 * time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Who is asked to end while something is being written waits for that, as for the rest of what it writes last.
func TestAttackDraft_I17_AStopDoesNotTearAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &intruder{Store: memory.NewRuns(nil), save: slowly}
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
		if run := newest(t, s); run.Status != store.Ready {
			t.Errorf("the run is %s", run.Status)
		}
		if steps := stepsOf(t, s, newest(t, s)); !slices.Equal(steps, []string{"a"}) {
			t.Errorf("handed over is %q", steps)
		}
	})
}

// A process that is stopped between a decision and its execution does not sit on the run until the lease is over.
func TestAttackDraft_I17_WhoIsStoppedWhileItDecidesGivesTheRunBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &intruder{Store: memory.NewRuns(nil)}
		p := &scripted{execute: func(int64, provider.Execution) (provider.Result, error) {
			asks := provider.Question{ID: "q", Envelope: fermata.Envelope{Kind: "any"}}
			return provider.Result{Rest: provider.Waiting{Questions: []provider.Question{asks}}}, nil
		}}
		leaving := executorOf(t, s, p, func(c *executor.Config) { c.Lease = time.Hour })
		waits(t, mustRun(t, leaving, scriptedStart()))
		s.decided = func() {
			if err := leaving.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
		request := executor.Request{Account: "acme", StateKey: "x-1", ResumeID: "1", Actor: "ann", Value: []byte(`1`), Wait: -1}
		if _, err := leaving.Run(t.Context(), request); err == nil {
			t.Fatal("it is done")
		}
		if run := newest(t, s); run.Status != store.Ready {
			t.Errorf("the run is %s", run.Status)
		}
	})
}

// What is kept back is bounded: thousands of saves, or a large state, must not become one transaction that no store takes.
func TestAttackDraft_I15_MuchIsNotKeptBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &written{Store: memory.NewRuns(nil)}
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
