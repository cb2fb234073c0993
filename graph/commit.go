package graph

import (
	"errors"
	"reflect"
	"slices"
)

// commit brings the results of a step into the state, in the order in which the tasks began, and follows their edges. A
// task whose result cannot be merged or routed stays finished: a mended program merges it without running it again.
func (f *frame[S]) commit() error {
	var failure error
	clear(f.merged)
	for _, t := range f.tasks {
		if t.status == taskFinished {
			failure = join(failure, f.commitTask(t))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tasks = slices.DeleteFunc(f.tasks, func(t *task[S]) bool {
		if t.status != taskOver {
			return false
		}
		f.spare = t
		return true
	})
	f.prune()
	return failure
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

// end marks a task to be taken away. It is called with the lock held.
func (f *frame[S]) end(t *task[S]) {
	t.status, t.dirty = taskOver, false
	if t.saved {
		f.remove(partTask + f.placeOf(t))
	}
	f.touch()
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
	next := c.result
	if c.base != f.state { // otherwise nobody has changed anything since, and the result is the next state
		next = new(S)
		*next = *f.state
	}
	revisions := make([]revision, 0, 8) // stays on the stack for all but the widest changes
	for k, i := range c.changed {
		rev, err := f.contribute(c, k, next)
		if err != nil {
			conflict := &ConflictError{Field: f.flow.shape.fields[i].name, Nodes: [2]string{f.fields[i].by, c.by}}
			if err != errConflict {
				conflict.Err = err
			}
			return conflict
		}
		revisions = append(revisions, rev)
	}
	for k, i := range c.changed {
		revs := &f.fields[i]
		if revisions[k].clock != 0 {
			revs.revs = append(revs.revs, revisions[k])
			revs.by = c.by
		} else if c.written {
			revs.gone = append(revs.gone, c.rev)
		}
	}
	f.state, f.clock = next, max(f.clock, c.rev)
	f.touch()
	return nil
}

// contribute puts one changed field into next, and returns the revision that this makes: none, with clock 0, if somebody
// else made the same change before.
func (f *frame[S]) contribute(c contribution[S], k int, next *S) (revision, error) {
	i := c.changed[k]
	fd := &f.flow.shape.fields[i]
	if f.fields[i].newest() > c.at {
		merged, err := combine(f.flow.shape, fd, c.base, next, c.result, f.merged[i])
		if err == errSame {
			return revision{}, nil
		}
		if err != nil {
			return revision{}, err
		}
		f.merged[i] = true
		f.flow.shape.of(fd, reflect.ValueOf(next).Elem()).Set(merged)
		return revision{clock: c.rev}, nil
	}
	if next != c.result {
		set(f.flow.shape, fd, next, c.result)
	}
	rev := revision{clock: c.rev, saved: c.written}
	if c.data != nil {
		rev.data = c.data[k]
	}
	return rev, nil
}

var (
	errConflict = errors.New("both changed it")
	errSame     = errors.New("both changed it to the same value")
)

// combine merges the field of result into that of current; both came from base. The merge function may change the current
// value in place and return it; own says that this value was made by a merge of the same step, so that nobody else has it.
func combine[S any](sh *shape, f *field, base, current, result *S, own bool) (merged reflect.Value, err error) {
	was := sh.of(f, reflect.ValueOf(base).Elem())
	a, b := sh.of(f, reflect.ValueOf(current).Elem()), sh.of(f, reflect.ValueOf(result).Elem())
	if f.merge == nil { // where there is a merge function, two equal values may still be two contributions
		if same(f, a, b) {
			return merged, errSame
		}
		return merged, errConflict
	}
	if !own {
		if a, err = deepCopy(a, 0); err != nil {
			return merged, err
		}
	}
	defer recovered(&err)
	return f.merge.apply(was, a, b)
}

// prune forgets the values that neither the state nor a task needs. It is called with the lock held.
func (f *frame[S]) prune() {
	for i := range f.fields {
		revs := &f.fields[i]
		if len(revs.revs) == 1 {
			continue
		}
		needed := func(clock int64) bool {
			return clock == revs.newest() || slices.ContainsFunc(f.tasks, func(t *task[S]) bool { return revs.at(t.at) == clock })
		}
		revs.revs = slices.DeleteFunc(revs.revs, func(rev revision) bool {
			if needed(rev.clock) {
				return false
			}
			if rev.saved {
				revs.gone = append(revs.gone, rev.clock)
			}
			return true
		})
	}
}
