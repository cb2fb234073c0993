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
	// first nodes of loops that have been reached by a back edge
	nextRound []int
	stepTasks []*task // the tasks of the current step
	freeTask  *task   // a finished task, for reuse
	tasks     []*task
	seq       int64
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
	modified     bool // a state modifier of this call changed the state
	// inline avoids allocations for the usual case of one element.
	inline struct {
		next  [1]int
		tasks [3][1]*task
		task  task
	}
}

func newInstance(fl *compiled, exec *execution, names activation.Instance) *instance {
	f := &instance{flow: fl, exec: exec, location: names, queued: true}
	f.location.Host = exec
	f.triggered = f.inline.next[:0]
	f.tasks, f.stepTasks, f.changedTasks = f.inline.tasks[0][:0], f.inline.tasks[1][:0], f.inline.tasks[2][:0]
	f.freeTask = &f.inline.task
	f.fields = make([]fieldVersions, len(fl.stateType.fields))
	f.activations = make([]int, len(fl.nodes))
	return f
}

// lock is used between steps. Then only a save can run concurrently, and only if there is a store.
// While nodes run, mu is used directly.
func (inst *instance) lock() {
	if inst.exec.store != nil {
		inst.mu.Lock()
	}
}

func (inst *instance) unlock() {
	if inst.exec.store != nil {
		inst.mu.Unlock()
	}
}

// markDirty records that the instance has changed. The lock must be held.
func (inst *instance) markDirty() {
	inst.dirty = true
	inst.enqueue()
}

// markTaskDirty records that a task has changed. The lock must be held.
func (inst *instance) markTaskDirty(t *task) {
	if inst.exec.store == nil || t.dirty {
		return
	}
	t.dirty = true
	if !t.queued { // a reused task may still be in the list
		t.queued = true
		inst.changedTasks = append(inst.changedTasks, t)
	}
	inst.enqueue()
}

