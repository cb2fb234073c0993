package executor_test

import (
	"sync"
	"testing"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/store/memory"
)

// The salt of a run makes the digests in the log worth something. It must not stay in memory because somebody did something with the run while it
// was being forgotten.
func TestI7_TheSaltOfARunGoesWithIt(t *testing.T) {
	s := &intruder{Store: memory.NewStore(nil)}
	e := new(dropper).executor(t, s, nil)
	asked := waits(t, began(t, e, "drop-1", "inproc:drop", `{"table":"users"}`))
	looked := false
	s.forget = func() {
		comment := desk.Comment{From: by("ann"), Text: "too late?"}
		_, err := e.Act(t.Context(), "acme", asked.Interrupts[0].ID, comment)
		looked = err != nil && e.AtHand("acme", asked.Run)
	}
	if n, err := e.EraseAccount(t.Context(), "acme"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if !looked {
		t.Fatal("nobody looked at it in between")
	}
	if e.AtHand("acme", asked.Run) {
		t.Error("its salt is still there")
	}
}

// What somebody has looked at before it was erased is no reason to remember it.
func TestI7_TheSaltOfARunIsNotKeptByWhoLookedBeforeItWent(t *testing.T) {
	s := &intruder{Store: memory.NewStore(nil)}
	e := new(dropper).executor(t, s, nil)
	asked := waits(t, began(t, e, "drop-1", "inproc:drop", `{"table":"users"}`))
	s.loaded = sync.OnceFunc(func() {
		if n, err := e.EraseAccount(t.Context(), "acme"); n != 1 || err != nil {
			t.Error(n, err)
		}
	})
	if outcome, err := e.Run(t.Context(), word("ann", "drop-1", "r1", asked.Interrupts[0].ID, yes)); err == nil {
		t.Errorf("a run that is erased came to %+v", outcome)
	}
	if e.AtHand("acme", asked.Run) {
		t.Error("its salt is still there")
	}
}
