package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/limits"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/roundtrip"
	"github.com/fermata-go/fermata/internal/strictjson"
)

const (
	holdBefore = "before"
	holdAfter  = "after"
)

// hold stops a task before or after its node. The address is that of the graph, whose state it
// shows, with one more segment, because several holds of one graph may be open at once. The lock
// must be held.
func (inst *instance) hold(t *task, status taskStatus, when string) error {
	t.status = status
	return inst.showHold(t, inst.newHold(t, when, 1))
}

// newHold returns the nth version of a hold. The id covers what the hold shows: if that changes,
// the hold gets another id, and an answer to the earlier one is rejected.
func (inst *instance) newHold(t *task, when string, version int) *activation.Record {
	key := []string{"int", inst.exec.Run(), inst.placeOf(t), holdSegment, when}
	if version > 1 {
		key = append(key, strconv.Itoa(version))
	}
	return &activation.Record{
		ID:         ident.Derive(key[0], key[1:]...),
		Address:    activation.Join(inst.location.Address, fermata.Segment{Type: fermata.SegmentHold, ID: when, SubID: inst.flow.nodes[t.node].name}.String()),
		Activation: inst.placeOf(t), RelPath: fermata.Segment{Type: fermata.SegmentHold, ID: when}.String(), Key: KindHold,
		Kind: KindHold, Status: activation.StatusOpen, Seq: version - 1,
	}
}

// showHold makes a task wait at a hold that shows the newest state. The lock must be held.
func (inst *instance) showHold(t *task, r *activation.Record) error {
	t.baseClock, t.base = inst.clock, inst.state
	clear(inst.mergedFields) // from here on the state is shared
	shown, err := inst.flow.stateType.copyValue(t.base)
	if err != nil {
		return inst.unsavable(err)
	}
	inst.recordInterrupt(r, shown)
	t.signals = []*activation.Signal{{Record: r, Info: shown}}
	inst.markTaskDirty(t)
	return nil
}

const holdSegment = string(fermata.SegmentHold)

