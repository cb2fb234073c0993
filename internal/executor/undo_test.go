package executor_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// undoOffice is an executor whose drops one dba approves, with an undo window.
func undoOffice(t *testing.T, s store.Store, d *dropper, window string, poll time.Duration) *executor.Executor {
	t.Helper()
	return d.executor(t, s, func(c *executor.Config) {
		c.Poll = poll
		c.Desk.Directory = desk.StaticDirectory{"group:dba": {"ann", "bob"}}
		c.Desk.Policy = loadRules(t, `
default: allow
rules:
- id: drop
  when: req.tool == "drop-table"
  then: ask
  ask: {groups: [{from: ["group:dba"]}], deadline: 1h, editable: [""], undo: `+window+`}
`)
	})
}

// voteHeld says yes as who and returns when the decision takes effect.
func voteHeld(t *testing.T, e *executor.Executor, who, resume, value string) time.Time {
	t.Helper()
	outcome, err := says(t, e, who, resume, value)
	pending, ok := errors.AsType[*executor.PendingError](err)
	if !ok || pending.EffectiveAt.IsZero() {
		t.Fatalf("the vote is not pending: %#v, %v", outcome, err)
	}
	return pending.EffectiveAt
}

func TestUndo_DecisionTakesEffectOnceAfterTheWindow(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		d := new(dropper)
		s := open()
		e := undoOffice(t, s, d, "1s", 20*time.Millisecond)
		id := startAs(t, e, "req").Interrupts[0].ID
		at := voteHeld(t, e, "ann", "r1", `{"verb":"approve","reason":"as agreed"}`)
		if again := voteHeld(t, e, "ann", "r1", `{"verb":"approve","reason":"as agreed"}`); !again.Equal(at) {
			t.Errorf("I3: the same vote again takes effect at %s, want %s", again, at)
		}
		if err := e.Stop(t.Context()); err != nil || d.dropped.Load() != 0 {
			t.Fatalf("dropped %d times before the end of the window, %v", d.dropped.Load(), err)
		}
		replicas := []*executor.Executor{undoOffice(t, open(), d, "1s", 20*time.Millisecond), undoOffice(t, open(), d, "1s", 20*time.Millisecond)}
		for _, e := range replicas {
			e.StartWorkers()
		}
		waitUntil(t, func() bool {
			run, err := s.Get(t.Context(), "acme", "drop-1")
			return err == nil && run.Status == store.StatusCompleted
		})
		if d.dropped.Load() != 1 {
			t.Errorf("I4: dropped %d times", d.dropped.Load())
		}
		i, err := s.InboxItem(t.Context(), "acme", id)
		if err != nil || i.DecidedBy != "ann" || i.Source != store.SourcePerson || i.DecidedAt.Before(at) {
			t.Errorf("decided by %s (%s) at %s, %v; want ann after %s", i.DecidedBy, i.Source, i.DecidedAt, err, at)
		}
		doc, err := replicas[0].RequestDocument(t.Context(), "acme", id)
		if err != nil || doc.State != desk.StateDecided || !slices.Equal(doc.Decision.By, []string{"ann"}) {
			t.Errorf("%+v, %v", doc.Decision, err)
		}
		agree(t, replicas[0])
	})
}

// waitUntil waits for a condition.
func waitUntil(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not happen in time")
		}
	}
}

