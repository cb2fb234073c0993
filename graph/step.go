package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/safely"
	"github.com/fermata-go/fermata/internal/visit"
)

// step enters the nodes of all ready tasks, waits until each has finished, waits or has failed, merges what finished and
// finds out what comes next. It returns the failures.
func (f *frame) step(ctx context.Context, ready []*task) error {
	rev := f.nextRev()
	for _, t := range ready {
		t.rev = rev
		rev++
	}
	var failure error
	if len(ready) == 1 {
		failure = f.enter(ctx, ready[0], false)
	} else {
		failure = errors.Join(safely.InParallel(len(ready), f.flow.parallel, func(i int) error { return f.enter(ctx, ready[i], true) })...)
	}
	failure = join(failure, f.route())
	f.lock()
	defer f.unlock()
	failure = join(failure, f.commit())
	return join(failure, f.advance())
}

// enter runs a node and writes down how that ended. With siblings, a result is saved at once: a crash must not repeat it
// just because another node of the step takes longer.
func (f *frame) enter(ctx context.Context, t *task, siblings bool) (failure error) {
	defer safely.Recover(&failure) // of whoever watches; what the node does is caught further in
	n := f.flow.nodes[t.node]
	v, out := f.flow.entry()
	v.Init(&f.names, &f.flow.segments[t.node], t.visit, t.attempt)
	if t.loaded {
		saved := f.sess.loaded.at(t.place)
		v.Restore(t.place, asked(saved.records), saved.journal)
	}
	f.sess.tell(v, StepStarted)
	err := f.call(v.Enter(ctx), n, t, out)
	var signals []*visit.Signal
	if err != nil {
		signals, err = v.Root().Collect(err)
		signals = visit.Flatten(signals)
	}
	used := v.End()
	if err == nil && used {
		err = v.Swallowed(signals)
	}
	state := StepFailed
	switch {
	case err != nil:
	case signals != nil:
		state, err = StepWaits, f.waits(t, v, signals)
	default:
		state, err = StepFinished, f.finished(t, v, used, out)
	}
	if err != nil {
		f.sess.tell(v, StepFailed)
		return f.failed(t, v, err)
	}
	f.sess.tell(v, state)
	if siblings { //mutate:sibling-results-saved
		return f.save(ctx)
	}
	return nil
}

// asked are the interrupts that a node raised itself: that it was held is not its business.
func asked(records []*visit.Record) []*visit.Record {
	held := func(r *visit.Record) bool { return r.Kind == KindHold }
	if !slices.ContainsFunc(records, held) {
		return records
	}
	return slices.DeleteFunc(slices.Clone(records), held)
}

// call gives the node a state of its own, the time it may take, and a net below it.
func (f *frame) call(ctx context.Context, n *node, t *task, out statePtr) (err error) {
	defer safely.Recover(&err) //mutate:node-panic-recovered
	own, err := f.flow.shape.own(t.base)
	if err != nil {
		return f.unsavable(err)
	}
	if n.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, n.timeout)
		defer cancel()
	}
	return n.run(ctx, own, out, f.flow.parallel)
}

// failed leaves the task ready, to be entered again by the next resume.
func (f *frame) failed(t *task, v *visit.Visit, err error) error {
	//mutate:foreign-interrupt
	if other, waits := errors.AsType[*fermata.InterruptError](err); waits { // the text alone: or this run would be taken for one that waits, with questions that it does not know
		err = fmt.Errorf("graph: run %s waits, which is another one: answer it there, or run it without a store, as a part of this one: %v", other.Info.Run, err)
	}
	bad := v.BadAnswers()
	f.sess.refused(bad)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !onlyStopped(err) { //mutate:stop-is-no-failure
		t.attempt++ //mutate:failed-node-retried
	}
	f.touchTask(t)
	for r := range v.Records() {
		if slices.ContainsFunc(bad, func(b *visit.BadAnswer) bool { return b.ID == r.ID }) {
			f.keep(r, nil)
		}
	}
	if _, inner := errors.AsType[*NodeError](err); inner {
		return err
	}
	address, parseErr := fermata.ParseAddress(v.Address())
	return &NodeError{Run: f.sess.Run(), Address: address, Err: errors.Join(err, parseErr)}
}

// onlyStopped reports whether a node ended because a graph in it was stopped, and for nothing else. That is no failure of the node: entered again, it has to find
// what it found, or it would try again what has failed, beside what it did instead.
func onlyStopped(err error) bool {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		parts := e.Unwrap()
		return len(parts) > 0 && !slices.ContainsFunc(parts, func(part error) bool { return !onlyStopped(part) })
	case interface{ Unwrap() error }:
		return onlyStopped(e.Unwrap())
	}
	return err == ErrStopped
}

