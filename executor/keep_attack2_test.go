package executor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// Whatever people and rules said of a run goes with it: questions back, rulings, resume ids, notices.
func TestI15_NothingOfARunStaysWhenItIsForgotten(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		p := single(t, "refund", inproc.FlowConfig[refund]{Explain: func(context.Context, refund, provider.Back) (string, error) { return "it was", nil }},
			func(ctx context.Context, s refund) (refund, error) {
				_, err := fermata.Approve(ctx, fermata.Action[refund]{Name: "pay", Args: s})
				return s, err
			})
		change := func(c *executor.Config) {
			c.Desk.Rules = loadRules(t, "default: ask\ndefaults: {ask: {groups: [{from: [\"group:finance\"], count: 2}], deadline: 1h}}\n")
			c.Desk.Directory = desk.Members{"group:finance": {"ann", "bob"}}
			c.Desk.Notify = func(context.Context, string, desk.Notice) error { return nil }
		}
		e := executorOf(t, s, p, change)
		e.Start()
		request := wondering(t, e, "was it damaged?")
		replied(t, e, request, 1)
		seen := func(who, resume string) executor.Request { // and not what it was before the run answered
			doc, err := e.Request(t.Context(), "acme", request)
			if err != nil {
				t.Fatal(err)
			}
			said := word(who, "refund-1", resume, request, yes)
			said.Targets[request] = executor.Answer{Value: said.Targets[request].Value, Shown: doc.Digest()}
			return said
		}
		if _, err := e.Run(t.Context(), seen("eve", "r0")); err == nil {
			t.Fatal("eve is nobody")
		}
		waits(t, mustRun(t, e, seen("ann", "r1")))
		completed(t, mustRun(t, e, seen("bob", "r2")))
		kinds := []store.PaperKind{"run", "vote", "notice", "approvers", "resume", "back", "ruling", store.RequestPaper}
		for _, kind := range kinds {
			if kind != "approvers" && len(papersOf(t, s, "acme", kind)) == 0 {
				t.Errorf("there was no %s to be forgotten", kind)
			}
		}
		if err := e.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		forgets := executorOf(t, s, p, func(c *executor.Config) {
			change(c)
			c.Retention = time.Nanosecond
		})
		forgets.Start()
		eventually(t, func() bool {
			_, err := s.Get(t.Context(), "acme", "refund-1")
			return err != nil
		})
		for _, kind := range kinds {
			if left := papersOf(t, s, "acme", kind); len(left) != 0 {
				t.Errorf("%d papers of the kind %s are left: %+v", len(left), kind, left[0])
			}
		}
	})
}

// curious is a store in which somebody looks at a run at the very moment when it is forgotten.
type curious struct {
	store.Store
	looks func()
}

func (c *curious) Forget(ctx context.Context, account, run string) error {
	c.looks()
	return c.Store.Forget(ctx, account, run)
}

// The salt of a run makes the digests in the log worth something. It must not stay in memory because somebody did something with the run while it
// was being forgotten.
func TestI7_TheSaltOfARunGoesWithIt(t *testing.T) {
	s := &curious{Store: memory.NewRuns(nil)}
	e := new(dropper).executor(t, s, nil)
	asked := waits(t, began(t, e, "drop-1", "inproc:drop", `{"table":"users"}`))
	looked := false
	s.looks = func() {
		comment := desk.Comment{From: desk.From{Actor: desk.Person("ann", "")}, Text: "too late?"}
		_, err := e.Act(t.Context(), "acme", asked.Interrupts[0].ID, comment)
		looked = err != nil && e.AtHand("acme", asked.Run)
	}
	if n, err := e.Erase(t.Context(), "acme"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if !looked {
		t.Fatal("nobody looked at it in between")
	}
	if e.AtHand("acme", asked.Run) {
		t.Error("its salt is still there")
	}
}

// A run whose provider is gone, or cannot be reached, was the first to be forgotten, every time, and everything behind it stayed for ever.
func TestKeep_WhatCannotBeForgottenHoldsUpNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := memory.NewRuns(nil)
		gone := executorOf(t, runs, &scripted{execute: func(int64, provider.Execution) (provider.Result, error) { return done, nil }}, nil)
		for i := range 250 { // more than a page, and all in one moment
			start := scriptedStart()
			start.StateKey = fmt.Sprint("x-", i)
			completed(t, mustRun(t, gone, start))
		}
		time.Sleep(time.Second)
		e := executorOf(t, runs, spy(t), func(c *executor.Config) { c.Poll, c.Retention = time.Minute, time.Hour })
		startSpy(t, e, "over")
		completed(t, mustRun(t, e, addressed(t, e, approveSpy("over"))))
		e.Start()
		time.Sleep(2 * time.Hour)
		if _, err := runs.Get(t.Context(), "acme", "over"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("what was over: %v", err)
		}
		if _, err := runs.Get(t.Context(), "acme", "x-0"); err != nil {
			t.Errorf("what another provider may know more of: %v", err)
		}
	})
}

// The clock of a server jumps a year ahead, and back. What was forgotten by it would not come back.
func TestKeep_AClockThatJumpsForgetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		runs := memory.NewRuns(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
		e := executorOf(t, runs, spy(t), func(c *executor.Config) { c.Poll, c.Retention = time.Minute, 30*24*time.Hour })
		startSpy(t, e, "over")
		completed(t, mustRun(t, e, addressed(t, e, approveSpy("over"))))
		e.Start()
		time.Sleep(10 * time.Minute)
		ahead.Store(int64(365 * 24 * time.Hour))
		time.Sleep(30 * time.Minute)
		ahead.Store(0)
		time.Sleep(30 * time.Minute)
		known(t, runs, "over")
		time.Sleep(31 * 24 * time.Hour)
		if _, err := runs.Get(t.Context(), "acme", "over"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("when its time has come: %v", err)
		}
	})
}

