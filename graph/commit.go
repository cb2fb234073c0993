package graph

import (
	"errors"
	"reflect"
	"slices"

	"github.com/fermata-go/fermata/internal/recovery"
)

// route determines the targets of finished tasks. It runs user code, so it does not hold the lock
// and saves need not wait for it.
func (inst *instance) route() error {
	var failure, err error
	for _, t := range inst.tasks {
		if t.status == taskFinished {
			t.targets, err = inst.successors(t.node, t.result)
			t.routed = err == nil
			failure = join(failure, err)
		}
	}
	return failure
}

// mergeStep merges the results of a step into the state, in the order in which the tasks began, and
// follows their edges. A task whose result cannot be merged or routed stays finished: a fixed
// program merges it without running it again. The lock must be held.
func (inst *instance) mergeStep() error {
	var failure error
	clear(inst.mergedFields)
	for _, t := range inst.tasks {
		if t.status == taskFinished && t.routed {
			failure = join(failure, inst.mergeTask(t))
		}
	}
	inst.tasks = slices.DeleteFunc(inst.tasks, func(t *task) bool {
		if t.status != taskRemoved {
			return false
		}
		inst.freeTask = t
		return true
	})
	inst.prune()
	return failure
}

func (inst *instance) mergeTask(t *task) error {
	err := inst.applyUpdate(&stateUpdate{
		by: inst.flow.nodes[t.node].name, base: t.base, baseClock: t.baseClock, result: t.result, changed: t.changed, data: t.data,
		version: t.version, resultSaved: t.resultSaved, exclusive: len(inst.tasks) == 1,
	})
	if err != nil {
		return err
	}
	t.result, t.changed, t.data, t.resultSaved = nil, nil, nil, false
	if inst.flow.after[t.node] {
		return inst.hold(t, taskHeldAfter, holdAfter)
	}
	inst.endTask(t)
	inst.trigger(t.node, t.targets)
	return nil
}

// endTask marks a task for removal. The lock must be held.
func (inst *instance) endTask(t *task) {
	t.status, t.dirty = taskRemoved, false
	if t.saved {
		inst.removeParts(partTask + inst.placeOf(t))
	}
	inst.markDirty()
}

// stateUpdate is a change of the state by a node, or by a person who edited it.
type stateUpdate struct {
	by string
	// base and baseClock are the state that was given and its clock; result is the new state.
	base      statePtr
	baseClock int64
	result    statePtr
	// changed are the fields that differ; data is their JSON, as far as it is known.
	changed []int
	data    [][]byte
	// version is the clock of the change; resultSaved reports whether the changed fields are stored
	// under it.
	version     int64
	resultSaved bool
	// exclusive reports that no other task was given a state with older values.
	exclusive bool
}

// applyUpdate applies an update to the state: all of it or, if a field cannot be merged, nothing.
// The lock must be held.
func (inst *instance) applyUpdate(c *stateUpdate) error {
	next := c.result
	// otherwise the state is unchanged since, and the result is the next state
	if c.base != inst.state {
		next = inst.flow.stateType.shallowCopy(inst.state)
		if err := inst.applyMerged(next, c); err != nil {
			return err
		}
	} else {
		for k, i := range c.changed {
			if c.exclusive {
				inst.replaceVersions(i, c.fieldVersion(k))
				inst.fields[i].by = c.by
			} else {
				inst.fields[i].add(c.fieldVersion(k), c.by)
			}
		}
	}
	inst.state, inst.clock = next, max(inst.clock, c.version)
	inst.markDirty()
	return nil
}

// fieldVersion returns the new version of the kth changed field if it need not be merged.
func (c *stateUpdate) fieldVersion(k int) fieldVersion {
	rev := fieldVersion{clock: c.version, saved: c.resultSaved}
	if c.data != nil {
		rev.data = c.data[k]
	}
	return rev
}

