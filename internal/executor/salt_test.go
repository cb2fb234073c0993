package executor_test

import (
	"sync"
	"testing"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// The salt of a run protects the digests in the log. It must not stay in memory because of a call
// during the deletion of the run.
func TestI7_SaltIsDroppedWithTheRun(t *testing.T) {
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
		t.Fatal("the comment did not read the run during the erasure")
	}
	if e.AtHand("acme", asked.Run) {
		t.Error("the salt is still in memory")
	}
}

// A call that read a run before its erasure does not keep it in memory.
func TestI7_SaltIsNotKeptByACallThatReadItBeforeTheErasure(t *testing.T) {
	s := &intruder{Store: memory.NewStore(nil)}
	e := new(dropper).executor(t, s, nil)
	asked := waits(t, began(t, e, "drop-1", "inproc:drop", `{"table":"users"}`))
	s.loaded = sync.OnceFunc(func() {
		if n, err := e.EraseAccount(t.Context(), "acme"); n != 1 || err != nil {
			t.Error(n, err)
		}
	})
	if outcome, err := e.Run(t.Context(), word("ann", "drop-1", "r1", asked.Interrupts[0].ID, yes)); err == nil {
		t.Errorf("an erased run has the outcome %+v", outcome)
	}
	if e.AtHand("acme", asked.Run) {
		t.Error("the salt is still in memory")
	}
}
