package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/recovery"
)

// instance is one graph at work within a run: the outermost one, or one inside a node.
//
// Its goroutine alone moves it, from step to step. mu guards what stage reads, because a save may come at any time from
// a node that is running.
type instance struct {
	flow     *compiled
	exec     *execution
	location activation.Instance

	mu                sync.Mutex
	clock             int64
	state             statePtr // never changed in place: tasks keep older ones as their base
	fields            []fieldVersions
	mergedFields      []bool            // fields that were merged in this step
	extraFields       []savedField      // fields that another program saved
	activations       []int             // how often each node was visited
	formerActivations []activationCount // the same of nodes that the graph no longer has
	triggered         []int             // nodes that something led to
	nextRound         []int             // first nodes of loops that something led back to
	stepTasks         []*task           // the tasks of the current step
	freeTask          *task             // firstAlloc that is over, for the next
	tasks             []*task
	seq               int64
	// pending is what else changed together with the tasks: interrupts, and parts that nobody needs any more.
	pendingChanges []partChange
	// changed and dirty are what stage has to look at; listed is true while the session knows that.
	changedTasks []*task
	dirty        bool
	queued       bool
	done         bool
	discarded    bool // the visit that it was in is over
	// room is for what there is in most frames: few of everything.
	inline struct {
		next  [1]int
		tasks [3][1]*task
		task  task
	}
}

func newInstance(fl *compiled, s *execution, names activation.Instance) *instance {
	f := &instance{flow: fl, exec: s, location: names, queued: true}
	f.location.Host = s
	f.triggered = f.inline.next[:0]
	f.tasks, f.stepTasks, f.changedTasks = f.inline.tasks[0][:0], f.inline.tasks[1][:0], f.inline.tasks[2][:0]
	f.freeTask = &f.inline.task
	f.fields = make([]fieldVersions, len(fl.stateType.fields))
	f.activations = make([]int, len(fl.nodes))
	return f
}

// lock is for what happens between steps: then nothing but a save that stages the frame can come in between, and without a
// store there is none. While nodes run, mu itself guards the frame.
func (f *instance) lock() {
	if f.exec.store != nil {
		f.mu.Lock()
	}
}

func (f *instance) unlock() {
	if f.exec.store != nil {
		f.mu.Unlock()
	}
}

// touch notes that the frame has changed. It is called with the lock held.
func (f *instance) markDirty() {
	f.dirty = true
	f.enqueue()
}

// touchTask notes that a task has changed. It is called with the lock held.
func (f *instance) markTaskDirty(t *task) {
	if f.exec.store == nil || t.dirty {
		return
	}
	t.dirty = true
	if !t.queued { // a task that is used again may still be in the list
		t.queued = true
		f.changedTasks = append(f.changedTasks, t)
	}
	f.enqueue()
}

func (f *instance) enqueue() {
	if !f.queued {
		f.queued = true
		f.exec.markChanged(f)
	}
}

// fieldVersions are the values of one field that somebody still needs, the newest last. They are named by the frame's clock.
type fieldVersions struct {
	versions []fieldVersion
	by       string // the node that wrote the newest
	inline   [1]fieldVersion
}

// reset makes these the only values.
func (r *fieldVersions) reset(revs ...fieldVersion) { r.versions = append(r.inline[:0], revs...) }

// fieldVersion is one value of a field. data is its JSON if that is known already; saved is true if it has a part of its own in
// the store. A small value has none: it stands in the frame's part, and its data is kept for the next time that is written.
type fieldVersion struct {
	clock int64
	data  []byte
	saved bool
}

// maxInlineValue is up to how many bytes a value stands in the frame's part.
const maxInlineValue = 64

func (r *fieldVersions) add(rev fieldVersion, by string) {
	r.versions = append(r.versions, rev)
	r.by = by
}

func (r *fieldVersions) newest() int64 { return r.versions[len(r.versions)-1].clock }

// at is the revision that the field had at some clock.
func (r *fieldVersions) at(clock int64) int64 {
	found := r.versions[0].clock
	for _, rev := range r.versions {
		if rev.clock <= clock {
			found = rev.clock
		}
	}
	return found
}

// task is one visit of a node that is not over.
type task struct {
	node       int
	activation int
	seq        int64
	place      string // spelled out when it is needed first, see placeOf
	status     taskStatus
	attempt    int
	// at and base are the clock and the state that the node was given.
	baseClock int64
	base      statePtr
	// result, changed, data and rev are what a node that has finished left, until its step is over.
	result     statePtr
	changed    []int
	changedBuf [2]int // room for changed
	data       [][]byte
	version    int64
	// targets is where the result leads, if routed.
	targets []int
	// signals are what the task waits for, if it began to in this execution.
	signals     []*activation.Signal
	resultSaved bool // the result is in the store
	routed      bool
	dirty       bool
	queued      bool // it is in the frame's list of changed tasks
	saved       bool // the task is, or was, in the store
	loaded      bool // it was there when this execution began
}

