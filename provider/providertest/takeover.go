package providertest

import (
	"context"
	"errors"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// executionResult is the result of an execution.
type executionResult struct {
	result provider.Result
	err    error
}

// executeBlocked executes in the background until a piece of work blocks.
func (d *driver) executeBlocked(ctx context.Context, work string, heeds bool) (old *driver, s *blockPoint, results chan executionResult) {
	d.t.Helper()
	s = d.world.blockAt(work, heeds)
	results = make(chan executionResult, 1)
	copied := *d
	old = &copied
	go func() {
		result, err := old.execute(ctx)
		results <- executionResult{result, err}
	}()
	select {
	case <-s.entered:
	case end := <-results:
		d.t.Fatalf("it returned %#v, %v without any %q", end.result.Outcome, end.err, work)
	}
	return old, s, results
}

// releaseBlocked lets an execution that has lost its run continue, and checks that it changes
// nothing.
func (d *driver) releaseBlocked(old *driver, s *blockPoint, results chan executionResult) {
	d.t.Helper()
	unchanged := d.wantUnchanged()
	close(s.release)
	end := <-results
	unchanged("an execution that had lost the run")
	if _, err := d.store.EndExecution(d.t.Context(), old.lease, store.ExecutionEnd{Status: store.StatusFailed}); !errors.Is(err, store.ErrFenced) {
		d.t.Errorf("its result %#v, %v could be saved: %v", end.result.Outcome, end.err, err)
	}
}

// testTakenOverAtDraft: an owner that is slow but alive loses the run. Its later writes are
// rejected, and the run continues with the new owner.
func testTakenOverAtDraft(t *testing.T, s Subject) {
	d := begin(t, s, s.Review.Graph, s.Review.Input)
	old, stop, results := d.executeBlocked(context.WithoutCancel(t.Context()), workDraft, false)
	d.takeOver(t)
	q := d.waits(1)[0]
	d.releaseBlocked(old, stop, results)
	d.decide(s.Review.Approve, q)
	d.completes()
	d.wantOnce(workPublish)
}

func testTakenOverAtPublish(t *testing.T, s Subject) {
	d, q := startReview(t, s)
	d.decide(s.Review.Approve, q)
	old, stop, results := d.executeBlocked(context.WithoutCancel(t.Context()), workPublish, false)
	d.takeOver(t)
	d.completes()
	d.releaseBlocked(old, stop, results)
	d.wantDrafted()
}

// testEffectTakenOver: the new owner cannot know the outcome of the old owner's effect, so it asks;
// and the old owner, which has lost the run, can still record the end.
func testEffectTakenOver(t *testing.T, s Subject) {
	d, q := startDrop(t, s)
	d.decide(s.Drop.Approve, q)
	_, stop, results := d.executeBlocked(context.WithoutCancel(t.Context()), workDrop, false)
	d.takeOver(t)
	doubt := d.waits(1)[0]
	if doubt.Kind != fermata.EffectInDoubt.Name() {
		t.Fatalf("it asks %+v", doubt)
	}
	close(stop.release)
	<-results
	lines := d.ledger()
	if len(lines) != 1 || lines[0].State != store.EffectSucceeded {
		t.Errorf("the ledger has %+v", lines)
	}
	outcome := d.answerInDoubt(nil)
	if _, ok := outcome.(provider.Completed); !ok {
		t.Errorf("it returned %#v", outcome)
	}
	d.wantOnce(workDrop)
}

// testCancelled cancels an execution before it begins, and while it runs. The run must not fail.
func testCancelled(t *testing.T, s Subject) {
	results, cancel := context.WithCancel(t.Context())
	cancel()
	d := begin(t, s, s.Review.Graph, s.Review.Input)
	if result, err := d.execute(results); err == nil {
		t.Fatalf("with a cancelled context it returned %#v", result.Outcome)
	}
	d.takeOver(t)
	d.decide(s.Review.Approve, d.waits(1)[0])
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, _, ended := d.executeBlocked(ctx, workPublish, true)
	cancel()
	end := <-ended
	if end.err == nil {
		t.Errorf("cancelled, it returned %#v", end.result.Outcome)
	}
	if _, givenTime := errors.AsType[*fermata.RetryError](end.err); givenTime || errors.Is(end.err, provider.ErrPark) {
		t.Errorf("cancelled, it returned the error %v", end.err)
	}
	d.wantNotDone(workPublish)
	d.takeOver(t)
	d.completes()
	d.wantOnce(workPublish)
}
