package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/recovery"
)

// step enters the nodes of all ready tasks, waits until each has finished, waits or has failed,
// merges the results and starts the next tasks. It returns the failures.
func (inst *instance) step(ctx context.Context, ready []*task) error {
	inst.lock()
	inst.useLatestState(ready)
	inst.unlock()
	rev := inst.nextVersion()
	for _, t := range ready {
		t.version = rev
		rev++
	}
	var failure error
	if len(ready) == 1 {
		failure = inst.runNode(ctx, ready[0], false)
	} else {
		failure = errors.Join(recovery.Parallel(len(ready), inst.flow.parallel, func(i int) error { return inst.runNode(ctx, ready[i], true) })...)
	}
	failure = join(failure, inst.route())
	inst.lock()
	defer inst.unlock()
	failure = join(failure, inst.mergeStep())
	failure = join(failure, inst.startReady())
	failure = join(failure, inst.refreshLatest())
	return join(failure, inst.refreshHolds())
}

// runNode runs a node and records the result. With siblings, a result is saved at once: a crash
// must not repeat it because another node of the step takes longer.
func (inst *instance) runNode(ctx context.Context, t *task, siblings bool) (failure error) {
	// for panics of the observer; callNode recovers panics of the node
	defer recovery.Recover(&failure)
	n := inst.flow.nodes[t.node]
	v, out := inst.flow.newActivation()
	v.Init(&inst.location, &inst.flow.segments[t.node], t.activation, t.attempt)
	if t.loaded {
		saved := inst.exec.loaded.at(t.place)
		v.Restore(t.place, raisedByNode(saved.records), saved.journal)
	}
	inst.exec.reportStep(v, StepStarted)
	err := inst.callNode(v.Enter(ctx), n, t, out)
	var signals []*activation.Signal
	if err != nil {
		signals, err = v.Root().Collect(err)
		signals = activation.Flatten(signals)
	}
	used := v.End()
	if err != nil && used {
		err = v.ExplainUnwrapped(err)
	}
	if err == nil && used {
		err = v.Swallowed(signals)
	}
	state := StepFailed
	switch {
	case err != nil:
	case signals != nil:
		state, err = StepWaiting, inst.onWaiting(t, v, signals)
	default:
		state, err = StepFinished, inst.onFinished(t, v, used, out)
	}
	if err != nil {
		inst.exec.reportStep(v, StepFailed)
		return inst.onFailed(t, v, err)
	}
	inst.exec.reportStep(v, state)
	if siblings { //mutate:sibling-results-saved
		return inst.save(ctx)
	}
	return nil
}

// raisedByNode returns the interrupts that a node raised itself, without its holds.
func raisedByNode(records []*activation.Record) []*activation.Record {
	isHold := func(r *activation.Record) bool { return r.Kind == KindHold }
	if !slices.ContainsFunc(records, isHold) {
		return records
	}
	return slices.DeleteFunc(slices.Clone(records), isHold)
}

// callNode calls the node with its own copy of the state, its timeout, and panic recovery.
func (inst *instance) callNode(ctx context.Context, n *node, t *task, out statePtr) (err error) {
	defer recovery.Recover(&err) //mutate:node-panic-recovered
	own, err := inst.flow.stateType.copyIfShared(t.base)
	if err != nil {
		return inst.unsavable(err)
	}
	if n.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, n.timeout)
		defer cancel()
	}
	return n.run(ctx, own, out, inst.flow.parallel)
}

// onFailed leaves the task ready, to be entered again by the next resume.
func (inst *instance) onFailed(t *task, v *activation.Activation, err error) error {
	//mutate:foreign-interrupt
	// only the text: otherwise this run would seem to wait with interrupts that it does not have
	if other, waits := errors.AsType[*fermata.InterruptError](err); waits {
		err = fmt.Errorf("graph: another run %s waits: answer it there, or run it without a store as part of this run: %v", other.Info.Run, err)
	}
	bad := v.BadAnswers()
	inst.exec.addBadAnswers(bad)
	inst.mu.Lock()
	defer inst.mu.Unlock()
	if !onlyStopped(err) { //mutate:stop-is-no-failure
		t.attempt++ //mutate:failed-node-retried
	}
	inst.markTaskDirty(t)
	for r := range v.Records() {
		if slices.ContainsFunc(bad, func(b *activation.BadAnswer) bool { return b.ID == r.ID }) {
			inst.recordInterrupt(r, nil)
		}
	}
	if _, inner := errors.AsType[*NodeError](err); inner {
		return err
	}
	address, parseErr := fermata.ParseAddress(v.Address())
	return &NodeError{Run: inst.exec.Run(), Address: address, Attempt: t.attempt, Err: errors.Join(err, parseErr)}
}

