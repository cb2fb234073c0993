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

// instance is one graph within a run: the outermost one, or one inside a node.
//
// Only its own goroutine moves it from step to step. mu guards the data that stageChanges reads,
// because a running node may trigger a save at any time.
type instance struct {
	flow     *compiled
	exec     *execution
	location activation.Instance

	mu                sync.Mutex
	clock             int64
	state             statePtr // never modified in place: tasks keep older states as their base
	fields            []fieldVersions
	mergedFields      []bool            // fields that were merged in this step
	extraFields       []savedField      // fields that another program saved
	activations       []int             // number of activations by node
	formerActivations []activationCount // the same for nodes that the graph no longer has
	triggered         []int             // nodes that have been reached
	nextRound         []int             // first nodes of loops that have been reached by a back edge
	stepTasks         []*task           // the tasks of the current step
	freeTask          *task             // a finished task, for reuse
	tasks             []*task
	seq               int64
	// pendingChanges are changes that are saved together with the tasks: interrupts and removed
	// parts.
	pendingChanges []partChange
	// changedTasks and dirty are input of stageChanges; queued is true while the execution has the
	// instance in its list.
	changedTasks []*task
	dirty        bool
	queued       bool
	done         bool
	discarded    bool // the activation that contains it is over
	// inline avoids allocations for the usual case of one element.
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

// lock is used between steps. Then only a save can run concurrently, and only if there is a store.
// While nodes run, mu is used directly.
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

// markDirty records that the instance has changed. The lock must be held.
func (f *instance) markDirty() {
	f.dirty = true
	f.enqueue()
}

// markTaskDirty records that a task has changed. The lock must be held.
func (f *instance) markTaskDirty(t *task) {
	if f.exec.store == nil || t.dirty {
		return
	}
	t.dirty = true
	if !t.queued { // a reused task may still be in the list
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

// fieldVersions are the values of one field that are still needed, newest last. They are identified
// by the instance's clock.
type fieldVersions struct {
	versions []fieldVersion
	by       string // the node that wrote the newest
	inline   [1]fieldVersion
}

// reset makes these the only values.
func (r *fieldVersions) reset(revs ...fieldVersion) { r.versions = append(r.inline[:0], revs...) }

// fieldVersion is one value of a field. data is its JSON if already known; saved is true if it has
// a separate part in the store. A small value has none: it is stored in the instance's part, and
// its data is kept for the next save of that part.
type fieldVersion struct {
	clock int64
	data  []byte
	saved bool
}

// maxInlineValue is the maximum size in bytes of a value in the instance's part.
const maxInlineValue = 64

func (r *fieldVersions) add(rev fieldVersion, by string) {
	r.versions = append(r.versions, rev)
	r.by = by
}

func (r *fieldVersions) newest() int64 { return r.versions[len(r.versions)-1].clock }

// at returns the version of the field at this clock.
func (r *fieldVersions) at(clock int64) int64 {
	found := r.versions[0].clock
	for _, rev := range r.versions {
		if rev.clock <= clock {
			found = rev.clock
		}
	}
	return found
}

// task is one activation of a node that is not over.
type task struct {
	node       int
	activation int
	seq        int64
	place      string // computed on first use, see placeOf
	status     taskStatus
	attempt    int
	// baseClock and base are the clock and the state that the node received.
	baseClock int64
	base      statePtr
	// result, changed, data and version are the result of a finished node, until its step is over.
	result     statePtr
	changed    []int
	changedBuf [2]int // backing array of changed
	data       [][]byte
	version    int64
	// targets are the next nodes, if routed.
	targets []int
	// signals are the open interrupts of the task, if it raised them in this execution.
	signals     []*activation.Signal
	resultSaved bool // the result is in the store
	routed      bool
	dirty       bool
	queued      bool // it is in the instance's list of changed tasks
	saved       bool // the task is, or was, in the store
	loaded      bool // it was in the store when this execution began
}

// placeOf returns the place of a task. The lock must be held.
func (f *instance) placeOf(t *task) string {
	if t.place == "" {
		t.place = activation.PlaceOf(f.location.Place, f.flow.segments[t.node], t.activation)
	}
	return t.place
}

// removeParts stages the removal of parts. The lock must be held.
func (f *instance) removeParts(parts ...string) {
	for _, part := range parts {
		f.addPending(partChange{part: part})
	}
}

// addPending adds changes to the next save. The lock must be held.
func (f *instance) addPending(changes ...partChange) {
	if f.pendingChanges == nil {
		f.pendingChanges = make([]partChange, 0, 4)
	}
	f.pendingChanges = append(f.pendingChanges, changes...)
}

// start initializes a new instance.
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

// run advances the instance until it ends (nil), until all remaining tasks wait (an error for
// Scope.Collect), or until it fails.
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
		// Finished work is saved in any case. A save error is reported first.
		if err := join(f.save(ctx), failure); err != nil {
			return err
		}
	}
	return f.finishOrWait()
}

// save makes the step durable, unless the run saves only when it waits. An instance whose
// activation is over saves nothing: another execution may own the run.
func (f *instance) save(ctx context.Context) error {
	if f.location.Ended() {
		return activation.ErrEnded
	}
	if f.exec.saveOnWait {
		return nil
	}
	return f.exec.flush(ctx)
}

// join is errors.Join without allocations for nil errors.
func join(a, b error) error {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	return errors.Join(a, b)
}

// finishOrWait is called when no task can run. It ends the instance or returns the signals of the
// open interrupts.
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
		return fmt.Errorf("%w: %s has tasks that neither run nor wait", ErrCorrupt, f.location.Address)
	}
	return activation.JoinSignals(signals)
}

