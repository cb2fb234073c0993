package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/safely"
	"github.com/fermata-go/fermata/internal/visit"
)

// frame is one graph at work within a run: the outermost one, or one inside a node.
//
// Its goroutine alone moves it, from step to step. mu guards what stage reads, because a save may come at any time from
// a node that is running.
type frame struct {
	flow  *compiled
	sess  *session
	names visit.Frame

	mu     sync.Mutex
	clock  int64
	state  statePtr // never changed in place: tasks keep older ones as their base
	fields []fieldRevs
	merged []bool        // fields that were merged in this step
	extra  []savedField  // fields that another program saved
	visits []int         // how often each node was visited
	former []savedVisits // the same of nodes that the graph no longer has
	next   []int         // nodes that something led to
	again  []int         // first nodes of loops that something led back to
	runs   []*task       // the tasks of the current step
	spare  *task         // one that is over, for the next
	tasks  []*task
	seq    int64
	// pending is what else changed together with the tasks: interrupts, and parts that nobody needs any more.
	pending []change
	// changed and dirty are what stage has to look at; listed is true while the session knows that.
	changed []*task
	dirty   bool
	listed  bool
	done    bool
	gone    bool // the visit that it was in is over
	// room is for what there is in most frames: few of everything.
	room struct {
		next  [1]int
		tasks [3][1]*task
		task  task
	}
}

func newFrame(fl *compiled, s *session, names visit.Frame) *frame {
	f := &frame{flow: fl, sess: s, names: names, listed: true}
	f.names.Host = s
	f.next = f.room.next[:0]
	f.tasks, f.runs, f.changed = f.room.tasks[0][:0], f.room.tasks[1][:0], f.room.tasks[2][:0]
	f.spare = &f.room.task
	f.fields = make([]fieldRevs, len(fl.shape.fields))
	f.visits = make([]int, len(fl.nodes))
	return f
}

// lock is for what happens between steps: then nothing but a save that stages the frame can come in between, and without a
// store there is none. While nodes run, mu itself guards the frame.
func (f *frame) lock() {
	if f.sess.store != nil {
		f.mu.Lock()
	}
}

func (f *frame) unlock() {
	if f.sess.store != nil {
		f.mu.Unlock()
	}
}

// touch notes that the frame has changed. It is called with the lock held.
func (f *frame) touch() {
	f.dirty = true
	f.list()
}

// touchTask notes that a task has changed. It is called with the lock held.
func (f *frame) touchTask(t *task) {
	if f.sess.store == nil || t.dirty {
		return
	}
	t.dirty = true
	if !t.listed { // a task that is used again may still be in the list
		t.listed = true
		f.changed = append(f.changed, t)
	}
	f.list()
}

func (f *frame) list() {
	if !f.listed {
		f.listed = true
		f.sess.touch(f)
	}
}

// fieldRevs are the values of one field that somebody still needs, the newest last. They are named by the frame's clock.
type fieldRevs struct {
	revs []revision
	by   string // the node that wrote the newest
	room [1]revision
}

// reset makes these the only values.
func (r *fieldRevs) reset(revs ...revision) { r.revs = append(r.room[:0], revs...) }

// revision is one value of a field. data is its JSON if that is known already; saved is true if it has a part of its own in
// the store. A small value has none: it stands in the frame's part, and its data is kept for the next time that is written.
type revision struct {
	clock int64
	data  []byte
	saved bool
}

// smallValue is up to how many bytes a value stands in the frame's part.
const smallValue = 64

func (r *fieldRevs) add(rev revision, by string) {
	r.revs = append(r.revs, rev)
	r.by = by
}

func (r *fieldRevs) newest() int64 { return r.revs[len(r.revs)-1].clock }

// at is the revision that the field had at some clock.
func (r *fieldRevs) at(clock int64) int64 {
	found := r.revs[0].clock
	for _, rev := range r.revs {
		if rev.clock <= clock {
			found = rev.clock
		}
	}
	return found
}

