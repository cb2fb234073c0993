package graph

import "github.com/fermata-go/fermata"

// stage hands the session everything that changed since the last time, as one batch.
func (f *frame) stage() error {
	f.lock()
	defer f.unlock()
	f.listed = false
	if f.gone {
		return nil // what is left of it has been removed with the visit that it was in
	}
	f.stageLater()
	changes := f.pending
	var err error
	for _, t := range f.changed {
		t.listed = false
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
	f.sess.put(changes...)
	clear(changes)
	clear(f.changed)
	f.pending, f.changed, f.dirty = changes[:0], f.changed[:0], false
	return nil
}

func (f *frame) stageTask(t *task, changes []change) ([]change, error) {
	saved := savedTask{Node: f.flow.nodes[t.node].name, Visit: t.visit, Seq: t.seq, At: t.at, Status: t.status, Attempt: t.attempt}
	if t.status == taskFinished {
		var err error
		if changes, err = f.stageResult(t, &saved, changes); err != nil {
			return nil, err
		}
	}
	t.dirty, t.saved = false, true
	return append(changes, change{partTask + f.placeOf(t), saved.encode()}), nil
}

// stageResult stages what a node left that has finished before its siblings.
func (f *frame) stageResult(t *task, saved *savedTask, changes []change) ([]change, error) {
	saved.Rev = t.rev
	if t.data == nil {
		t.data = make([][]byte, len(t.changed))
	}
	for k, i := range t.changed {
		fd := &f.flow.shape.fields[i]
		if t.data[k] == nil {
			var err error
			if t.data[k], err = encodeField(f.flow.shape, fd, t.result); err != nil {
				return nil, f.unsavable(err)
			}
		}
		saved.Changed = append(saved.Changed, fd.name)
		changes = append(changes, change{fd.partName(t.rev, f.names.Place), t.data[k]})
	}
	t.written = true
	return changes, nil
}

func (f *frame) unsavable(err error) error {
	return &fermata.EncodeError{What: "the state of " + f.names.Address, Err: err}
}

// stageState stages the frame itself and the values of its fields that are new. Values that nobody needs any more are pending: see prune.
func (f *frame) stageState(changes []change) ([]change, error) {
	for i := range f.fields {
		var err error
		if changes, err = f.stageField(i, changes); err != nil {
			return nil, err
		}
	}
	return append(changes, change{partFrame + f.names.Place, f.encode()}), nil
}

func (f *frame) nodeNames(nodes []int) (names []string) {
	for _, n := range nodes {
		names = append(names, f.flow.nodes[n].name)
	}
	return names
}

// live counts the tasks that are, or are about to be, in the store.
func (f *frame) live() int {
	n := 0
	for _, t := range f.tasks {
		if t.status != taskOver {
			n++
		}
	}
	return n
}

// stageField stages the values of a field that are new and large as parts of their own. Small ones stand in the frame's part.
func (f *frame) stageField(i int, changes []change) ([]change, error) {
	fd, revs := &f.flow.shape.fields[i], &f.fields[i]
	for k := range revs.revs {
		rev := &revs.revs[k]
		if rev.saved {
			continue
		}
		if rev.data == nil {
			var err error
			if rev.data, err = encodeField(f.flow.shape, fd, f.having(i, rev.clock)); err != nil {
				return nil, f.unsavable(err)
			}
		}
		if len(rev.data) > smallValue {
			changes = append(changes, change{fd.partName(rev.clock, f.names.Place), rev.data})
			rev.data, rev.saved = nil, true
		}
	}
	return changes, nil
}

// having returns a state in which field i has the value of that revision.
func (f *frame) having(i int, clock int64) statePtr {
	revs := &f.fields[i]
	if clock != revs.newest() {
		for _, t := range f.tasks {
			if revs.at(t.at) == clock {
				return t.base
			}
		}
	}
	return f.state
}

// discard makes the frame one that is never staged again. It returns what the frame had yet to stage, and the removal of
// everything that it has in the store.
func (f *frame) discard() []change {
	f.lock()
	defer f.unlock()
	f.gone = true
	changes := append(f.pending, change{part: partFrame + f.names.Place})
	for i := range f.fields {
		fd := &f.flow.shape.fields[i]
		for _, rev := range f.fields[i].revs {
			if rev.saved {
				changes = append(changes, change{part: fd.partName(rev.clock, f.names.Place)})
			}
		}
	}
	for _, t := range f.tasks {
		changes = append(changes, change{part: partTask + f.placeOf(t)})
	}
	f.pending = nil
	return changes
}
