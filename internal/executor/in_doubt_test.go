package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// doubtful is a run whose effect is in doubt: the process that executed it has lost the run.
type doubtful struct {
	again *dropper           // effects of the other process
	e     *executor.Executor // the other process
	ask   fermata.OpenInterrupt
	ends  func() // lets the lost process complete its effect
}

// inDoubt brings a drop that bob and eve have approved into doubt.
func inDoubt(t *testing.T, open func() store.Store, also ...func(*executor.Config)) *doubtful {
	t.Helper()
	as := func(lease time.Duration) func(*executor.Config) {
		return func(c *executor.Config) {
			c.Lease = lease
			for _, change := range also {
				change(c)
			}
		}
	}
	s, lost := open(), &dropper{entered: make(chan struct{}), hold: make(chan struct{})}
	release := sync.OnceFunc(func() { close(lost.hold) })
	first := office(t, s, lost, as(time.Hour))
	t.Cleanup(release) // before the executor is stopped, which would otherwise block
	startAs(t, first, "req")
	if _, err := says(t, first, "bob", "r1", yes); err != nil {
		t.Fatal(err)
	}
	last := decision("r2", "approve")
	last.Actor = "eve"
	last = addressed(t, first, last)
	go func() { _, _ = first.Run(context.Background(), last) }()
	<-lost.entered // the effect is in progress
	run, err := s.Get(t.Context(), "acme", "drop-1")
	if err == nil {
		err = s.Renew(t.Context(), store.Lease{Account: "acme", Run: run.ID, Fence: run.Fence}, -time.Second)
	}
	if err != nil {
		t.Fatal(err)
	}
	d := &doubtful{again: new(dropper), ends: func() {
		release()
		if err := first.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
	}}
	d.e = office(t, open(), d.again, as(0))
	d.e.StartWorkers()
	d.ask = waits(t, mustRun(t, d.e, last)).Interrupts[0]
	if d.ask.Kind != fermata.EffectInDoubt.Name() {
		t.Fatalf("the run asks %+v", d.ask)
	}
	return d
}

// isDoneAgain lets eve answer that the effect did not happen, which settles the doubt and repeats
// the drop.
func (d *doubtful) isDoneAgain(t *testing.T) {
	t.Helper()
	outcome, err := says(t, d.e, "eve", "d2", notHappened)
	if err != nil {
		t.Fatal(err)
	}
	completed(t, outcome)
	if d.again.dropped.Load() != 1 {
		t.Errorf("dropped %d times", d.again.dropped.Load())
	}
	d.ends()
}

const notHappened = `{"happened":false,"reason":"I looked"}`

// The answer "did not happen" repeats the effect. It is an approval, with the requirement of the
// original approval.
func TestI4_DoubtIsSettledByEligibleApprovers(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		d := inDoubt(t, open)
		for who, want := range map[string]error{"mallory": desk.ErrNotMember, "req": desk.ErrExcluded} {
			if _, err := says(t, d.e, who, "by "+who, notHappened); !errors.Is(err, want) {
				t.Errorf("%s: %v", who, err)
			}
		}
		if outcome, err := says(t, d.e, "bob", "d1", `{"happened":false,"reason":"not there","by":"bob"}`); err != nil || waits(t, outcome).Interrupts[0].ID != d.ask.ID || d.again.dropped.Load() != 0 {
			t.Fatalf("one of two: %#v, %v", outcome, err)
		}
		doc, err := d.e.RequestDocument(t.Context(), "acme", d.ask.ID)
		if err != nil || doc.VoteProgress.String() != "1 of 2, needs 1 × owners" || !slices.Equal(doc.Subject.Rules, []string{"drop"}) {
			t.Fatalf("%s, %+v, %v", doc.VoteProgress, doc.Subject, err)
		}
		d.isDoneAgain(t)
	})
}

// An approver of the action may settle its doubt, even under a rule that excludes prior approvers.
// Otherwise there could be no eligible approver.
func TestI17_ApproversOfTheActionMaySettleTheDoubt(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := inDoubt(t, func() store.Store { return s }, func(c *executor.Config) {
			c.Desk.Policy = loadRules(t, strings.Replace(twoPeople, "[requester]", "[requester, prior_approver]", 1))
			c.Desk.Directory = desk.StaticDirectory{"group:dba": {"bob"}, "group:owners": {"eve"}}
		})
		if _, err := says(t, d.e, "bob", "d1", notHappened); err != nil {
			t.Fatal(err)
		}
		d.isDoneAgain(t)
	})
}

