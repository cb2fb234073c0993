package graph

import (
	"errors"
	"reflect"
	"slices"

	"github.com/fermata-go/fermata/internal/safely"
)

// route finds out where the tasks lead that have finished. Routes are code of others, and a save need not wait for them.
func (f *frame) route() error {
	var failure, err error
	for _, t := range f.tasks {
		if t.status == taskFinished {
			t.targets, err = f.follow(t.node, t.result)
			t.routed = err == nil
			failure = join(failure, err)
		}
	}
	return failure
}

// commit brings the results of a step into the state, in the order in which the tasks began, and follows their edges. A
// task whose result cannot be merged or routed stays finished: a mended program merges it without running it again. It is
// called with the lock held.
func (f *frame) commit() error {
	var failure error
	clear(f.merged)
	for _, t := range f.tasks {
		if t.status == taskFinished && t.routed {
			failure = join(failure, f.commitTask(t))
		}
	}
	f.tasks = slices.DeleteFunc(f.tasks, func(t *task) bool {
		if t.status != taskOver {
			return false
		}
		f.spare = t
		return true
	})
	f.prune()
	return failure
}

func (f *frame) commitTask(t *task) error {
	err := f.apply(&contribution{
		by: f.flow.nodes[t.node].name, base: t.base, at: t.at, result: t.result, changed: t.changed, data: t.data,
		rev: t.rev, written: t.written, sole: len(f.tasks) == 1,
	})
	if err != nil {
		return err
	}
	t.result, t.changed, t.data, t.written = nil, nil, nil, false
	if f.flow.after[t.node] {
		return f.hold(t, taskResting, holdAfter)
	}
	f.end(t)
	f.lead(t.node, t.targets)
	return nil
}

// end marks a task to be taken away. It is called with the lock held.
func (f *frame) end(t *task) {
	t.status, t.dirty = taskOver, false
	if t.saved {
		f.remove(partTask + f.placeOf(t))
	}
	f.touch()
}

// contribution is what somebody made of the state: a node, or a person who edited it.
type contribution struct {
	by string
	// base and at are the state that was given and its clock, result the state that came back.
	base   statePtr
	at     int64
	result statePtr
	// changed are the fields in which they differ, data their JSON as far as it is known.
	changed []int
	data    [][]byte
	// rev is the clock of the change, written tells whether the changed fields are in the store under it.
	rev     int64
	written bool
	// sole says that nobody else was given a state that has older values.
	sole bool
}

// apply puts a contribution into the state: all of it or, if a field cannot be merged, nothing. It is called with the lock
// held.
func (f *frame) apply(c *contribution) error {
	next := c.result
	if c.base != f.state { // otherwise nobody has changed anything since, and the result is the next state
		next = f.flow.shape.shallow(f.state)
		if err := f.applyTo(next, c); err != nil {
			return err
		}
	} else {
		for k, i := range c.changed {
			if c.sole {
				f.replace(i, c.revision(k))
				f.fields[i].by = c.by
			} else {
				f.fields[i].add(c.revision(k), c.by)
			}
		}
	}
	f.state, f.clock = next, max(f.clock, c.rev)
	f.touch()
	return nil
}

// revision is what the kth changed field becomes if it need not be merged.
func (c *contribution) revision(k int) revision {
	rev := revision{clock: c.rev, saved: c.written}
	if c.data != nil {
		rev.data = c.data[k]
	}
	return rev
}

// applyTo puts a contribution into a state that others have changed, too.
func (f *frame) applyTo(next statePtr, c *contribution) error {
	revisions := make([]revision, len(c.changed))
	for k, i := range c.changed {
		rev, err := f.contribute(c, k, next)
		if err != nil {
			conflict := &ConflictError{Field: f.flow.shape.fields[i].name, Nodes: [2]string{f.fields[i].by, c.by}}
			if !errors.Is(err, errConflict) {
				conflict.Err = err
			}
			return conflict
		}
		revisions[k] = rev
	}
	for k, i := range c.changed {
		if revisions[k].clock != 0 {
			f.fields[i].add(revisions[k], c.by)
		}
		if c.written && !revisions[k].saved { // what was written is not what it became; a large one is written again
			f.removeValue(i, c.rev)
		}
	}
	return nil
}

// contribute puts one changed field into next, and returns the revision that this makes: none, with clock 0, if somebody
// else made the same change before.
func (f *frame) contribute(c *contribution, k int, next statePtr) (revision, error) {
	i := c.changed[k]
	fd := &f.flow.shape.fields[i]
	if f.fields[i].newest() > c.at {
		merged, err := combine(f.flow.shape, fd, c.base, next, c.result, f.merged != nil && f.merged[i])
		if errors.Is(err, errSame) {
			return revision{}, nil
		}
		if err != nil {
			return revision{}, err
		}
		if f.merged == nil {
			f.merged = make([]bool, len(f.fields))
		}
		f.merged[i] = true
		f.flow.shape.of(fd, reflect.ValueOf(next).Elem()).Set(merged)
		return revision{clock: c.rev}, nil
	}
	set(f.flow.shape, fd, next, c.result)
	return c.revision(k), nil
}

var (
	errConflict = errors.New("both changed it")
	errSame     = errors.New("both changed it to the same value")
)

// combine merges the field of result into that of current; both came from base. The merge function may change the current
// value in place and return it; own says that this value was made by a merge of the same step, so that nobody else has it.
func combine(sh *shape, f *field, base, current, result statePtr, own bool) (merged reflect.Value, err error) {
	was := sh.of(f, reflect.ValueOf(base).Elem())
	a, b := sh.of(f, reflect.ValueOf(current).Elem()), sh.of(f, reflect.ValueOf(result).Elem())
	if f.merge == nil { // where there is a merge function, two equal values may still be two contributions
		if same(f, a, b) {
			return merged, errSame
		}
		return merged, errConflict //mutate:merge-conflict
	}
	if !own {
		if a, err = deepCopy(a, 0); err != nil {
			return merged, err
		}
	}
	defer safely.Recover(&err)
	return f.merge.apply(was, a, b)
}

// replace makes this the only value of a field that is still needed. It is called with the lock held.
func (f *frame) replace(i int, newest revision) {
	revs := &f.fields[i]
	for _, rev := range revs.revs {
		if rev.saved && rev.clock != newest.clock {
			f.removeValue(i, rev.clock)
		}
	}
	clear(revs.revs[1:])
	revs.revs = append(revs.revs[:0], newest)
}

// removeValue takes the part of a value away. It is called with the lock held.
func (f *frame) removeValue(i int, clock int64) {
	f.remove(f.flow.shape.fields[i].partName(clock, f.names.Place))
}

// prune forgets the values that neither the state nor a task needs. It is called with the lock held.
func (f *frame) prune() {
	for i := range f.fields {
		revs := &f.fields[i]
		last := len(revs.revs) - 1
		if last == 0 {
			continue
		}
		if len(f.tasks) == 0 {
			f.replace(i, revs.revs[last])
			continue
		}
		needed := func(clock int64) bool {
			return clock == revs.newest() || slices.ContainsFunc(f.tasks, func(t *task) bool { return revs.at(t.at) == clock })
		}
		revs.revs = slices.DeleteFunc(revs.revs, func(rev revision) bool {
			if needed(rev.clock) {
				return false
			}
			if rev.saved {
				f.removeValue(i, rev.clock)
			}
			return true
		})
	}
}