func TestI12_UndoWindowIsInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := memory.NewStore(nil), new(dropper)
		e := undoOffice(t, s, d, "30s", time.Second)
		e.StartWorkers()
		id := startAs(t, e, "req").Interrupts[0].ID
		voteHeld(t, e, "ann", "r1", yes)
		if _, err := e.Act(t.Context(), "acme", id, desk.Undo{From: by("bob")}); desk.Code(err) != "not_yours" {
			t.Fatalf("bob withdraws the vote of ann: %v", err)
		}
		time.Sleep(20 * time.Second)
		acts(t, e, id, desk.Undo{From: by("ann")})
		time.Sleep(time.Minute)
		if statusOf(t, s, "drop-1") != store.StatusWaiting || d.dropped.Load() != 0 {
			t.Fatalf("the vote was withdrawn, and the run is %s", statusOf(t, s, "drop-1"))
		}
		voteHeld(t, e, "ann", "r2", yes)
		if _, err := says(t, e, "bob", "r3", `{"verb":"reject","reason":"no"}`); !errors.Is(err, desk.ErrDecisionPending) {
			t.Fatalf("bob rejects what ann has approved: %v", err)
		}
		time.Sleep(40 * time.Second)
		if statusOf(t, s, "drop-1") != store.StatusCompleted || d.dropped.Load() != 1 {
			t.Fatalf("the run is %s, dropped %d times", statusOf(t, s, "drop-1"), d.dropped.Load())
		}
		var settling []audit.RequestDecided
		for _, line := range recorded[audit.RequestDecided](t, s) {
			if line.Settles {
				settling = append(settling, line)
			}
		}
		if len(settling) != 1 || settling[0].Verb != audit.VerbApprove || settling[0].Approved == (audit.Digest{}) || !slices.Equal(settling[0].Groups, []string{"dba"}) {
			t.Errorf("settling lines: %+v", settling)
		}
		var changes []string
		for _, line := range recorded[audit.RequestChanged](t, s) {
			changes = append(changes, line.What)
		}
		if got := strings.Join(changes, " "); got != "pending vote_withdrawn pending" {
			t.Errorf("changes in the log: %s", got)
		}
		if kinds := lines(t, s); !slices.Contains(kinds, "request.refused") {
			t.Errorf("the refused vote is not in the log: %q", kinds)
		}
		agree(t, e)
	})
}

// A vote just before the deadline takes effect at the deadline, also if no process ran then.
func TestI2_PendingDecisionDoesNotExpire(t *testing.T) {
	for name, down := range map[string]time.Duration{"running": 0, "down over the deadline": 30 * time.Second, "down for long": 5 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d := memory.NewStore(nil), new(dropper)
				e := undoOffice(t, s, d, "5m", time.Second)
				if down == 0 {
					e.StartWorkers()
				}
				id := startAs(t, e, "req").Interrupts[0].ID
				time.Sleep(time.Hour - 10*time.Second)
				doc, err := e.RequestDocument(t.Context(), "acme", id)
				if err != nil {
					t.Fatal(err)
				}
				if at := voteHeld(t, e, "ann", "r1", yes); !at.Equal(doc.Deadline) {
					t.Errorf("effective at %s, want the deadline %s", at, doc.Deadline)
				}
				time.Sleep(down)
				e.StartWorkers()
				time.Sleep(time.Minute)
				if statusOf(t, s, "drop-1") != store.StatusCompleted || d.dropped.Load() != 1 {
					t.Errorf("the run is %s, dropped %d times", statusOf(t, s, "drop-1"), d.dropped.Load())
				}
				agree(t, e)
			})
		})
	}
}

// The policy counts the action when it takes effect. If it denies the action by then, the vote is
// void and the request stays open.
func TestUndo_PolicyIsCheckedWhenTheDecisionTakesEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := memory.NewStore(nil), new(dropper)
		e := d.executor(t, s, func(c *executor.Config) {
			c.Poll = time.Second
			c.Desk.Directory = desk.StaticDirectory{"group:dba": {"ann", "bob"}}
			c.Desk.Policy = loadRules(t, `
default: deny
rules:
- id: drop
  when: req.tool == "drop-table"
  then: ask
  ask: {groups: [{from: ["group:dba"]}], deadline: 1h, undo: 30s}
- id: seldom
  when: req.tool == "drop-table"
  limit: {max: 1, window: 24h}
  then: deny
  reason: one a day
`)
		})
		e.StartWorkers()
		var ids []string
		for _, key := range []string{"drop-1", "drop-2"} {
			id := waits(t, mustRun(t, e, dropAs("req", key))).Interrupts[0].ID
			ids = append(ids, id)
			if _, err := e.Run(t.Context(), word("ann", key, "r-"+key, id, yes)); !errors.Is(err, executor.ErrPending) {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		if statusOf(t, s, "drop-1") != store.StatusCompleted || statusOf(t, s, "drop-2") != store.StatusWaiting || d.dropped.Load() != 1 {
			t.Fatalf("%s and %s, dropped %d times", statusOf(t, s, "drop-1"), statusOf(t, s, "drop-2"), d.dropped.Load())
		}
		doc, err := e.RequestDocument(t.Context(), "acme", ids[1])
		last := doc.Log[len(doc.Log)-1]
		if err != nil || doc.State != desk.StateOpen || doc.Pending != nil || len(doc.Votes) != 0 || !strings.Contains(last.Text, "one a day") {
			t.Errorf("%s, pending %+v, last event %+v, %v", doc.State, doc.Pending, last, err)
		}
	})
}
