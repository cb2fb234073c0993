package graph

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/few"
	"github.com/fermata-go/fermata/internal/safely"
	"github.com/fermata-go/fermata/internal/savable"
	"github.com/fermata-go/fermata/internal/visit"
)

// frameAt returns the frame at a place of the run: as it was saved, or new with this input.
func (fl *compiled) frameAt(s *session, names visit.Frame, input statePtr) (*frame, error) {
	f := newFrame(fl, s, names)
	var err error
	if s.loaded != nil && s.loaded.at(names.Place).frame != nil {
		if err = f.load(s.loaded); err != nil {
			err = &loadError{err}
		}
	} else {
		err = f.start(input)
	}
	if err != nil {
		return nil, err
	}
	s.join(f)
	return f, nil
}

// loadError is the error of a saved frame that cannot be gone on with. It is the run's own business: whoever runs graphs and tells of their errors, as a tool, must
// not take it for a result, or what was asked there would be passed by.
type loadError struct{ error }

func (e *loadError) Unwrap() error { return e.error }
func (e *loadError) OfTheRun()     {}

// load restores the frame and readies what has been answered.
func (f *frame) load(saved *checkpoint) error {
	sf := saved.at(f.names.Place).frame
	if sf.Graph != f.flow.name {
		return fmt.Errorf("%w: %s is at work on graph %q, not on %q", ErrForeign, f.names.Address, sf.Graph, f.flow.name)
	}
	if text := f.flow.renamed(sf); text != "" {
		return f.flow.changed(f.sess.Run(), text)
	}
	f.clock, f.done = sf.Clock, sf.Done
	if sf.Print != f.flow.print {
		f.touch() // so that the next one knows whose work it is
	}
	f.loadVisits(sf.Visits)
	if err := f.loadNext(sf); err != nil {
		return err
	}
	loader := stateLoader{frame: f, saved: saved, frameSaved: sf, changed: sf.Shape != f.flow.shape.print}
	if err := loader.fields(); err != nil {
		return err
	}
	if err := f.loadTasks(&loader); err != nil {
		return err
	}
	if f.done {
		return nil
	}
	if err := f.modify(); err != nil {
		return err
	}
	if err := f.release(); err != nil {
		return err
	}
	if err := f.holdAnew(); err != nil { //mutate:new-hold-applied
		return err
	}
	f.showHolds()
	return f.advance()
}

// holdAnew stops before nodes that the program now holds before, and that were about to be entered when another program ran it last, as by a stop for a deploy.
func (f *frame) holdAnew() error {
	for _, t := range f.tasks {
		saved := f.sess.loaded.at(t.place)
		entered := t.attempt > 0 || len(saved.journal)+len(saved.records)+len(saved.below) > 0 // its hold, too, is among the records
		if t.status != taskReady || !f.flow.before[t.node] || entered {
			continue
		}
		if err := f.hold(t, taskHeld, holdBefore); err != nil {
			return err
		}
	}
	return nil
}

// showHolds lets people see the states that open holds stand for.
func (f *frame) showHolds() {
	for _, t := range f.tasks {
		if t.status != taskHeld && t.status != taskResting {
			continue
		}
		for _, r := range f.sess.Open(t.place) {
			f.sess.show(r.ID, f.flow.shape.value(t.base))
		}
	}
}

func (f *frame) loadNext(sf *savedFrame) error {
	for i, name := range slices.Concat(sf.Next, sf.Again) {
		n, ok := f.flow.find(name)
		if !ok {
			return f.flow.changed(f.sess.Run(), visit.Join(f.names.Address, nodeSegment(name)))
		}
		if i >= len(sf.Next) && f.flow.plan.round[n] != nil {
			f.again = append(f.again, n)
		} else {
			f.next = append(f.next, n)
		}
	}
	return nil
}

func (f *frame) loadVisits(saved []savedVisits) {
	for _, v := range saved {
		if n, ok := f.flow.index[v.Node]; ok {
			f.visits[n] = v.Times
		} else {
			f.former = append(f.former, v)
		}
	}
}