// applyMerged applies an update to a state that others have also changed.
func (inst *instance) applyMerged(next statePtr, c *stateUpdate) error {
	revisions := make([]fieldVersion, len(c.changed))
	for k, i := range c.changed {
		rev, err := inst.mergeUpdatedField(c, k, next)
		if err != nil {
			conflict := &ConflictError{Field: inst.flow.stateType.fields[i].name, Nodes: [2]string{inst.fields[i].by, c.by}}
			if !errors.Is(err, errConflict) {
				conflict.Err = err
			}
			return conflict
		}
		revisions[k] = rev
	}
	for k, i := range c.changed {
		if revisions[k].clock != 0 {
			inst.fields[i].add(revisions[k], c.by)
		}
		// the saved value is not the merged one; a large one is saved again
		if c.resultSaved && !revisions[k].saved {
			inst.removeFieldValue(i, c.version)
		}
	}
	return nil
}

// mergeUpdatedField applies one changed field to next and returns the new version: none, with clock
// 0, if another node already made the same change.
func (inst *instance) mergeUpdatedField(c *stateUpdate, k int, next statePtr) (fieldVersion, error) {
	i := c.changed[k]
	fd := &inst.flow.stateType.fields[i]
	if inst.fields[i].newest() > c.baseClock {
		merged, err := mergeValues(inst.flow.stateType, fd, c.base, next, c.result, inst.mergedFields != nil && inst.mergedFields[i])
		if errors.Is(err, errSameChange) {
			return fieldVersion{}, nil
		}
		if err != nil {
			return fieldVersion{}, err
		}
		if inst.mergedFields == nil {
			inst.mergedFields = make([]bool, len(inst.fields))
		}
		inst.mergedFields[i] = true
		inst.flow.stateType.fieldValue(fd, reflect.ValueOf(next).Elem()).Set(merged)
		data, err := inst.flow.stateType.normalize(next, []int{i}, nil)
		if err != nil {
			return fieldVersion{}, err
		}
		rev := fieldVersion{clock: c.version}
		if data != nil {
			rev.data = data[0]
		}
		return rev, nil
	}
	copyField(inst.flow.stateType, fd, next, c.result)
	return c.fieldVersion(k), nil
}

var (
	errConflict   = errors.New("both changed it")
	errSameChange = errors.New("both changed it to the same value")
)

// mergeValues merges the field of result into that of current; both are based on base. The merge
// function may modify the current value in place and return it. own reports that a merge of the
// same step made this value, so that it is not shared.
func mergeValues(sh *stateType, f *field, base, current, result statePtr, own bool) (merged reflect.Value, err error) {
	baseValue := sh.fieldValue(f, reflect.ValueOf(base).Elem())
	a, b := sh.fieldValue(f, reflect.ValueOf(current).Elem()), sh.fieldValue(f, reflect.ValueOf(result).Elem())
	if f.merge == nil { // with a merge function, two equal values may still be two contributions
		if equalField(f, a, b) {
			return merged, errSameChange
		}
		return merged, errConflict //mutate:merge-conflict
	}
	if !own {
		if a, err = deepCopy(a, 0); err != nil {
			return merged, err
		}
	}
	defer recovery.Recover(&err)
	return f.merge.apply(baseValue, a, b)
}

// replaceVersions makes newest the only value of a field. The lock must be held.
func (inst *instance) replaceVersions(i int, newest fieldVersion) {
	revs := &inst.fields[i]
	for _, rev := range revs.versions {
		if rev.saved && rev.clock != newest.clock {
			inst.removeFieldValue(i, rev.clock)
		}
	}
	clear(revs.versions[1:])
	revs.versions = append(revs.versions[:0], newest)
}

// removeFieldValue removes the part of a value. The lock must be held.
func (inst *instance) removeFieldValue(i int, clock int64) {
	inst.removeParts(inst.flow.stateType.fields[i].partName(clock, inst.location.Place))
}

// prune removes the values that neither the state nor a task needs. The lock must be held.
func (inst *instance) prune() {
	for i := range inst.fields {
		revs := &inst.fields[i]
		last := len(revs.versions) - 1
		if last == 0 {
			continue
		}
		if len(inst.tasks) == 0 {
			inst.replaceVersions(i, revs.versions[last])
			continue
		}
		needed := func(clock int64) bool {
			return clock == revs.newest() || slices.ContainsFunc(inst.tasks, func(t *task) bool { return revs.at(t.baseClock) == clock })
		}
		revs.versions = slices.DeleteFunc(revs.versions, func(rev fieldVersion) bool {
			if needed(rev.clock) {
				return false
			}
			if rev.saved {
				inst.removeFieldValue(i, rev.clock)
			}
			return true
		})
	}
}
