package graph

import (
	"errors"
	"reflect"
	"slices"
)

// commit brings the results of a step into the state, in the order in which the tasks began, and follows their edges. A
// task whose result cannot be merged or routed stays finished: a mended program merges it without running it again.
func (f *frame[S]) commit() error {
	var failures []error
	for _, t := range slices.Clone(f.tasks) {
		if t.status != taskFinished {
			continue
		}
		if err := f.commitTask(t); err != nil {
			failures = append(failures, err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prune()
	return errors.Join(failures...)
}

func (f *frame[S]) commitTask(t *task[S]) error {
	targets, err := f.follow(t.node, t.result)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	err = f.apply(contribution[S]{
		by: f.flow.nodes[t.node].name, base: t.base, at: t.at, result: t.result, changed: t.changed, data: t.data,
		rev: t.rev, written: t.written,
	})
	if err != nil {
		return err
	}
	t.result, t.changed, t.data, t.written = nil, nil, nil, false
	if f.flow.after[t.node] {
		return f.hold(t, taskResting, holdAfter)
	}
	f.end(t)
	f.lead(targets)
	return nil
}

// end takes a task away. It is called with the lock held.
func (f *frame[S]) end(t *task[S]) {
	f.tasks = slices.DeleteFunc(f.tasks, func(other *task[S]) bool { return other == t })
	f.remove(partTask + t.place)
	f.dirty = true
}

// contribution is what somebody made of the state: a node, or a person who edited it.
type contribution[S any] struct {
	by string
	// base and at are the state that was given and its clock, result the state that came back.
	base   *S
	at     int64
	result *S
	// changed are the fields in which they differ, data their JSON as far as it is known.
	changed []int
	data    [][]byte
	// rev is the clock of the change, written tells whether the changed fields are in the store under it.
	rev     int64
	written bool
}

// apply puts a contribution into the state: all of it or, if a field cannot be merged, nothing. It is called with the lock
// held.
func (f *frame[S]) apply(c contribution[S]) error {
	next := *f.state
	revisions := make([]*revision, len(c.changed))
	for k, i := range c.changed {
		fd := &f.flow.shape.fields[i]
		revisions[k] = &revision{clock: c.rev, data: c.data[k], saved: c.written}
		if f.fields[i].newest() <= c.at {
			set(f.flow.shape, fd, &next, c.result)
			continue
		}
		merged, err := combine(f.flow.shape, fd, c.base, &next, c.result)
		switch {
		case errors.Is(err, errSame):
			revisions[k] = nil
		case errors.Is(err, errConflict):
			return &ConflictError{Field: fd.name, Nodes: [2]string{f.fields[i].by, c.by}}
		case err != nil:
			return &ConflictError{Field: fd.name, Nodes: [2]string{f.fields[i].by, c.by}, Err: err}
		default:
			revisions[k] = &revision{clock: c.rev}
			f.flow.shape.of(fd, reflect.ValueOf(&next).Elem()).Set(merged)
		}
	}
	for k, i := range c.changed {
		if rev := revisions[k]; rev != nil {
			f.fields[i].revs = append(f.fields[i].revs, *rev)
			f.fields[i].by = c.by
		} else if c.written {
			f.fields[i].gone = append(f.fields[i].gone, c.rev)
		}
	}
	f.state, f.clock, f.dirty = &next, max(f.clock, c.rev), true
	return nil
}

var (
	errConflict = errors.New("both changed it")
	errSame     = errors.New("both changed it to the same value")
)

// combine merges the field of result into that of current; both came from base.
func combine[S any](sh *shape, f *field, base, current, result *S) (merged reflect.Value, err error) {
	values := [3]reflect.Value{}
	for i, state := range []*S{base, current, result} {
		values[i] = sh.of(f, reflect.ValueOf(state).Elem())
	}
	if f.merge == nil { // where there is a merge function, two equal values may still be two contributions
		if same(f, values[1], values[2]) {
			return merged, errSame
		}
		return merged, errConflict
	}
	for i := range values { // a merge function may keep or change what it gets
		if values[i], err = deepCopy(values[i], 0); err != nil {
			return merged, err
		}
	}
	defer recovered(&err)
	return f.merge.apply(values[0], values[1], values[2])
}

// prune forgets the values that neither the state nor a task needs. It is called with the lock held.
func (f *frame[S]) prune() {
	for i := range f.fields {
		revs := &f.fields[i]
		if len(revs.revs) == 1 {
			continue
		}
		needed := map[int64]bool{revs.newest(): true}
		for _, t := range f.tasks {
			needed[revs.at(t.at)] = true
		}
		revs.revs = slices.DeleteFunc(revs.revs, func(rev revision) bool {
			if !needed[rev.clock] && rev.saved {
				revs.gone = append(revs.gone, rev.clock)
			}
			return !needed[rev.clock]
		})
	}
}