func (inst *instance) enqueue() {
	if !inst.queued {
		inst.queued = true
		inst.exec.markChanged(inst)
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
func (inst *instance) placeOf(t *task) string {
	if t.place == "" {
		t.place = activation.PlaceOf(inst.location.Place, inst.flow.segments[t.node], t.activation)
	}
	return t.place
}

// removeParts stages the removal of parts. The lock must be held.
func (inst *instance) removeParts(parts ...string) {
	for _, part := range parts {
		inst.addPending(partChange{part: part})
	}
}

// addPending adds changes to the next save. The lock must be held.
func (inst *instance) addPending(changes ...partChange) {
	if inst.pendingChanges == nil {
		inst.pendingChanges = make([]partChange, 0, 4)
	}
	inst.pendingChanges = append(inst.pendingChanges, changes...)
}

// start initializes a new instance.
func (inst *instance) start(input statePtr) error {
	state, err := inst.flow.stateType.normalizedCopy(input)
	if err != nil {
		return &fermata.EncodeError{Value: "the input of graph " + inst.flow.name, Err: err}
	}
	inst.state = state
	inst.clock = 1
	for i := range inst.fields {
		inst.fields[i].reset(fieldVersion{clock: 1})
	}
	inst.markDirty()
	targets, err := inst.successors(atEnd, inst.state)
	if err != nil {
		return err
	}
	inst.trigger(atEnd, targets)
	return inst.startReady()
}

// run advances the instance until it ends (nil), until all remaining tasks wait (an error for
// Scope.Collect), or until it fails.
func (inst *instance) run(ctx context.Context) error {
	stop := stopChannel(ctx)
	for steps := 0; ; steps++ {
		ready := inst.readyTasks()
		if len(ready) == 0 && !inst.hasUnmerged() {
			break
		}
		if err := stopRequested(ctx, stop); err != nil {
			return err
		}
		if inst.location.Ended() {
			return activation.ErrEnded
		}
		if steps == inst.flow.maxSteps {
			return &StepLimitError{Graph: inst.flow.name, Limit: inst.flow.maxSteps}
		}
		failure := inst.step(ctx, ready)
		if failure != nil && errors.Is(context.Cause(ctx), ErrStopped) {
			failure = fmt.Errorf("%w: %w", ErrStopped, failure)
		}
		// Finished work is saved in any case. A save error is reported first.
		if err := join(inst.save(ctx), failure); err != nil {
			return err
		}
	}
	return inst.finishOrWait()
}

// save makes the step durable, unless the run saves only when it waits. An instance whose
// activation is over saves nothing: another execution may own the run.
func (inst *instance) save(ctx context.Context) error {
	if inst.location.Ended() {
		return activation.ErrEnded
	}
	if inst.exec.saveOnWait {
		return nil
	}
	return inst.exec.flush(ctx)
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
func (inst *instance) finishOrWait() error {
	if len(inst.tasks) == 0 {
		inst.lock()
		inst.done = true
		inst.markDirty()
		inst.unlock()
		return nil
	}
	var signals []*activation.Signal
	for _, t := range inst.tasks {
		if err := inst.checkHoldSize(t); err != nil {
			return err
		}
		if t.signals != nil {
			signals = append(signals, t.signals...)
			continue
		}
		// it was loaded, so its place is known
		for _, r := range inst.exec.OpenInterrupts(t.place) {
			signals = append(signals, &activation.Signal{Record: r})
		}
	}
	if len(signals) == 0 {
		return fmt.Errorf("%w: %s has tasks that neither run nor wait", ErrCorrupt, inst.location.Address)
	}
	return activation.JoinSignals(signals)
}

// hasUnmerged reports whether a step was interrupted after some of its nodes had finished.
func (inst *instance) hasUnmerged() bool {
	return slices.ContainsFunc(inst.tasks, func(t *task) bool { return t.status == taskFinished })
}

// nextVersion returns a clock that no value has yet, including those of finished tasks.
func (inst *instance) nextVersion() int64 {
	rev := inst.clock
	for _, t := range inst.tasks {
		rev = max(rev, t.version)
	}
	return rev + 1
}

// readyTasks lists the tasks that can run now, in the order in which their results will be merged.
func (inst *instance) readyTasks() []*task {
	inst.stepTasks = inst.stepTasks[:0]
	first := rankNothing
	for _, t := range inst.tasks {
		if t.status != taskReady {
			continue
		}
		if rank := inst.rank(t); rank < first {
			inst.stepTasks, first = inst.stepTasks[:0], rank
		} else if rank > first {
			continue
		}
		inst.stepTasks = append(inst.stepTasks, t)
	}
	return inst.stepTasks
}

// successors returns the nodes that edges and branches lead to. A route uses the result of its own
// node, not the changes of siblings, so that the path of a run does not depend on timing.
func (inst *instance) successors(from int, state statePtr) ([]int, error) {
	name, targets := Start, inst.flow.plan.startEdges
	if from != atEnd {
		name, targets = inst.flow.nodes[from].name, inst.flow.plan.edges[from]
	}
	for _, r := range inst.flow.routes[from+1] {
		picked, err := callRoute(r, state, inst.flow.stateType)
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
func (inst *instance) trigger(from int, targets []int) {
	for _, to := range targets {
		if to == atEnd {
			continue
		}
		list := &inst.triggered
		if from != atEnd && inst.flow.plan.isBackEdge(from, to) {
			list = &inst.nextRound
		}
		if !slices.Contains(*list, to) {
			*list = append(*list, to)
		}
	}
}

// startReady creates tasks for the reached nodes that no active node can still lead to. The lock
// must be held, or the instance not be shared yet.
func (inst *instance) startReady() error {
	if len(inst.triggered)+len(inst.nextRound) == 0 {
		return nil
	}
	inst.markDirty()
	if len(inst.tasks) == 0 && len(inst.triggered)+len(inst.nextRound) == 1 {
		n := append(inst.triggered, inst.nextRound...)[0]
		inst.triggered, inst.nextRound = inst.triggered[:0], inst.nextRound[:0]
		return inst.startTask(n)
	}
	under, ahead := inst.activeNodes()
	var begun []int
	start := func(n int) bool { begun = append(begun, n); return true }
	//mutate:join-waits
	inst.triggered = slices.DeleteFunc(inst.triggered, func(n int) bool { return !ahead.has(n) && start(n) })
	waiting := slices.Clone(inst.nextRound)
	inst.nextRound = slices.DeleteFunc(inst.nextRound, func(n int) bool {
		round := inst.flow.plan.loops[n]
		// an inner loop has another iteration to do
		inner := func(m int) bool { return m != n && round.has(m) }
		return !ahead.has(n) && !under.intersects(round) && !slices.ContainsFunc(waiting, inner) && start(n)
	})
	slices.Sort(begun)
	for _, n := range slices.Compact(begun) {
		if err := inst.startTask(n); err != nil {
			return err
		}
	}
	return nil
}

// activeNodes returns the set of nodes that are active or about to be, except for the next
// iterations, and the set of nodes that they can still lead to.
func (inst *instance) activeNodes() (under, ahead nodeSet) {
	p := &inst.flow.plan
	under, ahead = newNodeSet(len(inst.flow.nodes)), newNodeSet(len(inst.flow.nodes))
	// the next iteration is ahead of the nodes after the loop, and of no node in this iteration
	for _, n := range inst.nextRound {
		ahead.unionExcept(p.ahead[n], p.loops[n])
	}
	for _, t := range inst.tasks {
		under.set(t.node)
		ahead.union(p.ahead[t.node])
	}
	for _, n := range inst.triggered {
		under.set(n)
		ahead.union(p.ahead[n])
	}
	return under, ahead
}

// newTask returns a task, possibly a reused one.
func (inst *instance) newTask() *task {
	t := inst.freeTask
	if t == nil {
		return new(task)
	}
	inst.freeTask = nil
	return t
}

// startTask creates a task. The lock must be held.
func (inst *instance) startTask(n int) error {
	inst.activations[n]++
	inst.seq++
	t := inst.newTask()
	*t = task{node: n, activation: inst.activations[n], seq: inst.seq, status: taskReady, baseClock: inst.clock, base: inst.state, queued: t.queued}
	inst.markTaskDirty(t)
	inst.tasks = append(inst.tasks, t)
	if inst.flow.before[n] {
		return inst.hold(t, taskHeldBefore, holdBefore)
	}
	return nil
}