// hasUnmerged reports whether a step was interrupted after some of its nodes had finished.
func (f *instance) hasUnmerged() bool {
	return slices.ContainsFunc(f.tasks, func(t *task) bool { return t.status == taskFinished })
}

// nextVersion returns a clock that no value has yet, including those of finished tasks.
func (f *instance) nextVersion() int64 {
	rev := f.clock
	for _, t := range f.tasks {
		rev = max(rev, t.version)
	}
	return rev + 1
}

// readyTasks lists the tasks that can run now, in the order in which their results will be merged.
func (f *instance) readyTasks() []*task {
	f.stepTasks = f.stepTasks[:0]
	for _, t := range f.tasks {
		if t.status == taskReady {
			f.stepTasks = append(f.stepTasks, t)
		}
	}
	return f.stepTasks
}

// successors returns the nodes that edges and branches lead to. A route uses the result of its own
// node, not the changes of siblings, so that the path of a run does not depend on timing.
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

// callRoute calls a route with its own copy of the state. The route may panic.
func callRoute(r route, state statePtr, sh *stateType) (to string, err error) {
	defer recovery.Recover(&err)
	own, err := sh.copyIfShared(state)
	if err != nil {
		return "", err
	}
	return r.pick(own), nil
}

// trigger records that a finished node, or Start, leads to these nodes.
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

// startReady creates tasks for the reached nodes that no active node can still lead to. The lock
// must be held, or the instance not be shared yet.
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
		inner := func(m int) bool { return m != n && round.has(m) } // an inner loop has another iteration to do
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

// activeNodes returns the set of nodes that are active or about to be, except for the next
// iterations, and the set of nodes that they can still lead to.
func (f *instance) activeNodes() (under, ahead nodeSet) {
	p := &f.flow.plan
	under, ahead = newNodeSet(len(f.flow.nodes)), newNodeSet(len(f.flow.nodes))
	for _, n := range f.nextRound { // the next iteration is ahead of the nodes after the loop, and of no node in this iteration
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

// newTask returns a task, possibly a reused one.
func (f *instance) newTask() *task {
	t := f.freeTask
	if t == nil {
		return new(task)
	}
	f.freeTask = nil
	return t
}

// startTask creates a task. The lock must be held.
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