// onlyStopped reports whether a node ended only because a graph in it was stopped. That is not a
// failure of the node: on re-entry it must find the same state, or it would retry a failed effect
// next to the alternative that it chose.
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

// recordInterrupt stages an interrupt. The lock must be held.
func (inst *instance) recordInterrupt(r *activation.Record, info any) {
	inst.addPending(inst.exec.recordInterrupt(r, info))
}

// settleInterrupt stages an interrupt that can no longer be answered. The lock must be held.
func (inst *instance) settleInterrupt(r *activation.Record, status activation.Status) {
	inst.addPending(inst.exec.settleInterrupt(r, status))
}

// withdrawInterrupts stages interrupts of graphs that the node of this instance abandoned. Code
// that still runs there keeps its own records. The lock must be held.
func (inst *instance) withdrawInterrupts(open []*activation.Record) {
	for _, r := range open {
		settled := r.Closed(activation.StatusWithdrawn)
		inst.recordInterrupt(&settled, nil)
	}
}

// onWaiting makes a task wait. Interrupts that the node raised before and no longer raises are
// withdrawn; answers that it has read are no longer fresh.
func (inst *instance) onWaiting(t *task, v *activation.Activation, signals []*activation.Signal) error {
	inst.exec.addBadAnswers(v.BadAnswers())
	remaining := v.Withdrawable(signals)
	inst.mu.Lock()
	defer inst.mu.Unlock()
	ofNode := make(map[string]bool)
	place := v.Place()
	t.place = place
	abandoned, parts := inst.exec.abandonedBelow(place, signals)
	inst.removeParts(parts...)
	inst.withdrawInterrupts(abandoned)
	for _, s := range signals {
		r := s.Record
		if !activation.Below(r.Activation, place) {
			return fmt.Errorf("graph: an interrupt of %s was raised inside %s: use the context that the node received", r.Address, v.Address())
		}
		// the second: a composite of this node around inner interrupts
		if r.Activation == place || ofNode[r.Parent] {
			ofNode[r.ID] = true
			inst.recordInterrupt(r, s.Info)
		}
	}
	for _, r := range remaining {
		if r.Kind == "" && !r.Composite { //mutate:open-interrupt-raised-again
			return unansweredError(r)
		}
	}
	unused := v.UnusedAnswers()
	inst.pairReplaced(slices.Concat(remaining, unused), signals)
	for _, r := range slices.Concat(remaining, v.Superseded()) {
		inst.settleInterrupt(r, activation.StatusWithdrawn)
	}
	for _, r := range unused {
		if r.Undelivered {
			err := fmt.Errorf("%w: the question changed before the answer was used", ErrWithdrawn)
			if slices.ContainsFunc(signals, func(s *activation.Signal) bool { return s.Record.Supersedes == r.ID }) {
				err = ErrSuperseded
			}
			inst.exec.addBadAnswers([]*activation.BadAnswer{{ID: r.ID, Err: err}})
		}
		inst.settleInterrupt(r, activation.StatusWithdrawn)
	}
	for r := range v.Records() {
		if r.Undelivered && r.Status != activation.StatusWithdrawn {
			r.Undelivered = false
			inst.recordInterrupt(r, nil)
		}
	}
	t.status, t.signals = taskWaiting, signals
	inst.markTaskDirty(t)
	return nil
}

