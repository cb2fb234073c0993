package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/recovery"
)

// step enters the nodes of all ready tasks, waits until each has finished, waits or has failed, merges what finished and
// finds out what comes next. It returns the failures.
func (f *instance) step(ctx context.Context, ready []*task) error {
	rev := f.nextVersion()
	for _, t := range ready {
		t.version = rev
		rev++
	}
	var failure error
	if len(ready) == 1 {
		failure = f.runNode(ctx, ready[0], false)
	} else {
		failure = errors.Join(recovery.Parallel(len(ready), f.flow.parallel, func(i int) error { return f.runNode(ctx, ready[i], true) })...)
	}
	failure = join(failure, f.route())
	f.lock()
	defer f.unlock()
	failure = join(failure, f.mergeStep())
	return join(failure, f.startReady())
}

// enter runs a node and writes down how that ended. With siblings, a result is saved at once: a crash must not repeat it
// just because another node of the step takes longer.
func (f *instance) runNode(ctx context.Context, t *task, siblings bool) (failure error) {
	defer recovery.Recover(&failure) // of whoever watches; what the node does is caught further in
	n := f.flow.nodes[t.node]
	v, out := f.flow.newActivation()
	v.Init(&f.location, &f.flow.segments[t.node], t.activation, t.attempt)
	if t.loaded {
		saved := f.exec.loaded.at(t.place)
		v.Restore(t.place, raisedByNode(saved.records), saved.journal)
	}
	f.exec.reportStep(v, StepStarted)
	err := f.callNode(v.Enter(ctx), n, t, out)
	var signals []*activation.Signal
	if err != nil {
		signals, err = v.Root().Collect(err)
		signals = activation.Flatten(signals)
	}
	used := v.End()
	if err == nil && used {
		err = v.Swallowed(signals)
	}
	state := StepFailed
	switch {
	case err != nil:
	case signals != nil:
		state, err = StepWaiting, f.onWaiting(t, v, signals)
	default:
		state, err = StepFinished, f.onFinished(t, v, used, out)
	}
	if err != nil {
		f.exec.reportStep(v, StepFailed)
		return f.onFailed(t, v, err)
	}
	f.exec.reportStep(v, state)
	if siblings { //mutate:sibling-results-saved
		return f.save(ctx)
	}
	return nil
}

// raisedByNode are the interrupts that a node raised itself: that it was held is not its business.
func raisedByNode(records []*activation.Record) []*activation.Record {
	held := func(r *activation.Record) bool { return r.Kind == KindHold }
	if !slices.ContainsFunc(records, held) {
		return records
	}
	return slices.DeleteFunc(slices.Clone(records), held)
}