// What people said of a run was exported as it is sealed, and nobody could read it; what an account had remembered and counted was not in it.
func TestKeep_AnExportHasWhatPeopleSaidInTheClear(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		var paid atomic.Int64
		e := executorOf(t, s, payer(t, &paid, "pay"), func(c *executor.Config) {
			c.Desk.Rules = loadRules(t, strings.NewReplacer("deadline: 1h}", "deadline: 1h, remember_max: 1h}", "max: 1000", "max: 1200").Replace(budgeted))
			c.Desk.Directory = desk.Members{"group:finance": {"ann"}}
		})
		asked := waits(t, mustRun(t, e, executor.Request{Account: "acme", StateKey: "p-1", Graph: "inproc:pay", Input: json.RawMessage(`{"cents":600}`), Actor: "req"}))
		id := asked.Interrupts[0].ID
		if _, err := e.Act(t.Context(), "acme", id, desk.Comment{From: desk.From{Actor: desk.Person("ann", "")}, Text: "what a price"}); err != nil {
			t.Fatal(err)
		}
		completed(t, mustRun(t, e, word("ann", "p-1", "r", id, yes)))
		if _, err := e.Remember(t.Context(), "acme", id, executor.Remember{By: "ann", TTL: time.Hour, MaxUses: 2}); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if n, err := e.Export(t.Context(), "acme", &out); err != nil || n != 1 {
			t.Fatalf("%d exported, %v", n, err)
		}
		for _, want := range []string{`what a price`, `"requester":"req"`, `"Kind":"grant"`, `"Kind":"counter"`, `"Kind":"vote"`} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("there is no %s in %s", want, out.String())
			}
		}
		if strings.Contains(out.String(), `"salt"`) {
			t.Error("I7: the salt of the run is in it")
		}
		out.Reset()
		if _, err := e.Export(t.Context(), "other", &out); err != nil || out.Len() != 0 {
			t.Errorf("I8: another account has %s, %v", out.String(), err)
		}
	})
}

// The newest run could not be deleted, because its provider is gone, and everything else of the account stayed with it.
func TestErase_WhatCannotBeDeletedHoldsUpNothingElse(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := executorOf(t, s, spy(t), nil)
		for i := range 3 {
			startSpy(t, e, fmt.Sprint("spy-", i))
		}
		gone := executorOf(t, s, &scripted{execute: func(int64, provider.Execution) (provider.Result, error) { return done, nil }}, nil)
		completed(t, mustRun(t, gone, scriptedStart()))
		if n, err := e.Erase(t.Context(), "acme"); n != 3 || !errors.Is(err, executor.ErrUnknownGraph) {
			t.Errorf("%d erased, %v", n, err)
		}
		if left, err := s.List(t.Context(), "acme", store.Filter{}); err != nil || len(left) != 1 || left[0].StateKey != "x-1" {
			t.Errorf("left are %+v, %v", left, err)
		}
		if n, err := gone.Erase(t.Context(), "acme"); n != 1 || err != nil {
			t.Errorf("where the provider is: %d, %v", n, err)
		}
	})
}

// hesitant is a store in which a run is forgotten at the very moment when somebody wants to write something of it.
type hesitant struct {
	store.Store
	once  sync.Once
	erase func()
}

func (h *hesitant) Amend(ctx context.Context, account string, beside store.Beside) error {
	if len(beside.NewRuns()) > 0 {
		h.once.Do(h.erase)
	}
	return h.Store.Amend(ctx, account, beside)
}

func (h *hesitant) Decide(ctx context.Context, d store.Decision) (store.Receipt, error) {
	h.once.Do(h.erase)
	return h.Store.Decide(ctx, d)
}

// Whoever looked at a run before it was forgotten, and wrote after it, left papers and resume ids that nobody would ever have deleted: of every account that
// was erased while people were at work.
func TestI15_NothingIsLeftByWhoeverComesTooLate(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		for name, says := range map[string]func(e *executor.Executor, id string) error{
			"a decision": func(e *executor.Executor, id string) error {
				_, err := e.Run(t.Context(), word("ann", "drop-1", "r1", id, yes))
				return err
			},
			"a word on what is over": func(e *executor.Executor, _ string) error {
				_, err := e.Run(t.Context(), word("ann", "drop-1", "r2", "int_unknown", yes))
				return err
			},
		} {
			late := &hesitant{Store: s}
			d := new(dropper)
			e := d.executor(t, late, nil)
			id := waits(t, began(t, e, "drop-1", "inproc:drop", `{"table":"users"}`)).Interrupts[0].ID
			late.erase = func() {
				if n, err := e.Erase(t.Context(), "acme"); n != 1 || err != nil {
					t.Error(n, err)
				}
			}
			if err := says(e, id); err == nil || d.dropped.Load() != 0 {
				t.Errorf("%s: %v, dropped %d times", name, err, d.dropped.Load())
			}
			for _, kind := range []store.PaperKind{"run", "vote", "notice", "resume", "back", store.RequestPaper} {
				if left := papersOf(t, s, "acme", kind); len(left) != 0 {
					t.Errorf("%s: %d papers of the kind %s are left", name, len(left), kind)
				}
			}
			if size, err := s.Size(t.Context()); err != nil || size.Rows["resumes"] != 0 {
				t.Errorf("%s: %d resumes are left, %v", name, size.Rows["resumes"], err)
			}
		}
	})
}