// find returns the node of that name, or the one that it is called now.
func (fl *compiled) find(name string) (int, bool) {
	for range len(fl.renames) + 1 {
		if n, ok := fl.index[name]; ok {
			return n, true
		}
		now, renamed := fl.renames[name]
		if !renamed {
			break
		}
		name = now
	}
	return 0, false
}

func (fl *compiled) changed(run string, missing ...string) error {
	return &ChangedError{Run: run, Missing: missing}
}

// renamed says which fields of a saved state seem to be renamed: the state has fields that nobody saved, while fields were
// saved that it does not have. Taking that for two unrelated changes would silently lose them. "" is nothing.
func (fl *compiled) renamed(sf *savedFrame) string {
	if fl.migrate != nil || sf.Shape == fl.shape.print {
		return ""
	}
	saved := make(map[string]bool, len(sf.Fields))
	var unknown, lacking []string
	for _, field := range sf.Fields {
		saved[field.Name] = true
		if _, known := fl.shape.byName[field.Name]; !known {
			unknown = append(unknown, field.Name)
		}
	}
	for i := range fl.shape.fields {
		if !saved[fl.shape.fields[i].name] {
			lacking = append(lacking, fl.shape.fields[i].name)
		}
	}
	if len(unknown) == 0 || len(lacking) == 0 { //mutate:renamed-field
		return ""
	}
	return fmt.Sprintf("state fields %q of graph %s, while %q are new", unknown, fl.name, lacking)
}

// stateLoader reads the state of a frame as it was at different clocks.
type stateLoader struct {
	frame      *frame
	saved      *checkpoint
	frameSaved *savedFrame
	changed    bool // the state had another shape when it was saved
	states     few.Map[int64, statePtr]
}

// fields sets up the frame's fields. Those that this program does not know are kept for one that does.
func (l *stateLoader) fields() error {
	f := l.frame
	for _, sf := range l.frameSaved.Fields {
		if len(sf.Revs) == 0 {
			return fmt.Errorf("%w: %s: field %q has no value", ErrCorrupt, f.names.Address, sf.Name)
		}
		i, known := f.flow.shape.byName[sf.Name]
		if !known {
			f.extra = append(f.extra, sf)
			continue
		}
		f.fields[i].by = sf.By
		f.fields[i].reset(sf.Revs...)
	}
	for i := range f.fields {
		if f.fields[i].revs == nil { // the field is new in this program
			f.fields[i].reset(revision{clock: 1})
			f.touch()
		}
	}
	if l.changed && f.flow.migrate != nil {
		l.saveAnew()
	}
	state, err := l.at(f.clock)
	f.state = state
	return err
}

// saveAnew marks everything for saving in the form that the migration will give it.
func (l *stateLoader) saveAnew() {
	f := l.frame
	f.touch()
	for i := range f.fields {
		for k := range f.fields[i].revs {
			rev := &f.fields[i].revs[k]
			if rev.saved {
				f.remove(f.flow.shape.fields[i].partName(rev.clock, f.names.Place))
			}
			rev.data, rev.saved = nil, false
		}
	}
	for _, sf := range f.extra {
		for _, rev := range sf.Revs {
			if rev.saved {
				f.remove(l.partName(sf.Name, rev.clock))
			}
		}
	}
	f.extra = nil
}

// at reads the state as it was at that clock.
func (l *stateLoader) at(clock int64) (statePtr, error) {
	if state := l.states.Get(clock); state != nil {
		return state, nil
	}
	state, err := l.decode(clock, nil, 0)
	if err == nil {
		l.states.Set(clock, state)
	}
	return state, err
}