// The owner that was taken for dead has recorded the end in the ledger. Repeating the effect would
// be the second time.
func TestI4_DoubtCannotBeSettledAgainstTheLedger(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		d := inDoubt(t, open)
		d.ends()
		_, err := says(t, d.e, "bob", "d1", notHappened)
		if _, bad := errors.AsType[*fermata.AnswerError](err); !bad {
			t.Fatalf("the effect happened, but \"did not happen\" was accepted: %v", err)
		}
		if _, err := says(t, d.e, "bob", "d2", `{"happened":true}`); err != nil {
			t.Fatal(err)
		}
		outcome, err := says(t, d.e, "eve", "d3", `{"happened":true}`)
		if err != nil {
			t.Fatal(err)
		}
		if done := completed(t, outcome); !strings.Contains(string(done.Output), "dropped users") || d.again.dropped.Load() != 0 {
			t.Errorf("%s, dropped %d times more", done.Output, d.again.dropped.Load())
		}
	})
}

// No answer is needed: the owner that was taken for dead has recorded the end in the ledger by now.
func TestI17_DoubtThatTheLedgerSettlesDoesNotExpire(t *testing.T) {
	for name, test := range map[string]struct {
		told bool
		want store.Status
	}{"ledger has the end": {true, store.StatusCompleted}, "outcome unknown": {false, store.StatusFailed}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory.NewStore(nil)
				d := inDoubt(t, func() store.Store { return s }, func(c *executor.Config) { c.RequestTimeout, c.Poll = time.Hour, time.Minute })
				if test.told {
					d.ends()
				}
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				run, err := s.Get(t.Context(), "acme", "drop-1")
				if err != nil || run.Status != test.want || d.again.dropped.Load() != 0 {
					t.Errorf("%s, dropped %d times more, %v; want %s", run.Status, d.again.dropped.Load(), err, test.want)
				}
			})
		})
	}
}

type plan struct {
	Table string `json:"table"`
}

// planning is a run that asks what to drop, copies it, warns, waits, and drops it, each step with
// its own approval.
func planning(t *testing.T) provider.Provider {
	t.Helper()
	which := fermata.NewKind[string, string]("which-of-" + t.Name())
	return single(t, "plan", inproc.FlowConfig[plan]{}, func(ctx context.Context, p plan) (plan, error) {
		table, err := which.Ask(ctx, "which table?")
		if err != nil {
			return p, err
		}
		var refused *fermata.RejectedError
		for _, action := range []string{"copy", "warn", "wait", "drop-table"} {
			yes, err := fermata.Approve(ctx, fermata.Action[plan]{Name: action, Args: plan{table}})
			if errors.As(err, &refused) {
				continue // skip this step
			}
			if err != nil {
				return p, err
			}
			table = yes.Args().Table
		}
		return plan{table}, nil
	})
}

// All people who influenced the action are its authors, and separation of duties excludes them.
func TestDesk_AuthorsAreThePeopleWhoseInputTheRunUses(t *testing.T) {
	const rule = `
default: ask
defaults: {ask: {groups: [{from: [anyone]}], editable: [""], deadline: 1h}}
rules:
- id: drop
  when: req.tool == "drop-table"
  then: ask
  ask: {groups: [{from: [anyone]}], separation_of_duties: [author], deadline: 1h}
`
	onStores(t, func(t *testing.T, s store.Store) {
		e := executorOf(t, s, planning(t), func(c *executor.Config) { c.Desk.Policy = loadRules(t, rule) })
		asked := waits(t, mustRun(t, e, executor.RunRequest{
			Account: "acme", StateKey: "drop-1", Graph: "inproc:plan", Input: json.RawMessage(`{"table":""}`), Actor: "req",
		}))
		// an answer, an edit, and a rejection with a reason
		for _, said := range []struct{ who, value string }{
			{"ann", `"users"`}, {"bob", `{"verb":"approve","args":{"table":"old_users"}}`}, {"dan", `{"verb":"reject","reason":"warn nobody"}`},
			{"cleo", yes}, // adds no input of her own
		} {
			outcome, err := says(t, e, said.who, "by "+said.who, said.value)
			if err != nil {
				t.Fatal(err)
			}
			asked = waits(t, outcome)
		}
		doc, err := e.RequestDocument(t.Context(), "acme", asked.Interrupts[0].ID)
		if err != nil || !slices.Equal(doc.Subject.Authors, []string{"ann", "bob", "dan", "req"}) {
			t.Fatalf("authors are %q, %v", doc.Subject.Authors, err)
		}
		for _, author := range doc.Subject.Authors {
			if _, err := says(t, e, author, author+" again", yes); !errors.Is(err, desk.ErrExcluded) {
				t.Errorf("%s: %v", author, err)
			}
		}
		if outcome, err := says(t, e, "cleo", "by cleo, again", yes); err != nil {
			t.Error(err)
		} else {
			completed(t, outcome)
		}
	})
}
