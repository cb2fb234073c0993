package executor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// The story: bob said yes and left, so eve's yes was not enough; he came back, and eve said hers once more. That ended it, and the log did not say so: a
// word that is said again is none that it had not.
func TestI12_AWordSaidAgainThatSettlesHasALine(t *testing.T) {
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
			t.Fatal("one of two is enough")
		}
		members["group:dba"] = []string{"bob"}
		say("eve", "r3")
		if d.dropped.Load() != 1 {
			t.Fatal("both agree, and nothing is done")
		}
		agree(t, e)
	})
}

// The same word under a second resume id is taken, and binds that id as well.
func TestI3_AnIDOfAWordThatWasSaidBeforeIsBoundToo(t *testing.T) {
	d := new(dropper)
	e := office(t, memory.NewStore(nil), d, nil)
	startAs(t, e, "req")
	for _, id := range []string{"r1", "r2"} {
		if _, err := says(t, e, "bob", id, yes); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := says(t, e, "bob", "r2", `{"verb":"reject","reason":"no"}`); !errors.Is(err, executor.ErrResumeIDReused) {
		t.Errorf("I3: r2 was an accepted yes, and is a no now: %v", err)
	}
}

// A word that counted for a run is not answered, when it is repeated, with the state of another run.
func TestI3_ARepeatedWordIsNotAnsweredWithAnotherRun(t *testing.T) {
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
		t.Errorf("bob's word on %s is answered with run %s, which asks %s (%v)", asked.Run, waiting.Run, waiting.Interrupts[0].Data, err)
	}
}

// Who repeats a word that was counted hears what became of the run, and not that it still waits.
func TestAgain_AWordThatWasCountedOnARunThatIsOver(t *testing.T) {
	e := office(t, memory.NewStore(nil), new(dropper), nil)
	vote := word("bob", "drop-1", "r1", startAs(t, e, "req").Interrupts[0].ID, yes)
	waits(t, mustRun(t, e, vote))
	if err := e.Cancel(t.Context(), "acme", "drop-1", desk.From{}); err != nil {
		t.Fatal(err)
	}
	failedWith(t, mustRun(t, e, vote), "cancelled")
	other := dropAs("req", "drop-1")
	other.Input = json.RawMessage(`{"table":"others"}`)
	waits(t, mustRun(t, e, other)) // another run has its state key
	failedWith(t, mustRun(t, e, vote), "cancelled")
}

// Who began a run and does not know the state key that it was given can wait for it all the same.
func TestAwait_WithoutAStateKey(t *testing.T) {
	e := office(t, memory.NewStore(nil), new(dropper), nil)
	start := dropAs("req", "")
	begun := waits(t, mustRun(t, e, start))
	outcome, err := e.Await(t.Context(), start, begun.Run)
	if err != nil {
		t.Fatal(err)
	}
	if again := waits(t, outcome); again.Run != begun.Run || again.Interrupts[0].ID != begun.Interrupts[0].ID {
		t.Errorf("%+v", again)
	}
}

// Whose yes does not count any more is not among those who had approved, as the log has it; who is back is.
func TestI12_TheLogSaysWhoseYesCounts(t *testing.T) {
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
			t.Errorf("after the word of %s the log has %s, not %s", step.who, got, step.want)
		}
	}
}

// An operator lets a run go on that was ended a moment ago. Another one has its state key, and is parked, too: of that the operator knows nothing.
func TestRetry_OfARunThatHasItsStateKeyNoMore(t *testing.T) {
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
	if err := <-retried; !errors.Is(err, executor.ErrNotParked) {
		t.Errorf("%v", err)
	}
	if now, err := s.Get(t.Context(), "acme", "x-1"); err != nil || now.Status != store.StatusParked || len(recorded[audit.RunRetried](t, s)) > 0 {
		t.Errorf("the other one is %s, %v", now.Status, err)
	}
}