// value is the saved form of a field at that clock, or of the result of a task if it is among the fields that it changed.
func (l *stateLoader) value(sf *savedField, clock int64, changed []string, rev int64) ([]byte, error) {
	part := sf.at(clock)
	if slices.Contains(changed, sf.Name) {
		part = revision{clock: rev}
	}
	if part.data != nil {
		return part.data, nil
	}
	data, ok := l.saved.part(l.partName(sf.Name, part.clock))
	if !ok {
		return nil, fmt.Errorf("%w: %s: field %q of clock %d is missing", ErrCorrupt, l.frame.names.Address, sf.Name, part.clock)
	}
	return data, nil
}

func (l *stateLoader) partName(name string, rev int64) string {
	if i, ok := l.frame.flow.shape.byName[name]; ok {
		return l.frame.flow.shape.fields[i].partName(rev, l.frame.names.Place)
	}
	return (&field{part: fieldPart(name)}).partName(rev, l.frame.names.Place)
}

// decode reads the state as it was at that clock, with the fields that a task changed as they are in its result.
func (l *stateLoader) decode(clock int64, changed []string, rev int64) (statePtr, error) {
	if l.changed && l.frame.flow.migrate != nil {
		return l.migrate(clock, changed, rev)
	}
	state := l.frame.flow.shape.fresh()
	for k := range l.frameSaved.Fields {
		sf := &l.frameSaved.Fields[k]
		i, known := l.frame.flow.shape.byName[sf.Name]
		if !known {
			continue
		}
		data, err := l.value(sf, clock, changed, rev)
		if err != nil {
			return nil, err
		}
		if err := l.set(state, i, data); err != nil {
			return nil, err
		}
	}
	return state, nil
}

func (l *stateLoader) set(state statePtr, i int, data []byte) error {
	fd := &l.frame.flow.shape.fields[i]
	err := decodeField(l.frame.flow.shape, fd, state, data)
	if err == nil && l.changed && l.frame.flow.migrate == nil {
		err = savable.Renamed(data, fd.typ) //mutate:nested-field-renamed
	}
	if err != nil {
		if l.changed {
			return l.frame.flow.changed(l.saved.head.Run, fmt.Sprintf("state field %q of graph %s with a value that is no %s (%v)", fd.name, l.frame.flow.name, fd.typ, err))
		}
		return fmt.Errorf("%w: %s: field %q: %w", ErrCorrupt, l.frame.names.Address, fd.name, err)
	}
	return nil
}

// migrate is decode for a state of an earlier form.
func (l *stateLoader) migrate(clock int64, changed []string, rev int64) (state statePtr, err error) {
	values := make(Fields, len(l.frameSaved.Fields))
	for k := range l.frameSaved.Fields {
		sf := &l.frameSaved.Fields[k]
		data, err := l.value(sf, clock, changed, rev)
		if err != nil {
			return nil, err
		}
		values[sf.Name] = bytes.Clone(data) // the migration may change it where it stands
	}
	defer safely.Recover(&err)
	if err := l.frame.flow.migrate(values); err != nil {
		return nil, fmt.Errorf("graph: %s: migrating the state: %w", l.frame.names.Address, err)
	}
	state = l.frame.flow.shape.fresh()
	for i := range l.frame.flow.shape.fields {
		if data, ok := values[l.frame.flow.shape.fields[i].name]; ok {
			if err := l.set(state, i, data); err != nil {
				return nil, err
			}
		}
	}
	return state, nil
}

func (f *frame) loadTasks(loader *stateLoader) error {
	for _, st := range loader.saved.at(f.names.Place).tasks {
		n, ok := f.flow.find(st.Node)
		if !ok {
			return f.flow.changed(f.sess.Run(), visit.Join(f.names.Address, nodeSegment(st.Node)))
		}
		t := f.newTask()
		*t = task{node: n, visit: st.Visit, seq: st.Seq, place: st.place, status: st.Status, attempt: st.Attempt, at: st.At, saved: true, loaded: true}
		f.seq = max(f.seq, t.seq)
		var err error
		if t.base, err = loader.at(t.at); err != nil {
			return err
		}
		switch t.status {
		case taskReady, taskHeld, taskResting:
		case taskWaiting:
			if f.sess.Fresh(t.place) {
				t.status = taskReady
				f.touchTask(t)
			} else if len(f.sess.Open(t.place)) == 0 {
				return corrupt(partTask+t.place, errors.New("it waits, and nothing that it asked is there"))
			}
		case taskFinished:
			if err := loader.result(t, st); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: %s: unknown status %q", ErrCorrupt, t.place, t.status)
		}
		f.tasks = append(f.tasks, t)
	}
	slices.SortFunc(f.tasks, func(a, b *task) int { return int(a.seq - b.seq) })
	return nil
}