// placeOf is called with the lock held.
func (f *instance) placeOf(t *task) string {
	if t.place == "" {
		t.place = activation.PlaceOf(f.location.Place, f.flow.segments[t.node], t.activation)
	}
	return t.place
}

// remove stages the removal of parts. It is called with the lock held.
func (f *instance) removeParts(parts ...string) {
	for _, part := range parts {
		f.addPending(partChange{part: part})
	}
}

// stageLater notes what the next save has to change. It is called with the lock held.
func (f *instance) addPending(changes ...partChange) {
	if f.pendingChanges == nil {
		f.pendingChanges = make([]partChange, 0, 4)
	}
	f.pendingChanges = append(f.pendingChanges, changes...)
}

// start puts the frame at its beginning.
func (f *instance) start(input statePtr) error {
	state, err := f.flow.stateType.copyIfShared(input)
	if err != nil {
		return &fermata.EncodeError{Value: "the input of graph " + f.flow.name, Err: err}
	}
	f.state = state
	f.clock = 1
	for i := range f.fields {
		f.fields[i].reset(fieldVersion{clock: 1})
	}
	f.markDirty()
	targets, err := f.successors(atEnd, f.state)
	if err != nil {
		return err
	}
	f.trigger(atEnd, targets)
	return f.startReady()
}

// run moves the frame as far as it gets: to its end (nil), or to where everything left waits (an error that visit.Collect
// knows), or to a failure.
func (f *instance) run(ctx context.Context) error {
	stop := stopChannel(ctx)
	for steps := 0; ; steps++ {
		ready := f.readyTasks()
		if len(ready) == 0 && !f.hasUnmerged() {
			break
		}
		if err := stopRequested(ctx, stop); err != nil {
			return err
		}
		if f.location.Ended() {
			return activation.ErrEnded
		}
		if steps == f.flow.maxSteps {
			return &StepLimitError{Graph: f.flow.name, Limit: f.flow.maxSteps}
		}
		failure := f.step(ctx, ready)
		if failure != nil && errors.Is(context.Cause(ctx), ErrStopped) {
			failure = fmt.Errorf("%w: %w", ErrStopped, failure)
		}
		// What finished is saved in any case, and a failure to save is the worse news.
		if err := join(f.save(ctx), failure); err != nil {
			return err
		}
	}
	return f.finishOrWait()
}

// save makes the step durable, unless the run saves only when it holds. What was left behind by the node around it saves nothing: somebody else may have
// gone on with the run.
func (f *instance) save(ctx context.Context) error {
	if f.location.Ended() {
		return activation.ErrEnded
	}
	if f.exec.saveOnWait {
		return nil
	}
	return f.exec.flush(ctx)
}

// join is errors.Join without its garbage where nothing went wrong.
func join(a, b error) error {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	return errors.Join(a, b)
}

// rest is what remains when nothing can run: the end, or the signals of what is open.
func (f *instance) finishOrWait() error {
	if len(f.tasks) == 0 {
		f.lock()
		f.done = true
		f.markDirty()
		f.unlock()
		return nil
	}
	var signals []*activation.Signal
	for _, t := range f.tasks {
		if t.signals != nil {
			signals = append(signals, t.signals...)
			continue
		}
		for _, r := range f.exec.OpenInterrupts(t.place) { // it was loaded, so its place is known
			signals = append(signals, &activation.Signal{Record: r})
		}
	}
	if len(signals) == 0 {
		return fmt.Errorf("%w: %s has work that neither runs nor waits", ErrCorrupt, f.location.Address)
	}
	return activation.JoinSignals(signals)
}

// unmerged reports whether a step was left after some of its nodes had finished.
func (f *instance) hasUnmerged() bool {
	return slices.ContainsFunc(f.tasks, func(t *task) bool { return t.status == taskFinished })
}

// nextRev is a clock that no value has yet, those of finished tasks included.
func (f *instance) nextVersion() int64 {
	rev := f.clock
	for _, t := range f.tasks {
		rev = max(rev, t.version)
	}
	return rev + 1
}