// task is one visit of a node that is not over.
type task struct {
	node    int
	visit   int
	seq     int64
	place   string // spelled out when it is needed first, see placeOf
	status  taskStatus
	attempt int
	// at and base are the clock and the state that the node was given.
	at   int64
	base statePtr
	// result, changed, data and rev are what a node that has finished left, until its step is over.
	result  statePtr
	changed []int
	few     [2]int // room for changed
	data    [][]byte
	rev     int64
	// targets is where the result leads, if routed.
	targets []int
	// signals are what the task waits for, if it began to in this execution.
	signals []*visit.Signal
	written bool // the result is in the store
	routed  bool
	dirty   bool
	listed  bool // it is in the frame's list of changed tasks
	saved   bool // the task is, or was, in the store
	loaded  bool // it was there when this execution began
}

// placeOf is called with the lock held.
func (f *frame) placeOf(t *task) string {
	if t.place == "" {
		t.place = visit.PlaceOf(f.names.Place, f.flow.segments[t.node], t.visit)
	}
	return t.place
}

// remove stages the removal of parts. It is called with the lock held.
func (f *frame) remove(parts ...string) {
	for _, part := range parts {
		f.stageLater(change{part: part})
	}
}

// stageLater notes what the next save has to change. It is called with the lock held.
func (f *frame) stageLater(changes ...change) {
	if f.pending == nil {
		f.pending = make([]change, 0, 4)
	}
	f.pending = append(f.pending, changes...)
}

// start puts the frame at its beginning.
func (f *frame) start(input statePtr) error {
	state, err := f.flow.shape.own(input)
	if err != nil {
		return &fermata.EncodeError{What: "the input of graph " + f.flow.name, Err: err}
	}
	f.state = state
	f.clock = 1
	for i := range f.fields {
		f.fields[i].reset(revision{clock: 1})
	}
	f.touch()
	targets, err := f.follow(atEnd, f.state)
	if err != nil {
		return err
	}
	f.lead(atEnd, targets)
	return f.advance()
}