// pairReplaced records which new question of a node replaces one that the node no longer asks: the
// only new one of the same kind at the same place. The lock must be held.
func (inst *instance) pairReplaced(gone []*activation.Record, signals []*activation.Signal) {
	for _, old := range gone {
		if old.Kind == "" {
			continue
		}
		same := func(r *activation.Record) bool {
			return r.Kind == old.Kind && r.Activation == old.Activation && placeOfQuestion(r) == placeOfQuestion(old)
		}
		var next *activation.Record
		n := 0
		for _, s := range signals {
			if same(s.Record) && s.Record.Supersedes == "" && !inst.exec.wasLoaded(s.Record) {
				next, n = s.Record, n+1
			}
		}
		for _, other := range gone {
			if other != old && same(other) {
				n++
			}
		}
		if n == 1 && next != nil {
			next.Supersedes, next.Before = old.ID, old.Data
			inst.recordInterrupt(next, nil)
		}
	}
}

// placeOfQuestion returns the relative path of a question, without the digest of an action.
func placeOfQuestion(r *activation.Record) string {
	outer, last := splitPlace(r.RelPath)
	if strings.HasPrefix(last, string(fermata.SegmentApprove)+":") {
		last, _, _ = strings.Cut(last, "#")
	}
	return activation.Join(outer, last)
}

func unansweredError(r *activation.Record) error {
	return fmt.Errorf("%w: %s at %s", ErrUnanswered, r.ID, r.Address)
}

// onFinished keeps the result of a node until the step is over. It is normalized and encoded here,
// so that a state that cannot be saved is a failure of its node.
func (inst *instance) onFinished(t *task, v *activation.Activation, used bool, out statePtr) error {
	changed := changedFields(inst.flow.stateType, t.base, out, t.changedBuf[:0])
	data, err := inst.flow.stateType.normalize(out, changed, nil)
	if err != nil {
		return inst.unsavable(err)
	}
	if inst.exec.store != nil && !inst.exec.saveOnWait {
		if data == nil {
			data = make([][]byte, len(changed))
		}
		for k, i := range changed {
			if data[k] != nil {
				continue
			}
			if data[k], err = encodeField(inst.flow.stateType, &inst.flow.stateType.fields[i], out); err != nil {
				return inst.unsavable(err)
			}
		}
	}
	inst.mu.Lock()
	defer inst.mu.Unlock()
	if used || t.loaded {
		if err := inst.unusedAnswers(t, v); err != nil {
			return err
		}
	}
	if used {
		if err := inst.removeActivation(t, v); err != nil {
			return err
		}
	}
	t.status, t.result, t.changed, t.data = taskFinished, out, changed, data
	inst.markTaskDirty(t)
	return nil
}

// unusedAnswers returns an error if a question of the finished node is open, or if people answered
// something that it did not ask. The lock must be held.
func (inst *instance) unusedAnswers(t *task, v *activation.Activation) error {
	for r := range v.Records() {
		if _, err := finalStatus(r); err != nil {
			return err
		}
	}
	unused := slices.DeleteFunc(v.UnusedAnswers(), func(r *activation.Record) bool {
		return !r.Undelivered // an earlier entry has used it
	})
	if inst.exec.loaded != nil && len(inst.exec.loaded.at(inst.placeOf(t)).below) > 0 {
		unused = append(unused, inst.exec.unreadBelow(inst.placeOf(t))...)
	}
	if len(unused) == 0 { //mutate:unused-answer-is-error
		return nil
	}
	missing := make([]string, len(unused))
	for i, r := range unused {
		missing[i] = fmt.Sprintf("an answer to %s at %s, which the node did not ask for", r.ID, r.Address)
	}
	return inst.flow.programChanged(inst.exec.Run(), missing...)
}

// removeActivation stages the removal of a finished activation's journal. Its interrupts remain as
// settled. The lock must be held.
func (inst *instance) removeActivation(t *task, v *activation.Activation) error {
	for r := range v.Records() {
		status, err := finalStatus(r)
		if err != nil {
			return err
		}
		inst.settleInterrupt(r, status)
	}
	inst.removeParts(v.Parts()...) //mutate:activation-parts-removed
	changes, open := inst.exec.removeInside(inst.placeOf(t), v.RanGraphs())
	inst.addPending(changes...)
	inst.withdrawInterrupts(open)
	return nil
}

// finalStatus returns the status of an interrupt when its activation is over: a composite is
// answered, an unused question is withdrawn.
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
