package graph

import "github.com/fermata-go/fermata"

// stageChanges passes all changes since the last call to the execution as one batch.
func (inst *instance) stageChanges() error {
	inst.lock()
	defer inst.unlock()
	inst.queued = false
	if inst.discarded {
		return nil // its parts were removed with the activation that contains it
	}
	inst.addPending()
	changes := inst.pendingChanges
	var err error
	for _, t := range inst.changedTasks {
		t.queued = false
		if !t.dirty {
			continue
		}
		if changes, err = inst.stageTask(t, changes); err != nil {
			return err
		}
	}
	if inst.dirty {
		if changes, err = inst.stageState(changes); err != nil {
			return err
		}
	}
	inst.exec.stage(changes...)
	clear(changes)
	clear(inst.changedTasks)
	inst.pendingChanges, inst.changedTasks, inst.dirty = changes[:0], inst.changedTasks[:0], false
	return nil
}

func (inst *instance) stageTask(t *task, changes []partChange) ([]partChange, error) {
	saved := savedTask{Node: inst.flow.nodes[t.node].name, Activation: t.activation, Seq: t.seq, BaseClock: t.baseClock, Status: t.status, Attempt: t.attempt}
	if t.status == taskFinished {
		var err error
		if changes, err = inst.stageResult(t, &saved, changes); err != nil {
			return nil, err
		}
	}
	t.dirty, t.saved = false, true
	return append(changes, partChange{partTask + inst.placeOf(t), saved.encode()}), nil
}

// stageResult stages the result of a node that finished before its siblings.
func (inst *instance) stageResult(t *task, saved *savedTask, changes []partChange) ([]partChange, error) {
	saved.Version = t.version
	if t.data == nil {
		t.data = make([][]byte, len(t.changed))
	}
	for k, i := range t.changed {
		fd := &inst.flow.stateType.fields[i]
		if t.data[k] == nil {
			var err error
			if t.data[k], err = encodeField(inst.flow.stateType, fd, t.result); err != nil {
				return nil, inst.unsavable(err)
			}
		}
		saved.Changed = append(saved.Changed, fd.name)
		changes = append(changes, partChange{fd.partName(t.version, inst.location.Place), t.data[k]})
	}
	t.resultSaved = true
	return changes, nil
}

func (inst *instance) unsavable(err error) error {
	return &fermata.EncodeError{Value: "the state of " + inst.location.Address, Err: err}
}

// stageState stages the instance and the new values of its fields. Removed values are in
// pendingChanges: see prune.
func (inst *instance) stageState(changes []partChange) ([]partChange, error) {
	for i := range inst.fields {
		var err error
		if changes, err = inst.stageField(i, changes); err != nil {
			return nil, err
		}
	}
	return append(changes, partChange{partInstance + inst.location.Place, inst.encode()}), nil
}

func (inst *instance) nodeNames(nodes []int) (names []string) {
	for _, n := range nodes {
		names = append(names, inst.flow.nodes[n].name)
	}
	return names
}

// savedTasks counts the tasks that are, or are about to be, in the store.
func (inst *instance) savedTasks() int {
	n := 0
	for _, t := range inst.tasks {
		if t.status != taskRemoved {
			n++
		}
	}
	return n
}

// stageField stages the new large values of a field as separate parts. Small ones are inline in the
// instance's part.
func (inst *instance) stageField(i int, changes []partChange) ([]partChange, error) {
	fd, revs := &inst.flow.stateType.fields[i], &inst.fields[i]
	for k := range revs.versions {
		rev := &revs.versions[k]
		if rev.saved {
			continue
		}
		if rev.data == nil {
			var err error
			if rev.data, err = encodeField(inst.flow.stateType, fd, inst.stateWith(i, rev.clock)); err != nil {
				return nil, inst.unsavable(err)
			}
		}
		if len(rev.data) > maxInlineValue {
			changes = append(changes, partChange{fd.partName(rev.clock, inst.location.Place), rev.data})
			rev.data, rev.saved = nil, true
		}
	}
	return changes, nil
}

// stateWith returns a state in which field i has the value of that version.
func (inst *instance) stateWith(i int, clock int64) statePtr {
	revs := &inst.fields[i]
	if clock != revs.newest() {
		for _, t := range inst.tasks {
			if revs.at(t.baseClock) == clock {
				return t.base
			}
		}
	}
	return inst.state
}

// discard ends the instance; it is not staged again. It returns its pending changes and the removal
// of everything that it has in the store.
func (inst *instance) discard() []partChange {
	inst.lock()
	defer inst.unlock()
	inst.discarded = true
	changes := append(inst.pendingChanges, partChange{part: partInstance + inst.location.Place})
	for i := range inst.fields {
		fd := &inst.flow.stateType.fields[i]
		for _, rev := range inst.fields[i].versions {
			if rev.saved {
				changes = append(changes, partChange{part: fd.partName(rev.clock, inst.location.Place)})
			}
		}
	}
	for _, t := range inst.tasks {
		changes = append(changes, partChange{part: partTask + inst.placeOf(t)})
	}
	inst.pendingChanges = nil
	return changes
}