// run moves the frame as far as it gets: to its end (nil), or to where everything left waits (an error that visit.Collect
// knows), or to a failure.
func (f *frame) run(ctx context.Context) error {
	stop := stopChannel(ctx)
	for steps := 0; ; steps++ {
		ready := f.ready()
		if len(ready) == 0 && !f.unmerged() {
			break
		}
		if err := stopRequested(ctx, stop); err != nil {
			return err
		}
		if f.names.Over() {
			return visit.ErrEnded
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
	return f.rest()
}

// save makes the step durable, unless the run saves only when it holds. What was left behind by the node around it saves nothing: somebody else may have
// gone on with the run.
func (f *frame) save(ctx context.Context) error {
	if f.names.Over() {
		return visit.ErrEnded
	}
	if f.sess.saveOnHold {
		return nil
	}
	return f.sess.flush(ctx)
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
func (f *frame) rest() error {
	if len(f.tasks) == 0 {
		f.lock()
		f.done = true
		f.touch()
		f.unlock()
		return nil
	}
	var signals []*visit.Signal
	for _, t := range f.tasks {
		if t.signals != nil {
			signals = append(signals, t.signals...)
			continue
		}
		for _, r := range f.sess.Open(t.place) { // it was loaded, so its place is known
			signals = append(signals, &visit.Signal{Record: r})
		}
	}
	if len(signals) == 0 {
		return fmt.Errorf("%w: %s has work that neither runs nor waits", ErrCorrupt, f.names.Address)
	}
	return visit.Wait(signals)
}

// unmerged reports whether a step was left after some of its nodes had finished.
func (f *frame) unmerged() bool {
	return slices.ContainsFunc(f.tasks, func(t *task) bool { return t.status == taskFinished })
}

// nextRev is a clock that no value has yet, those of finished tasks included.
func (f *frame) nextRev() int64 {
	rev := f.clock
	for _, t := range f.tasks {
		rev = max(rev, t.rev)
	}
	return rev + 1
}

// ready lists the tasks that can run now, in the order in which their results will be merged.
func (f *frame) ready() []*task {
	f.runs = f.runs[:0]
	for _, t := range f.tasks {
		if t.status == taskReady {
			f.runs = append(f.runs, t)
		}
	}
	return f.runs
}

// follow lists the nodes that edges and branches lead to from a node that left this state. A route goes by what its own
// node left, not by what siblings did meanwhile, so that the way of a run does not depend on who was faster.
func (f *frame) follow(from int, state statePtr) ([]int, error) {
	name, targets := Start, f.flow.plan.starts
	if from != atEnd {
		name, targets = f.flow.nodes[from].name, f.flow.plan.edges[from]
	}
	for _, r := range f.flow.routes[from+1] {
		picked, err := pick(r, state, f.flow.shape)
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

// pick asks a route, which gets a state of its own, and may panic.
func pick(r route, state statePtr, sh *shape) (to string, err error) {
	defer safely.Recover(&err)
	own, err := sh.own(state)
	if err != nil {
		return "", err
	}
	return r.pick(own), nil
}

// lead notes that a node that is over, or Start, leads to these nodes.
func (f *frame) lead(from int, targets []int) {
	for _, to := range targets {
		if to == atEnd {
			continue
		}
		list := &f.next
		if from != atEnd && f.flow.plan.isBack(from, to) {
			list = &f.again
		}
		if !slices.Contains(*list, to) {
			*list = append(*list, to)
		}
	}
}

// advance makes tasks of the nodes that nothing under way can lead to any more. It is called with the lock held, or before
// anybody else knows the frame.
func (f *frame) advance() error {
	if len(f.next)+len(f.again) == 0 {
		return nil
	}
	f.touch()
	if len(f.tasks) == 0 && len(f.next)+len(f.again) == 1 {
		n := append(f.next, f.again...)[0]
		f.next, f.again = f.next[:0], f.again[:0]
		return f.begin(n)
	}
	under, ahead := f.underWay()
	var begun []int
	start := func(n int) bool { begun = append(begun, n); return true }
	//mutate:join-waits
	f.next = slices.DeleteFunc(f.next, func(n int) bool { return !ahead.has(n) && start(n) })
	waiting := slices.Clone(f.again)
	f.again = slices.DeleteFunc(f.again, func(n int) bool {
		round := f.flow.plan.round[n]
		inner := func(m int) bool { return m != n && round.has(m) } // a loop inside has another round to go
		return !ahead.has(n) && !under.meets(round) && !slices.ContainsFunc(waiting, inner) && start(n)
	})
	slices.Sort(begun)
	for _, n := range slices.Compact(begun) {
		if err := f.begin(n); err != nil {
			return err
		}
	}
	return nil
}

// underWay is the set of nodes where something is or is about to be, rounds that have yet to begin aside, and of those that
// something can still lead to.
func (f *frame) underWay() (under, ahead nodeSet) {
	p := &f.flow.plan
	under, ahead = newNodeSet(len(f.flow.nodes)), newNodeSet(len(f.flow.nodes))
	for _, n := range f.again { // the next round is ahead of what comes after the loop, and of nothing in this round
		ahead.addBut(p.ahead[n], p.round[n])
	}
	for _, t := range f.tasks {
		under.set(t.node)
		ahead.add(p.ahead[t.node])
	}
	for _, n := range f.next {
		under.set(n)
		ahead.add(p.ahead[n])
	}
	return under, ahead
}

// newTask returns a task for use, perhaps one that is over.
func (f *frame) newTask() *task {
	t := f.spare
	if t == nil {
		return new(task)
	}
	f.spare = nil
	return t
}

// begin makes a task. It is called with the lock held.
func (f *frame) begin(n int) error {
	f.visits[n]++
	f.seq++
	t := f.newTask()
	*t = task{node: n, visit: f.visits[n], seq: f.seq, status: taskReady, at: f.clock, base: f.state, listed: t.listed}
	f.touchTask(t)
	f.tasks = append(f.tasks, t)
	if f.flow.before[n] {
		return f.hold(t, taskHeld, holdBefore)
	}
	return nil
}
