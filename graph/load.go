package graph

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/roundtrip"
	"github.com/fermata-go/fermata/internal/smallmap"
)

// instanceAt returns the instance at a place of the run: restored if it was saved, otherwise new
// with this input.
func (fl *compiled) instanceAt(exec *execution, names activation.Instance, input statePtr) (*instance, error) {
	f := newInstance(fl, exec, names)
	var err error
	if exec.loaded != nil && exec.loaded.at(names.Place).instance != nil {
		if err = f.restore(exec.loaded); err != nil {
			err = &loadError{err}
		}
	} else {
		err = f.start(input)
	}
	if err != nil {
		return nil, err
	}
	exec.addInstance(f)
	return f, nil
}

// loadError reports that a saved instance cannot be restored. It is an error of the run: code that
// reports errors of graphs, such as a tool, must not turn it into a result, or the open interrupts
// there would be bypassed.
type loadError struct{ error }

func (e *loadError) Unwrap() error { return e.error }
func (e *loadError) RunError()     {}

// restore restores the instance and makes answered tasks ready.
func (inst *instance) restore(saved *checkpoint) error {
	sf := saved.at(inst.location.Place).instance
	if sf.Graph != inst.flow.name {
		return fmt.Errorf("%w: %s runs graph %q, not %q", ErrWrongGraph, inst.location.Address, sf.Graph, inst.flow.name)
	}
	if text := inst.flow.renamedFields(sf); text != "" {
		return inst.flow.programChanged(inst.exec.Run(), text)
	}
	inst.clock, inst.done = sf.Clock, sf.Done
	if sf.Fingerprint != inst.flow.fingerprint {
		inst.markDirty() // saves the new fingerprint
	}
	inst.restoreActivations(sf.Activations)
	if err := inst.restoreTriggered(sf); err != nil {
		return err
	}
	loader := stateLoader{instance: inst, saved: saved, savedInst: sf, changed: sf.StateFingerprint != inst.flow.stateType.fingerprint}
	if err := loader.fields(); err != nil {
		return err
	}
	if err := inst.restoreTasks(&loader); err != nil {
		return err
	}
	if inst.done {
		return nil
	}
	if err := inst.applyModifiers(); err != nil {
		return err
	}
	if err := inst.releaseHolds(); err != nil {
		return err
	}
	if err := inst.applyNewHolds(); err != nil { //mutate:new-hold-applied
		return err
	}
	inst.attachHeldStates()
	if err := inst.startReady(); err != nil {
		return err
	}
	inst.lock()
	defer inst.unlock()
	return join(inst.refreshLatest(), inst.refreshHolds())
}

// applyNewHolds holds before nodes that have a new hold in this program and that were about to be
// entered when another program last ran, for example after a stop for a deployment.
func (inst *instance) applyNewHolds() error {
	for _, t := range inst.tasks {
		saved := inst.exec.loaded.at(t.place)
		// its hold is also one of the records
		entered := t.attempt > 0 || len(saved.journal)+len(saved.records)+len(saved.below) > 0
		if t.status != taskReady || !inst.flow.before[t.node] || entered {
			continue
		}
		if err := inst.hold(t, taskHeldBefore, holdBefore); err != nil {
			return err
		}
	}
	return nil
}

// attachHeldStates sets the states that open holds show.
func (inst *instance) attachHeldStates() {
	for _, t := range inst.tasks {
		if t.status != taskHeldBefore && t.status != taskHeldAfter {
			continue
		}
		for _, r := range inst.exec.OpenInterrupts(t.place) {
			inst.exec.setInfo(r.ID, inst.flow.stateType.valueOf(t.base))
		}
	}
}

func (inst *instance) restoreTriggered(sf *savedInstance) error {
	for i, name := range slices.Concat(sf.Triggered, sf.NextRound) {
		n, ok := inst.flow.find(name)
		if !ok {
			return inst.flow.programChanged(inst.exec.Run(), activation.Join(inst.location.Address, nodeSegment(name)))
		}
		if i >= len(sf.Triggered) && inst.flow.plan.loops[n] != nil {
			inst.nextRound = append(inst.nextRound, n)
		} else {
			inst.triggered = append(inst.triggered, n)
		}
	}
	return nil
}

func (inst *instance) restoreActivations(saved []activationCount) {
	for _, v := range saved {
		if n, ok := inst.flow.index[v.Node]; ok {
			inst.activations[n] = v.Count
		} else {
			inst.formerActivations = append(inst.formerActivations, v)
		}
	}
}

// find returns the node with that name, also if it was renamed.
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

func (fl *compiled) programChanged(run string, missing ...string) error {
	return &ProgramChangedError{Run: run, Missing: missing}
}

