package providertest

import (
	"context"
	"errors"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// came is how an execution ended.
type came struct {
	result provider.Result
	err    error
}

// stuck executes in the background until a piece of work does not get on.
func (d *driver) stuck(ctx context.Context, work string, heeds bool) (old *driver, s *stop, over chan came) {
	d.t.Helper()
	s = d.world.stopAt(work, heeds)
	over = make(chan came, 1)
	copied := *d
	old = &copied
	go func() {
		result, err := old.execute(ctx)
		over <- came{result, err}
	}()
	select {
	case <-s.entered:
	case end := <-over:
		d.t.Fatalf("it came to %#v, %v without any %q", end.result.Rest, end.err, work)
	}
	return old, s, over
}

// late lets an execution that has lost its run go on, and looks whether it changes anything.
func (d *driver) late(old *driver, s *stop, over chan came) {
	d.t.Helper()
	unchanged := d.unchanged()
	close(s.release)
	end := <-over
	unchanged("an execution that had lost the run")
	if _, err := d.store.Rest(d.t.Context(), old.lease, store.Rest{Status: store.Failed}); !errors.Is(err, store.ErrFenced) {
		d.t.Errorf("its result %#v, %v could be written down: %v", end.result.Rest, end.err, err)
	}
}

// testTakenOverAtDraft: an owner that is slow and not dead loses the run. What it writes after that is refused, and the run goes on as the new owner has it.
func testTakenOverAtDraft(t *testing.T, s Subject) {
	d := begin(t, s, s.Review.Graph, s.Review.Input)
	old, stop, over := d.stuck(context.WithoutCancel(t.Context()), workDraft, false)
	d.takeOver(t)
	q := d.waits(1)[0]
	d.late(old, stop, over)
	d.decide(s.Review.Approve, q)
	d.completes()
	d.didOnce(workPublish)
}

func testTakenOverAtPublish(t *testing.T, s Subject) {
	d, q := reviewed(t, s)
	d.decide(s.Review.Approve, q)
	old, stop, over := d.stuck(context.WithoutCancel(t.Context()), workPublish, false)
	d.takeOver(t)
	d.completes()
	d.late(old, stop, over)
	d.drafted()
}

// testEffectTakenOver: the new owner cannot know whether the effect of the old one happens, so it asks; and the old one, which has lost the run, can
// still say that it did.
func testEffectTakenOver(t *testing.T, s Subject) {
	d, q := dropped(t, s)
	d.decide(s.Drop.Approve, q)
	_, stop, over := d.stuck(context.WithoutCancel(t.Context()), workDrop, false)
	d.takeOver(t)
	doubt := d.waits(1)[0]
	if doubt.Kind != fermata.InDoubt.Name() {
		t.Fatalf("it asks %+v", doubt)
	}
	close(stop.release)
	<-over
	lines := d.ledger()
	if len(lines) != 1 || lines[0].State != store.Succeeded {
		t.Errorf("the ledger has %+v", lines)
	}
	rest := d.tell(nil)
	if _, ok := rest.(provider.Completed); !ok {
		t.Errorf("it came to %#v", rest)
	}
	d.didOnce(workDrop)
}

// testCancelled ends an execution before it begins, and in the middle. The run is not at fault.
func testCancelled(t *testing.T, s Subject) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	d := begin(t, s, s.Review.Graph, s.Review.Input)
	if result, err := d.execute(over); err == nil {
		t.Fatalf("without any time it came to %#v", result.Rest)
	}
	d.takeOver(t)
	d.decide(s.Review.Approve, d.waits(1)[0])
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, _, ended := d.stuck(ctx, workPublish, true)
	cancel()
	end := <-ended
	if end.err == nil {
		t.Errorf("cancelled, it came to %#v", end.result.Rest)
	}
	if _, givenTime := errors.AsType[*provider.RetryError](end.err); givenTime || errors.Is(end.err, provider.ErrGiveUp) {
		t.Errorf("cancelled, it says %v", end.err)
	}
	d.didNot(workPublish)
	d.takeOver(t)
	d.completes()
	d.didOnce(workPublish)
}
