package graph_test

import (
	"context"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store"
)

// countedLoads is a store that counts its loads.
type countedLoads struct {
	store.Checkpoints
	loads int
}

func (c *countedLoads) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	c.loads++
	return c.Checkpoints.Load(ctx, key)
}

// One load and one decode of the checkpoint are enough to inspect a run, to validate its answers
// and to resume it.
func TestLoad_InspectCheckAndResumeLoadOnce(t *testing.T) {
	var c counter
	h := newHarness(t, oneNode(ask(&c, "a", fieldA)))
	counted := &countedLoads{Checkpoints: h.st}
	h.st = counted
	id := h.waits(second(h.start(notes{})))[0].ID
	counted.loads = 0

	run, err := h.flow.Load(t.Context(), h.run, graph.WithStore(h.st))
	if err != nil {
		t.Fatal(err)
	}
	if saved, err := run.Inspect(); err != nil || saved.Status != graph.StatusWaiting || saved.Interrupts[0].ID != id {
		t.Errorf("got %+v, %v", saved, err)
	}
	if err := run.Check(); err != nil {
		t.Error(err)
	}
	if _, err := run.CheckAnswer(id, 7); !isAnswerError(err) {
		t.Errorf("got %v, want an AnswerError", err)
	}
	if _, err := run.Resume(fermata.ResumeWithData(t.Context(), id, 7)); !isAnswerError(err) {
		t.Errorf("got %v, want an AnswerError", err)
	}
	// nothing has run since
	state, err := run.Resume(fermata.ResumeWithData(t.Context(), id, "yes"))
	if err != nil || state.A == "" {
		t.Errorf("got %+v, %v", state, err)
	}
	if counted.loads != 1 {
		t.Errorf("%d loads, want 1", counted.loads)
	}
	if _, err := run.Resume(t.Context()); err == nil {
		t.Error("a loaded run can be resumed twice")
	}
}

// A run that another execution has saved since is not resumed from the old checkpoint.
func TestI16_ALoadedRunThatWasSavedSinceIsNotResumed(t *testing.T) {
	var c counter
	h := newHarness(t, oneNode(ask(&c, "a", fieldA)))
	id := h.waits(second(h.start(notes{})))[0].ID
	run, err := h.flow.Load(t.Context(), h.run, graph.WithStore(h.st))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.resume(graph.Answer(id, "first")); err != nil {
		t.Fatal(err)
	}
	_, err = run.Resume(fermata.ResumeWithData(t.Context(), id, "second"))
	wantErr(t, err, graph.ErrRunning)
}