// ready lists the tasks that can run now, in the order in which their results will be merged.
func (f *instance) readyTasks() []*task {
	f.stepTasks = f.stepTasks[:0]
	for _, t := range f.tasks {
		if t.status == taskReady {
			f.stepTasks = append(f.stepTasks, t)
		}
	}
	return f.stepTasks
}

// follow lists the nodes that edges and branches lead to from a node that left this state. A route goes by what its own
// node left, not by what siblings did meanwhile, so that the way of a run does not depend on who was faster.
func (f *instance) successors(from int, state statePtr) ([]int, error) {
	name, targets := Start, f.flow.plan.startEdges
	if from != atEnd {
		name, targets = f.flow.nodes[from].name, f.flow.plan.edges[from]
	}
	for _, r := range f.flow.routes[from+1] {
		picked, err := callRoute(r, state, f.flow.stateType)
		if err != nil {
			return nil, err
		}
		to, ok := r.targets[picked]
		if !ok {
			return nil, &RouteError{From: name, To: picked, Declared: r.names}
		}
		targets = append(slices.Clip(targets), to)
	}
	return targets, nil
}

// callRoute asks a route, which gets a state of its own, and may panic.
func callRoute(r route, state statePtr, sh *stateType) (to string, err error) {
	defer recovery.Recover(&err)
	own, err := sh.copyIfShared(state)
	if err != nil {
		return "", err
	}
	return r.pick(own), nil
}

// lead notes that a node that is over, or Start, leads to these nodes.
func (f *instance) trigger(from int, targets []int) {
	for _, to := range targets {
		if to == atEnd {
			continue
		}
		list := &f.triggered
		if from != atEnd && f.flow.plan.isBackEdge(from, to) {
			list = &f.nextRound
		}
		if !slices.Contains(*list, to) {
			*list = append(*list, to)
		}
	}
}

// advance makes tasks of the nodes that nothing under way can lead to any more. It is called with the lock held, or before
// anybody else knows the frame.
func (f *instance) startReady() error {
	if len(f.triggered)+len(f.nextRound) == 0 {
		return nil
	}
	f.markDirty()
	if len(f.tasks) == 0 && len(f.triggered)+len(f.nextRound) == 1 {
		n := append(f.triggered, f.nextRound...)[0]
		f.triggered, f.nextRound = f.triggered[:0], f.nextRound[:0]
		return f.startTask(n)
	}
	under, ahead := f.activeNodes()
	var begun []int
	start := func(n int) bool { begun = append(begun, n); return true }
	//mutate:join-waits
	f.triggered = slices.DeleteFunc(f.triggered, func(n int) bool { return !ahead.has(n) && start(n) })
	waiting := slices.Clone(f.nextRound)
	f.nextRound = slices.DeleteFunc(f.nextRound, func(n int) bool {
		round := f.flow.plan.loops[n]
		inner := func(m int) bool { return m != n && round.has(m) } // a loop inside has another round to go
		return !ahead.has(n) && !under.intersects(round) && !slices.ContainsFunc(waiting, inner) && start(n)
	})
	slices.Sort(begun)
	for _, n := range slices.Compact(begun) {
		if err := f.startTask(n); err != nil {
			return err
		}
	}
	return nil
}

// underWay is the set of nodes where something is or is about to be, rounds that have yet to begin aside, and of those that
// something can still lead to.
func (f *instance) activeNodes() (under, ahead nodeSet) {
	p := &f.flow.plan
	under, ahead = newNodeSet(len(f.flow.nodes)), newNodeSet(len(f.flow.nodes))
	for _, n := range f.nextRound { // the next round is ahead of what comes after the loop, and of nothing in this round
		ahead.unionExcept(p.ahead[n], p.loops[n])
	}
	for _, t := range f.tasks {
		under.set(t.node)
		ahead.union(p.ahead[t.node])
	}
	for _, n := range f.triggered {
		under.set(n)
		ahead.union(p.ahead[n])
	}
	return under, ahead
}

// newTask returns a task for use, perhaps one that is over.
func (f *instance) newTask() *task {
	t := f.freeTask
	if t == nil {
		return new(task)
	}
	f.freeTask = nil
	return t
}

// begin makes a task. It is called with the lock held.
func (f *instance) startTask(n int) error {
	f.activations[n]++
	f.seq++
	t := f.newTask()
	*t = task{node: n, activation: f.activations[n], seq: f.seq, status: taskReady, baseClock: f.clock, base: f.state, queued: t.queued}
	f.markTaskDirty(t)
	f.tasks = append(f.tasks, t)
	if f.flow.before[n] {
		return f.hold(t, taskHeldBefore, holdBefore)
	}
	return nil
}