// refreshHolds makes open holds show the newest state. One that was shown before is superseded. The
// lock must be held.
func (inst *instance) refreshHolds() error {
	for _, t := range inst.tasks {
		if t.status != taskHeldBefore && t.status != taskHeldAfter {
			continue
		}
		r := inst.openHold(t)
		if r == nil {
			continue // it was answered, and is released when the instance is restored
		}
		same, err := inst.showsNewest(t)
		if err == nil && !same { //mutate:changed-hold-asked-again
			err = inst.supersedeHold(t, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openHold returns the open hold of a task.
func (inst *instance) openHold(t *task) *activation.Record {
	if len(t.signals) > 0 {
		return t.signals[0].Record
	}
	if t.loaded {
		for _, r := range inst.exec.loaded.at(t.place).records {
			if r.Kind == KindHold && r.Status == activation.StatusOpen && isHoldOf(r, t.status) {
				return r
			}
		}
	}
	return nil
}

// supersedeHold makes a hold show the newest state: under a new id if it was shown before. The lock
// must be held.
func (inst *instance) supersedeHold(t *task, r *activation.Record) error {
	if !inst.exec.wasLoaded(r) {
		return inst.showHold(t, r) // opened in this execution, and not shown yet
	}
	before, err := inst.encodeShown(t.base)
	if err != nil {
		return err
	}
	next := inst.newHold(t, holdWhen(t.status), r.Seq+2)
	next.Supersedes, next.Before = r.ID, before
	inst.settleInterrupt(r, activation.StatusWithdrawn)
	return inst.showHold(t, next)
}

// showsNewest reports whether the newest state is what the hold of a task shows. Records of other
// holds do not count: see [Graph.RecordHolds].
func (inst *instance) showsNewest(t *task) (bool, error) {
	if t.base == inst.state {
		return true, nil
	}
	before, now := t.base, inst.state
	if inst.flow.holdRecords != nil {
		var err error
		if before, err = inst.withoutRecords(before); err != nil {
			return false, err
		}
		if now, err = inst.withoutRecords(now); err != nil {
			return false, err
		}
	}
	changed, err := inst.editedFields(before, now)
	return len(changed) == 0, err
}

func (inst *instance) withoutRecords(state statePtr) (statePtr, error) {
	own, err := inst.flow.stateType.clone(state)
	if err != nil {
		return nil, inst.unsavable(err)
	}
	if records := inst.flow.holdRecords(own); records != nil {
		*records = nil
	}
	return own, nil
}

// encodeShown returns a state as the JSON that a hold shows.
func (inst *instance) encodeShown(state statePtr) (data json.RawMessage, err error) {
	defer recovery.Recover(&err)
	if data, err = roundtrip.Marshal(inst.flow.stateType.valueOf(state)); err != nil {
		return nil, inst.unsavable(err)
	}
	return data, nil
}

// checkHoldSize returns an error if the state that a hold shows is too large for a request.
func (inst *instance) checkHoldSize(t *task) error {
	if t.status != taskHeldBefore && t.status != taskHeldAfter {
		return nil
	}
	shown, err := inst.encodeShown(t.base)
	if err != nil || len(shown) <= limits.MaxDataBytes {
		return err
	}
	return &fermata.DataSizeError{Value: fmt.Sprintf("the state that the hold %s %s of %s shows", holdWhen(t.status), inst.flow.nodes[t.node].name, inst.location.Address), Size: len(shown)}
}

func holdWhen(status taskStatus) string {
	if status == taskHeldAfter {
		return holdAfter
	}
	return holdBefore
}

// releaseHolds continues every hold that has been answered: first those without an edit, because
// an edit changes what the others have shown.
func (inst *instance) releaseHolds() error {
	for _, edited := range []bool{false, true} {
		for _, t := range inst.tasks {
			if t.status != taskHeldBefore && t.status != taskHeldAfter {
				continue
			}
			for _, r := range inst.exec.loaded.at(t.place).records {
				if r.Kind != KindHold || r.Status != activation.StatusAnswered || !isHoldOf(r, t.status) || (r.Answer != nil) != edited {
					continue
				}
				if err := inst.releaseTask(t, r); err != nil {
					return err
				}
				break
			}
		}
	}
	inst.tasks = slices.DeleteFunc(inst.tasks, func(t *task) bool { return t.status == taskRemoved })
	return nil
}

func isHoldOf(r *activation.Record, status taskStatus) bool {
	return strings.HasSuffix(r.RelPath, holdAfter) == (status == taskHeldAfter)
}

func (inst *instance) releaseTask(t *task, r *activation.Record) error {
	inst.lock()
	defer inst.unlock()
	if r.AnswerType == activation.RefusalType {
		return inst.refuseTask(t, r)
	}
	same, err := inst.showsNewest(t)
	if err != nil {
		return err
	}
	// a modifier of the same call is an edit by its caller
	if !same && !inst.modified { //mutate:answer-to-old-hold
		return inst.reopenHold(t, r, ErrSuperseded)
	}
	var edited bool
	if r.Answer != nil {
		if edited, err = inst.applyEdit(t, r); err != nil {
			return inst.reopenHold(t, r, err) //mutate:hold-conflict-reopens
		}
	}
	if err := inst.recordHold(t, r, edited); err != nil {
		return err
	}
	inst.settleInterrupt(r, activation.StatusAnswered)
	t.baseClock, t.base = inst.clock, inst.state
	inst.markTaskDirty(t)
	if t.status == taskHeldBefore {
		t.status = taskReady
		return nil
	}
	targets, err := inst.successors(t.node, inst.state)
	if err != nil {
		return err
	}
	inst.endTask(t)
	inst.trigger(t.node, targets)
	return nil
}

// applyEdit merges an edited state. It reports whether the state was changed. The lock must be
// held.
func (inst *instance) applyEdit(t *task, r *activation.Record) (bool, error) {
	edited, err := decodeState(inst.flow.stateType, r.Answer)
	if err != nil {
		return false, err
	}
	if err := inst.flow.sameProtected(t.base, edited); err != nil {
		return false, err
	}
	return inst.mergeEdited(t, r, edited)
}

// mergeEdited merges a state that was changed while the task was held, and reports whether it was
// changed. The lock must be held.
func (inst *instance) mergeEdited(t *task, r *activation.Record, edited statePtr) (bool, error) {
	changed, err := inst.editedFields(t.base, edited)
	if err != nil {
		return false, err
	}
	clear(inst.mergedFields)
	return len(changed) > 0, inst.applyUpdate(&stateUpdate{by: r.RelPath, base: t.base, baseClock: t.baseClock, result: edited, changed: changed, version: inst.nextVersion()})
}

// editedFields compares the JSON, which is what was shown: another representation of the same time
// is not an edit.
func (inst *instance) editedFields(base, edited statePtr) (changed []int, err error) {
	for i := range inst.flow.stateType.fields {
		fd := &inst.flow.stateType.fields[i]
		before, err := encodeField(inst.flow.stateType, fd, base)
		if err != nil {
			return nil, err
		}
		after, err := encodeField(inst.flow.stateType, fd, edited)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(before, after) {
			changed = append(changed, i)
		}
	}
	return changed, nil
}

// reopenHold keeps a hold open whose answer could not be used. If the state has changed, the hold
// shows the newest one under a new id: an edit of that state cannot cause the same conflict again.
// The lock must be held.
func (inst *instance) reopenHold(t *task, r *activation.Record, err error) error {
	inst.exec.addBadAnswers([]*activation.BadAnswer{{ID: r.ID, Err: err}})
	r.Status, r.Answer, r.AnswerType, r.Undelivered, r.Attestation = activation.StatusOpen, nil, "", false, activation.Attestation{}
	same, failed := inst.showsNewest(t)
	switch {
	case failed != nil:
		return failed
	case !same:
		return inst.supersedeHold(t, r)
	}
	r.Refused = "the answer could not be used"
	return inst.showHold(t, r)
}

// decodeState decodes a complete state. A missing field would be lost, so it is an error.
func decodeState(sh *stateType, data []byte) (state statePtr, err error) {
	defer recovery.Recover(&err) // a type may have JSON methods that panic
	state = sh.newState()
	if err := strictjson.Decode(data, state); err != nil {
		return state, err
	}
	if sh.singleField {
		return state, nil
	}
	var present map[string]json.RawMessage
	if err := json.Unmarshal(data, &present); err != nil {
		return state, err
	}
	var missing []string
	for i := range sh.fields {
		if _, ok := present[sh.fields[i].name]; !ok && !sh.fields[i].optional {
			missing = append(missing, sh.fields[i].name)
		}
	}
	if len(missing) > 0 { //mutate:hold-needs-whole-state
		return state, fmt.Errorf("the state lacks %s: return the complete state, edited", strings.Join(missing, ", "))
	}
	return state, nil
}

// encodeState returns the JSON of a state that is given as a Go value or as JSON.
func encodeState(sh *stateType, answer any) ([]byte, error) {
	if answer == nil {
		return nil, nil
	}
	switch v := reflect.ValueOf(answer); {
	case v.Type() == reflect.PointerTo(sh.typ):
		if v.IsNil() {
			return nil, errors.New("the state is a nil pointer")
		}
		return roundtrip.Encode(answer)
	case v.Type() == sh.typ, sh.typ.Kind() == reflect.Interface:
		return roundtrip.Encode(sh.pointerTo(v))
	}
	data, err := roundtrip.Encode(answer)
	if err != nil || bytes.Equal(data, jsonNull) {
		return nil, err
	}
	if _, err := decodeState(sh, data); err != nil {
		return nil, err
	}
	return data, nil
}