// renamedFields reports state fields that seem to be renamed: the state has fields that were not
// saved, and fields were saved that it does not have. Treating them as unrelated changes would lose
// data. It returns "" if there are none.
func (fl *compiled) renamedFields(sf *savedInstance) string {
	if fl.migrate != nil || sf.StateFingerprint == fl.stateType.fingerprint {
		return ""
	}
	saved := make(map[string]bool, len(sf.Fields))
	var unknown, lacking []string
	for _, field := range sf.Fields {
		saved[field.Name] = true
		if _, known := fl.stateType.byName[field.Name]; !known {
			unknown = append(unknown, field.Name)
		}
	}
	for i := range fl.stateType.fields {
		if !saved[fl.stateType.fields[i].name] {
			lacking = append(lacking, fl.stateType.fields[i].name)
		}
	}
	if len(unknown) == 0 || len(lacking) == 0 { //mutate:renamed-field
		return ""
	}
	return fmt.Sprintf("state fields %q of graph %s, while %q are new", unknown, fl.name, lacking)
}

// stateLoader reads the state of an instance at different clocks.
type stateLoader struct {
	instance  *instance
	saved     *checkpoint
	savedInst *savedInstance
	changed   bool // the state type was different when the state was saved
	states    smallmap.Map[int64, statePtr]
}

// fields initializes the instance's fields. Unknown fields are kept for a program that knows them.
func (l *stateLoader) fields() error {
	f := l.instance
	for _, sf := range l.savedInst.Fields {
		if len(sf.Versions) == 0 {
			return fmt.Errorf("%w: %s: field %q has no value", ErrCorrupt, f.location.Address, sf.Name)
		}
		i, known := f.flow.stateType.byName[sf.Name]
		if !known {
			f.extraFields = append(f.extraFields, sf)
			continue
		}
		f.fields[i].by = sf.By
		f.fields[i].reset(sf.Versions...)
	}
	for i := range f.fields {
		if f.fields[i].versions == nil { // the field is new in this program
			f.fields[i].reset(fieldVersion{clock: 1})
			f.markDirty()
		}
	}
	if l.changed && f.flow.migrate != nil {
		l.markForRewrite()
	}
	state, err := l.stateAt(f.clock)
	f.state = state
	return err
}

// markForRewrite marks all values to be saved in the migrated form.
func (l *stateLoader) markForRewrite() {
	f := l.instance
	f.markDirty()
	for i := range f.fields {
		for k := range f.fields[i].versions {
			rev := &f.fields[i].versions[k]
			if rev.saved {
				f.removeParts(f.flow.stateType.fields[i].partName(rev.clock, f.location.Place))
			}
			rev.data, rev.saved = nil, false
		}
	}
	for _, sf := range f.extraFields {
		for _, rev := range sf.Versions {
			if rev.saved {
				f.removeParts(l.partName(sf.Name, rev.clock))
			}
		}
	}
	f.extraFields = nil
}

// stateAt reads the state at this clock.
func (l *stateLoader) stateAt(clock int64) (statePtr, error) {
	if state := l.states.Get(clock); state != nil {
		return state, nil
	}
	state, err := l.decode(clock, nil, 0)
	if err == nil {
		l.states.Set(clock, state)
	}
	return state, err
}

// fieldData returns the saved JSON of a field at this clock, or from the task's result if the task
// changed it.
func (l *stateLoader) fieldData(sf *savedField, clock int64, changed []string, rev int64) ([]byte, error) {
	part := sf.at(clock)
	if slices.Contains(changed, sf.Name) {
		part = fieldVersion{clock: rev}
	}
	if part.data != nil {
		return part.data, nil
	}
	data, ok := l.saved.part(l.partName(sf.Name, part.clock))
	if !ok {
		return nil, fmt.Errorf("%w: %s: field %q of clock %d is missing", ErrCorrupt, l.instance.location.Address, sf.Name, part.clock)
	}
	return data, nil
}

func (l *stateLoader) partName(name string, rev int64) string {
	if i, ok := l.instance.flow.stateType.byName[name]; ok {
		return l.instance.flow.stateType.fields[i].partName(rev, l.instance.location.Place)
	}
	return (&field{partPrefix: fieldPart(name)}).partName(rev, l.instance.location.Place)
}

// decode reads the state at this clock, with the fields that a task changed taken from its result.
func (l *stateLoader) decode(clock int64, changed []string, rev int64) (statePtr, error) {
	if l.changed && l.instance.flow.migrate != nil {
		return l.migrate(clock, changed, rev)
	}
	state := l.instance.flow.stateType.newState()
	for k := range l.savedInst.Fields {
		sf := &l.savedInst.Fields[k]
		i, known := l.instance.flow.stateType.byName[sf.Name]
		if !known {
			continue
		}
		data, err := l.fieldData(sf, clock, changed, rev)
		if err != nil {
			return nil, err
		}
		if err := l.decodeInto(state, i, data); err != nil {
			return nil, err
		}
	}
	return state, nil
}