// result restores what a node had left when its step was cut off.
func (l *stateLoader) result(t *task, st *savedTask) error {
	f := l.frame
	var err error
	if t.result, err = l.left(st); err != nil {
		return err
	}
	t.rev, t.written = st.Rev, !l.changed
	t.changed = diff(f.flow.shape, t.base, t.result, nil)
	if l.changed { // the parts are in a form that is no longer read: those of the new one take their place, in the same save
		for _, name := range st.Changed {
			f.remove(l.partName(name, st.Rev))
		}
		f.touchTask(t) //mutate:sibling-result-rewritten
	}
	return nil
}

// left reads what a node had left when its step was cut off.
func (l *stateLoader) left(st *savedTask) (statePtr, error) {
	fl := l.frame.flow
	for _, name := range st.Changed {
		if _, known := fl.shape.byName[name]; !known && (!l.changed || fl.migrate == nil) {
			return nil, fl.changed(l.saved.head.Run, fmt.Sprintf("%s with a result in field %q", st.place, name))
		}
	}
	return l.decode(st.At, st.Changed, st.Rev)
}

// modify lets the caller's state modifiers change the state. What they change is also what waiting nodes will see.
func (f *frame) modify() error {
	if len(f.sess.modifiers) == 0 {
		return nil
	}
	address, err := fermata.ParseAddress(f.names.Address)
	if err != nil {
		return err
	}
	edited, err := f.flow.shape.clone(f.state)
	if err != nil {
		return f.unsavable(err)
	}
	for _, modifier := range f.sess.modifiers {
		if err := callModifier(modifier, address, edited); err != nil {
			return fmt.Errorf("graph: modifying the state of %s: %w", f.names.Address, err)
		}
	}
	changed := diff(f.flow.shape, f.state, edited, nil)
	if len(changed) == 0 {
		return nil
	}
	if err := f.keepsLists(edited); err != nil {
		return fmt.Errorf("graph: modifying the state of %s: %w", f.names.Address, err)
	}
	err = f.apply(&contribution{
		by: "state modifier", base: f.state, at: f.clock, result: edited, changed: changed, rev: f.nextRev(),
	})
	if err != nil {
		return err
	}
	for _, t := range f.tasks {
		if t.status != taskReady && t.status != taskWaiting {
			continue // a hold keeps the state that it showed, until its answer is merged
		}
		t.at, t.base = f.clock, f.state
		f.touchTask(t)
	}
	f.prune()
	return nil
}

// keepsLists returns an error if a fan-out that is at work would get another list: an item would come by its question with the result
// of another one.
func (f *frame) keepsLists(edited statePtr) (err error) {
	defer safely.Recover(&err)
	for _, t := range f.tasks {
		n, saved := f.flow.nodes[t.node], f.sess.loaded.at(t.place)
		if n.items == nil || len(saved.journal)+len(saved.records)+len(saved.below) == 0 {
			continue
		}
		before, err := f.flow.shape.own(t.base)
		if err != nil {
			return err
		}
		after, err := f.flow.shape.own(edited)
		if err != nil {
			return err
		}
		was, is := n.items(before), n.items(after)
		if !reflect.DeepEqual(was, is) && !sameJSON(was, is) {
			return fmt.Errorf("node %q is at work on a list, and would get another: change that before it begins or after it has ended", n.name)
		}
	}
	return nil
}

func callModifier(modifier StateModifier, at fermata.Address, state any) (err error) {
	defer safely.Recover(&err)
	return modifier(at, state)
}
