package executor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
)

// Regression: bob approved and left the group, so eve's approval was not enough. Bob came back, and
// eve approved again, which settled the request without a line in the log: a repeated vote had no
// line.
func TestI12_RepeatedVoteThatSettlesHasAnAuditLine(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := new(dropper)
		members := desk.StaticDirectory{"group:dba": {"bob"}, "group:owners": {"eve"}}
		e := office(t, s, d, func(c *executor.Config) { c.Desk.Directory = members })
		startAs(t, e, "req")
		say := func(who, resume string) {
			t.Helper()
			if _, err := says(t, e, who, resume, yes); err != nil {
				t.Fatal(err)
			}
		}
		say("bob", "r1")
		members["group:dba"] = nil
		say("eve", "r2")
		if d.dropped.Load() != 0 {
			t.Fatal("one of two approvals is enough")
		}
		members["group:dba"] = []string{"bob"}
		say("eve", "r3")
		if d.dropped.Load() != 1 {
			t.Fatal("both approved, but the effect did not happen")
		}
		agree(t, e)
	})
}

// The same vote under a second resume id is accepted, and binds that id as well.
func TestI3_ResumeIDOfARepeatedVoteIsBound(t *testing.T) {
	d := new(dropper)
	e := office(t, memory.NewStore(nil), d, nil)
	startAs(t, e, "req")
	for _, id := range []string{"r1", "r2"} {
		if _, err := says(t, e, "bob", id, yes); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := says(t, e, "bob", "r2", `{"verb":"reject","reason":"no"}`); !errors.Is(err, executor.ErrResumeIDReused) {
		t.Errorf("I3: r2 was accepted as an approval, and is now accepted as a rejection: %v", err)
	}
}

// A repeated vote that counted for one run does not return the state of another run.
func TestI3_RepeatedVoteDoesNotReturnAnotherRun(t *testing.T) {
	d := new(dropper)
	e := office(t, memory.NewStore(nil), d, nil)
	asked := startAs(t, e, "req")
	vote := word("bob", "drop-1", "r1", asked.Interrupts[0].ID, yes)
	mustRun(t, e, vote)
	other := dropAs("req", "drop-1")
	other.Input, other.Supersede = json.RawMessage(`{"table":"others"}`), true
	waits(t, mustRun(t, e, other))
	outcome, err := e.Run(t.Context(), vote)
	if waiting, ok := outcome.(fermata.NeedsInput); ok && waiting.Run != asked.Run {
		t.Errorf("bob's vote on %s returns run %s, which asks %s (%v)", asked.Run, waiting.Run, waiting.Interrupts[0].Data, err)
	}
}

// A repeated vote that was counted returns the outcome of the run, not that it still waits.
func TestRepeat_CountedVoteOfAnEndedRunReturnsTheOutcome(t *testing.T) {
	e := office(t, memory.NewStore(nil), new(dropper), nil)
	vote := word("bob", "drop-1", "r1", startAs(t, e, "req").Interrupts[0].ID, yes)
	waits(t, mustRun(t, e, vote))
	if err := e.Cancel(t.Context(), "acme", "drop-1", desk.From{}); err != nil {
		t.Fatal(err)
	}
	failedWith(t, mustRun(t, e, vote), "cancelled")
	other := dropAs("req", "drop-1")
	other.Input = json.RawMessage(`{"table":"others"}`)
	waits(t, mustRun(t, e, other)) // another run has the state key
	failedWith(t, mustRun(t, e, vote), "cancelled")
}

// A client that started a run without a state key can wait for it: Await gets the id of the run.
func TestAwait_WithoutAStateKey(t *testing.T) {
	e := office(t, memory.NewStore(nil), new(dropper), nil)
	start := dropAs("req", "")
	begun := waits(t, mustRun(t, e, start))
	outcome, err := e.Await(t.Context(), start, begun.Run)
	if err != nil {
		t.Fatal(err)
	}
	if again := waits(t, outcome); again.Run != begun.Run || again.Interrupts[0].ID != begun.Interrupts[0].ID {
		t.Errorf("outcome %+v", again)
	}
}

// The log lists only approvers whose vote still counts, including returned members.
func TestI12_LogListsApproversWhoseVoteCounts(t *testing.T) {
	s, members := memory.NewStore(nil), desk.StaticDirectory{"group:dba": {"bob"}, "group:owners": {"eve"}}
	e := office(t, s, new(dropper), func(c *executor.Config) { c.Desk.Directory = members })
	startAs(t, e, "req")
	for n, step := range []struct {
		who  string
		dba  []string
		want string
	}{{"bob", []string{"bob"}, "[bob]"}, {"eve", nil, "[eve]"}, {"eve", []string{"bob"}, "[bob eve]"}} {
		members["group:dba"] = step.dba
		if _, err := says(t, e, step.who, fmt.Sprint("r", n), yes); err != nil {
			t.Fatal(err)
		}
		said := recorded[audit.RequestDecided](t, s)
		if got := fmt.Sprint(said[len(said)-1].Quorum.Have); got != step.want {
			t.Errorf("after the vote of %s the log has %s, want %s", step.who, got, step.want)
		}
	}
}

// An operator retries a run that ended a moment ago. Another run has its state key and is parked,
// too. The retry does not apply to it.
func TestRetry_OfARunThatLostItsStateKey(t *testing.T) {
	s := memory.NewStore(nil)
	p := &scripted{execute: func(int64, provider.Execution) (provider.Result, error) { return provider.Result{}, provider.ErrPark }}
	slept := bar(s, "Retry")
	e, other := executorOf(t, slept, p, nil), executorOf(t, s, p, nil)
	parks := func(request executor.RunRequest) {
		request.Wait = -1
		if _, err := other.Run(t.Context(), request); !errors.Is(err, executor.ErrPending) {
			t.Fatal(err)
		}
		eventually(t, func() bool {
			run, err := s.Get(t.Context(), "acme", "x-1")
			return err == nil && run.Status == store.StatusParked
		})
	}
	first := scriptedStart()
	parks(first)
	retried := make(chan error)
	go func() { retried <- e.Retry(t.Context(), "acme", "x-1", by("ops")) }()
	<-slept.reached
	if err := other.Cancel(t.Context(), "acme", "x-1", by("ann")); err != nil {
		t.Fatal(err)
	}
	first.StartID = "another"
	parks(first)
	close(slept.open)
	if err := <-retried; !errors.Is(err, executor.ErrNotRetryable) {
		t.Errorf("Retry: %v", err)
	}
	if now, err := s.Get(t.Context(), "acme", "x-1"); err != nil || now.Status != store.StatusParked || len(recorded[audit.RunRetried](t, s)) > 0 {
		t.Errorf("the other run is %s, %v", now.Status, err)
	}
}