// call gives the node a state of its own, the time it may take, and a net below it.
func (f *instance) callNode(ctx context.Context, n *node, t *task, out statePtr) (err error) {
	defer recovery.Recover(&err) //mutate:node-panic-recovered
	own, err := f.flow.stateType.copyIfShared(t.base)
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
func (f *instance) onFailed(t *task, v *activation.Activation, err error) error {
	//mutate:foreign-interrupt
	if other, waits := errors.AsType[*fermata.InterruptError](err); waits { // the text alone: or this run would be taken for one that waits, with questions that it does not know
		err = fmt.Errorf("graph: run %s waits, which is another one: answer it there, or run it without a store, as a part of this one: %v", other.Info.Run, err)
	}
	bad := v.BadAnswers()
	f.exec.addBadAnswers(bad)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !onlyStopped(err) { //mutate:stop-is-no-failure
		t.attempt++ //mutate:failed-node-retried
	}
	f.markTaskDirty(t)
	for r := range v.Records() {
		if slices.ContainsFunc(bad, func(b *activation.BadAnswer) bool { return b.ID == r.ID }) {
			f.recordInterrupt(r, nil)
		}
	}
	if _, inner := errors.AsType[*NodeError](err); inner {
		return err
	}
	address, parseErr := fermata.ParseAddress(v.Address())
	return &NodeError{Run: f.exec.Run(), Address: address, Err: errors.Join(err, parseErr)}
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
func (f *instance) recordInterrupt(r *activation.Record, info any) {
	f.addPending(f.exec.recordInterrupt(r, info))
}

// settle stages an interrupt that nobody can answer any more. It is called with the lock held.
func (f *instance) settleInterrupt(r *activation.Record, status activation.Status) {
	f.addPending(f.exec.settleInterrupt(r, status))
}

// withdraw stages interrupts of graphs that the node of this frame gave up. What still runs there keeps its own records. It is
// called with the lock held.
func (f *instance) withdrawInterrupts(open []*activation.Record) {
	for _, r := range open {
		settled := r.Closed(activation.StatusWithdrawn)
		f.recordInterrupt(&settled, nil)
	}
}

// waits parks a task. Questions that the node asked before and no longer asks are withdrawn; answers that it has seen are
// no longer fresh.
func (f *instance) onWaiting(t *task, v *activation.Activation, signals []*activation.Signal) error {
	f.exec.addBadAnswers(v.BadAnswers())
	left := v.Withdrawable(signals)
	f.mu.Lock()
	defer f.mu.Unlock()
	mine := make(map[string]bool)
	place := v.Place()
	t.place = place
	abandoned, parts := f.exec.abandonedBelow(place, signals)
	f.removeParts(parts...)
	f.withdrawInterrupts(abandoned)
	for _, s := range signals {
		r := s.Record
		if !activation.Below(r.Activation, place) {
			return fmt.Errorf("graph: an interrupt of %s was raised inside %s: ask with the context that the node was given", r.Address, v.Address())
		}
		if r.Activation == place || mine[r.Parent] { // the second: a composite of this node around what is inside it
			mine[r.ID] = true
			f.recordInterrupt(r, s.Info)
		}
	}
	for _, r := range left {
		if r.Kind == "" && !r.Composite { //mutate:open-interrupt-raised-again
			return unansweredError(r)
		}
		f.settleInterrupt(r, activation.StatusWithdrawn)
	}
	for _, r := range v.UnusedAnswers() {
		if r.Undelivered {
			f.exec.addBadAnswers([]*activation.BadAnswer{{ID: r.ID, Err: fmt.Errorf("%w: before the answer could be used, the question changed", ErrWithdrawn)}})
		}
		f.settleInterrupt(r, activation.StatusWithdrawn)
	}
	for r := range v.Records() {
		if r.Undelivered && r.Status != activation.StatusWithdrawn {
			r.Undelivered = false
			f.recordInterrupt(r, nil)
		}
	}
	t.status, t.signals = taskWaiting, signals
	f.markTaskDirty(t)
	return nil
}

func unansweredError(r *activation.Record) error {
	return fmt.Errorf("%w: %s at %s", ErrUnanswered, r.ID, r.Address)
}

// finished keeps the result of a node until the step is over. Its JSON is made here, so that a state which cannot be saved
// is a failure of the node that made it.
func (f *instance) onFinished(t *task, v *activation.Activation, used bool, out statePtr) error {
	changed := changedFields(f.flow.stateType, t.base, out, t.changedBuf[:0])
	var data [][]byte
	if f.exec.store != nil && !f.exec.saveOnWait {
		data = make([][]byte, len(changed))
		for k, i := range changed {
			var err error
			if data[k], err = encodeField(f.flow.stateType, &f.flow.stateType.fields[i], out); err != nil {
				return f.unsavable(err)
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if used {
		if err := f.removeActivation(t, v); err != nil {
			return err
		}
	}
	t.status, t.result, t.changed, t.data = taskFinished, out, changed, data
	f.markTaskDirty(t)
	return nil
}

// forget stages the removal of what a visit that is over remembered. Of its interrupts remains that they are settled. It is
// called with the lock held.
func (f *instance) removeActivation(t *task, v *activation.Activation) error {
	for r := range v.Records() {
		status, err := finalStatus(r)
		if err != nil {
			return err
		}
		f.settleInterrupt(r, status)
	}
	f.removeParts(v.Parts()...) //mutate:activation-parts-removed
	changes, open := f.exec.removeInside(f.placeOf(t), v.RanGraphs())
	f.addPending(changes...)
	f.withdrawInterrupts(open)
	return nil
}

// finalStatus is what becomes of an interrupt when its visit is over: a place that only contained others is answered with
// them, a question that the node no longer needed is withdrawn.
func finalStatus(r *activation.Record) (activation.Status, error) {
	switch {
	case r.Status != activation.StatusOpen:
		return r.Status, nil
	case r.Composite:
		return activation.StatusAnswered, nil
	case r.Kind != "":
		return activation.StatusWithdrawn, nil
	}
	return "", unansweredError(r) //mutate:forgotten-interrupt
}