// keep stages an interrupt. It is called with the lock held.
func (f *frame) keep(r *visit.Record, info any) {
	f.stageLater(f.sess.keep(r, info))
}

// settle stages an interrupt that nobody can answer any more. It is called with the lock held.
func (f *frame) settle(r *visit.Record, status visit.Status) {
	f.stageLater(f.sess.settle(r, status))
}

// withdraw stages interrupts of graphs that the node of this frame gave up. What still runs there keeps its own records. It is
// called with the lock held.
func (f *frame) withdraw(open []*visit.Record) {
	for _, r := range open {
		settled := r.Settled(visit.Withdrawn)
		f.keep(&settled, nil)
	}
}

// waits parks a task. Questions that the node asked before and no longer asks are withdrawn; answers that it has seen are
// no longer fresh.
func (f *frame) waits(t *task, v *visit.Visit, signals []*visit.Signal) error {
	f.sess.refused(v.BadAnswers())
	left := v.Left(signals)
	f.mu.Lock()
	defer f.mu.Unlock()
	mine := make(map[string]bool)
	place := v.Place()
	t.place = place
	abandoned, parts := f.sess.abandoned(place, signals)
	f.remove(parts...)
	f.withdraw(abandoned)
	for _, s := range signals {
		r := s.Record
		if !visit.Below(r.Visit, place) {
			return fmt.Errorf("graph: an interrupt of %s was raised inside %s: ask with the context that the node was given", r.Address, v.Address())
		}
		if r.Visit == place || mine[r.Parent] { // the second: a composite of this node around what is inside it
			mine[r.ID] = true
			f.keep(r, s.Info)
		}
	}
	for _, r := range left {
		if r.Kind == "" && !r.Composite { //mutate:open-interrupt-raised-again
			return unanswered(r)
		}
		f.settle(r, visit.Withdrawn)
	}
	for _, r := range v.Unused() {
		if r.Fresh {
			f.sess.refused([]*visit.BadAnswer{{ID: r.ID, Err: fmt.Errorf("%w: before the answer could be used, the question changed", ErrStale)}})
		}
		f.settle(r, visit.Withdrawn)
	}
	for r := range v.Records() {
		if r.Fresh && r.Status != visit.Withdrawn {
			r.Fresh = false
			f.keep(r, nil)
		}
	}
	t.status, t.signals = taskWaiting, signals
	f.touchTask(t)
	return nil
}

func unanswered(r *visit.Record) error {
	return fmt.Errorf("%w: %s at %s", ErrUnanswered, r.ID, r.Address)
}

// finished keeps the result of a node until the step is over. Its JSON is made here, so that a state which cannot be saved
// is a failure of the node that made it.
func (f *frame) finished(t *task, v *visit.Visit, used bool, out statePtr) error {
	changed := diff(f.flow.shape, t.base, out, t.few[:0])
	var data [][]byte
	if f.sess.store != nil && !f.sess.saveOnHold {
		data = make([][]byte, len(changed))
		for k, i := range changed {
			var err error
			if data[k], err = encodeField(f.flow.shape, &f.flow.shape.fields[i], out); err != nil {
				return f.unsavable(err)
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if used {
		if err := f.forget(t, v); err != nil {
			return err
		}
	}
	t.status, t.result, t.changed, t.data = taskFinished, out, changed, data
	f.touchTask(t)
	return nil
}

// forget stages the removal of what a visit that is over remembered. Of its interrupts remains that they are settled. It is
// called with the lock held.
func (f *frame) forget(t *task, v *visit.Visit) error {
	for r := range v.Records() {
		status, err := lastStatus(r)
		if err != nil {
			return err
		}
		f.settle(r, status)
	}
	f.remove(v.Parts()...) //mutate:activation-parts-removed
	changes, open := f.sess.inside(f.placeOf(t), v.RanGraphs())
	f.stageLater(changes...)
	f.withdraw(open)
	return nil
}

// lastStatus is what becomes of an interrupt when its visit is over: a place that only contained others is answered with
// them, a question that the node no longer needed is withdrawn.
func lastStatus(r *visit.Record) (visit.Status, error) {
	switch {
	case r.Status != visit.Open:
		return r.Status, nil
	case r.Composite:
		return visit.Answered, nil
	case r.Kind != "":
		return visit.Withdrawn, nil
	}
	return "", unanswered(r) //mutate:forgotten-interrupt
}