func (l *stateLoader) decodeInto(state statePtr, i int, data []byte) error {
	fd := &l.instance.flow.stateType.fields[i]
	err := decodeField(l.instance.flow.stateType, fd, state, data)
	if err == nil && l.changed && l.instance.flow.migrate == nil {
		err = roundtrip.CheckRenamed(data, fd.typ) //mutate:nested-field-renamed
	}
	if err != nil {
		if l.changed {
			return l.instance.flow.programChanged(l.saved.head.Run, fmt.Sprintf("state field %q of graph %s with a value that is not a %s (%v)", fd.name, l.instance.flow.name, fd.typ, err))
		}
		return fmt.Errorf("%w: %s: field %q: %w", ErrCorrupt, l.instance.location.Address, fd.name, err)
	}
	return nil
}

// migrate is decode for a state of an earlier form.
func (l *stateLoader) migrate(clock int64, changed []string, rev int64) (state statePtr, err error) {
	values := make(Fields, len(l.savedInst.Fields))
	for k := range l.savedInst.Fields {
		sf := &l.savedInst.Fields[k]
		data, err := l.fieldData(sf, clock, changed, rev)
		if err != nil {
			return nil, err
		}
		values[sf.Name] = bytes.Clone(data) // the migration may modify it in place
	}
	defer recovery.Recover(&err)
	if err := l.instance.flow.migrate(values); err != nil {
		return nil, fmt.Errorf("graph: %s: migrating the state: %w", l.instance.location.Address, err)
	}
	state = l.instance.flow.stateType.newState()
	for i := range l.instance.flow.stateType.fields {
		if data, ok := values[l.instance.flow.stateType.fields[i].name]; ok {
			if err := l.decodeInto(state, i, data); err != nil {
				return nil, err
			}
		}
	}
	return state, nil
}

func (inst *instance) restoreTasks(loader *stateLoader) error {
	for _, st := range loader.saved.at(inst.location.Place).tasks {
		n, ok := inst.flow.find(st.Node)
		if !ok {
			return inst.flow.programChanged(inst.exec.Run(), activation.Join(inst.location.Address, nodeSegment(st.Node)))
		}
		t := inst.newTask()
		*t = task{node: n, activation: st.Activation, seq: st.Seq, place: st.place, status: st.Status, attempt: st.Attempt, baseClock: st.BaseClock, saved: true, loaded: true}
		inst.seq = max(inst.seq, t.seq)
		var err error
		if t.base, err = loader.stateAt(t.baseClock); err != nil {
			return err
		}
		switch t.status {
		case taskReady, taskHeldBefore, taskHeldAfter:
		case taskWaiting:
			if inst.exec.HasNewAnswer(t.place) {
				t.status = taskReady
				inst.markTaskDirty(t)
			} else if len(inst.exec.OpenInterrupts(t.place)) == 0 {
				return corrupt(partTask+t.place, errors.New("it waits, but has no open interrupt"))
			}
		case taskFinished:
			if err := loader.restoreResult(t, st); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: %s: unknown status %q", ErrCorrupt, t.place, t.status)
		}
		inst.tasks = append(inst.tasks, t)
	}
	slices.SortFunc(inst.tasks, func(a, b *task) int { return int(a.seq - b.seq) })
	return nil
}

// restoreResult restores the result of a node whose step was interrupted.
func (l *stateLoader) restoreResult(t *task, st *savedTask) error {
	f := l.instance
	var err error
	if t.result, err = l.taskResult(st); err != nil {
		return err
	}
	t.version, t.resultSaved = st.Version, !l.changed
	t.changed = changedFields(f.flow.stateType, t.base, t.result, nil)
	if l.changed { // the saved parts have an old form; the same save replaces them
		for _, name := range st.Changed {
			f.removeParts(l.partName(name, st.Version))
		}
		f.markTaskDirty(t) //mutate:sibling-result-rewritten
	}
	return nil
}

// taskResult reads the result of a node whose step was interrupted.
func (l *stateLoader) taskResult(st *savedTask) (statePtr, error) {
	fl := l.instance.flow
	for _, name := range st.Changed {
		if _, known := fl.stateType.byName[name]; !known && (!l.changed || fl.migrate == nil) {
			return nil, fl.programChanged(l.saved.head.Run, fmt.Sprintf("%s with a result in field %q", st.place, name))
		}
	}
	return l.decode(st.BaseClock, st.Changed, st.Version)
}
