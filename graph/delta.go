package graph

import "github.com/fermata-go/fermata"

// stageChanges passes all changes since the last call to the execution as one batch.
func (f *instance) stageChanges() error {
	f.lock()
	defer f.unlock()
	f.queued = false
	if f.discarded {
		return nil // its parts were removed with the activation that contains it
	}
	f.addPending()
	changes := f.pendingChanges
	var err error
	for _, t := range f.changedTasks {
		t.queued = false
		if !t.dirty {
			continue
		}
		if changes, err = f.stageTask(t, changes); err != nil {
			return err
		}
	}
	if f.dirty {
		if changes, err = f.stageState(changes); err != nil {
			return err
		}
	}
	f.exec.stage(changes...)
	clear(changes)
	clear(f.changedTasks)
	f.pendingChanges, f.changedTasks, f.dirty = changes[:0], f.changedTasks[:0], false
	return nil
}

func (f *instance) stageTask(t *task, changes []partChange) ([]partChange, error) {
	saved := savedTask{Node: f.flow.nodes[t.node].name, Activation: t.activation, Seq: t.seq, BaseClock: t.baseClock, Status: t.status, Attempt: t.attempt}
	if t.status == taskFinished {
		var err error
		if changes, err = f.stageResult(t, &saved, changes); err != nil {
			return nil, err
		}
	}
	t.dirty, t.saved = false, true
	return append(changes, partChange{partTask + f.placeOf(t), saved.encode()}), nil
}

// stageResult stages the result of a node that finished before its siblings.
func (f *instance) stageResult(t *task, saved *savedTask, changes []partChange) ([]partChange, error) {
	saved.Version = t.version
	if t.data == nil {
		t.data = make([][]byte, len(t.changed))
	}
	for k, i := range t.changed {
		fd := &f.flow.stateType.fields[i]
		if t.data[k] == nil {
			var err error
			if t.data[k], err = encodeField(f.flow.stateType, fd, t.result); err != nil {
				return nil, f.unsavable(err)
			}
		}
		saved.Changed = append(saved.Changed, fd.name)
		changes = append(changes, partChange{fd.partName(t.version, f.location.Place), t.data[k]})
	}
	t.resultSaved = true
	return changes, nil
}

func (f *instance) unsavable(err error) error {
	return &fermata.EncodeError{Value: "the state of " + f.location.Address, Err: err}
}

// stageState stages the instance and the new values of its fields. Removed values are in
// pendingChanges: see prune.
func (f *instance) stageState(changes []partChange) ([]partChange, error) {
	for i := range f.fields {
		var err error
		if changes, err = f.stageField(i, changes); err != nil {
			return nil, err
		}
	}
	return append(changes, partChange{partInstance + f.location.Place, f.encode()}), nil
}

func (f *instance) nodeNames(nodes []int) (names []string) {
	for _, n := range nodes {
		names = append(names, f.flow.nodes[n].name)
	}
	return names
}

// savedTasks counts the tasks that are, or are about to be, in the store.
func (f *instance) savedTasks() int {
	n := 0
	for _, t := range f.tasks {
		if t.status != taskRemoved {
			n++
		}
	}
	return n
}

// stageField stages the new large values of a field as separate parts. Small ones are inline in the
// instance's part.
func (f *instance) stageField(i int, changes []partChange) ([]partChange, error) {
	fd, revs := &f.flow.stateType.fields[i], &f.fields[i]
	for k := range revs.versions {
		rev := &revs.versions[k]
		if rev.saved {
			continue
		}
		if rev.data == nil {
			var err error
			if rev.data, err = encodeField(f.flow.stateType, fd, f.stateWith(i, rev.clock)); err != nil {
				return nil, f.unsavable(err)
			}
		}
		if len(rev.data) > maxInlineValue {
			changes = append(changes, partChange{fd.partName(rev.clock, f.location.Place), rev.data})
			rev.data, rev.saved = nil, true
		}
	}
	return changes, nil
}

// stateWith returns a state in which field i has the value of that version.
func (f *instance) stateWith(i int, clock int64) statePtr {
	revs := &f.fields[i]
	if clock != revs.newest() {
		for _, t := range f.tasks {
			if revs.at(t.baseClock) == clock {
				return t.base
			}
		}
	}
	return f.state
}

// discard ends the instance; it is not staged again. It returns its pending changes and the removal
// of everything that it has in the store.
func (f *instance) discard() []partChange {
	f.lock()
	defer f.unlock()
	f.discarded = true
	changes := append(f.pendingChanges, partChange{part: partInstance + f.location.Place})
	for i := range f.fields {
		fd := &f.flow.stateType.fields[i]
		for _, rev := range f.fields[i].versions {
			if rev.saved {
				changes = append(changes, partChange{part: fd.partName(rev.clock, f.location.Place)})
			}
		}
	}
	for _, t := range f.tasks {
		changes = append(changes, partChange{part: partTask + f.placeOf(t)})
	}
	f.pendingChanges = nil
	return changes
}
