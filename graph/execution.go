package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/limits"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/roundtrip"
	"github.com/fermata-go/fermata/internal/smallmap"
	"github.com/fermata-go/fermata/internal/store"
)

// execution is one execution of a run, from start or resume until it waits or ends. All instances
// of the run share it; only the execution writes to the store.
//
// Instances and activations stage changes in consistent batches; flush writes everything staged in
// one save. Concurrent flushes are joined, so that a thousand nodes that finish together cost a few
// saves and not a thousand.
type execution struct {
	options
	naming sync.Once
	loaded *checkpoint // nil for a new run
	// open interrupts, and newly answered ones, at and below each place
	places *smallmap.Map[string, placeStatus]

	saving sync.Mutex // held during a save
	mu     sync.Mutex // guards the fields below
	head   head
	// version is that of the last save, parts the changes since. It is nil without a store.
	version          int64
	parts            *partSet
	instances        []*instance       // active instances
	instancesBuf     [2]*instance      // backing array
	journalOwners    map[string]string // activations by journal part
	changedInstances []*instance       // instances with changes to stage
	records          *smallmap.Map[string, *activation.Record]
	badAnswers       []*fermata.AnswerError
	// modified are the states of graphs as the modifiers of this call changed them, by place.
	modified map[string]statePtr
	saveErr  error
}

type placeStatus struct {
	open  []*activation.Record
	fresh bool
}

var _ activation.Host = (*execution)(nil)

func newExecution(list []Option) *execution {
	s := &execution{options: options{clock: time.Now}}
	for _, option := range list {
		option(&s.options)
	}
	return s
}

// begin sets the loaded checkpoint; nil for a new run.
func (exec *execution) begin(loaded *checkpoint) {
	exec.loaded = loaded
	if exec.store != nil {
		exec.parts = newPartSet(loaded)
	}
	if loaded != nil {
		exec.version, exec.head, exec.records = loaded.version, loaded.head, &loaded.interrupts
	}
}

// Run returns the run id. A run without an id that cannot be resumed gets one on first use.
func (exec *execution) Run() string {
	exec.naming.Do(func() {
		if exec.run == "" {
			exec.run = ident.Random("run")
		}
	})
	return exec.run
}

func (exec *execution) Time() time.Time { return exec.clock().Round(0) } // JSON has no monotonic part
func (exec *execution) Policy() any     { return exec.policy }
func (exec *execution) Ledger() any     { return exec.ledger }

// Put stores one journal entry of an activation.
func (exec *execution) Put(ctx context.Context, v *activation.Activation, part string, data []byte, when activation.Durability) error {
	exec.mu.Lock()
	if data == nil {
		delete(exec.journalOwners, part)
	} else {
		if exec.journalOwners == nil {
			exec.journalOwners = make(map[string]string)
		}
		exec.journalOwners[part] = v.Place()
	}
	exec.mu.Unlock()
	exec.stage(partChange{part, data})
	if when == activation.SaveNow || when == activation.SaveSoon && !exec.saveOnWait {
		return exec.flush(ctx)
	}
	return nil
}

func (exec *execution) OpenInterrupts(place string) []*activation.Record {
	return exec.places.Get(place).open
}

func (exec *execution) HasNewAnswer(place string) bool {
	return exec.places.Get(place).fresh
}

// indexOpen adds every open interrupt, and every one with an unread answer, to each place that
// contains it.
func (exec *execution) indexOpen() {
	exec.places = new(smallmap.Map[string, placeStatus])
	open := make([]*activation.Record, 0, exec.records.Len())
	for _, r := range exec.records.All() {
		if r.Status == activation.StatusOpen || r.Undelivered {
			open = append(open, r)
		}
	}
	slices.SortFunc(open, activation.Compare)
	for _, r := range open {
		for place := r.Place(); place != ""; place, _ = splitPlace(place) {
			a := exec.places.GetOrAdd(place)
			if r.Status == activation.StatusOpen {
				a.open = append(a.open, r)
			} else if r.Kind != KindHold || !activation.Below(place, r.Activation) { //mutate:hold-release-is-no-answer
				// the node itself does not see its holds
				a.fresh = true
			}
		}
	}
}

// partChange is a new part or, with nil data, a removed one.
type partChange struct {
	part string
	data []byte
}

// stage adds changes that belong together: a save contains all of them or none.
func (exec *execution) stage(changes ...partChange) {
	if exec.store == nil {
		return
	}
	exec.mu.Lock()
	defer exec.mu.Unlock()
	for _, c := range changes {
		exec.parts.set(c)
	}
}

func (exec *execution) addInstance(inst *instance) {
	exec.mu.Lock()
	defer exec.mu.Unlock()
	if exec.instances == nil {
		exec.instances = exec.instancesBuf[:0]
	}
	exec.instances = append(exec.instances, inst)
	if exec.store != nil {
		exec.changedInstances = append(exec.changedInstances, inst)
	}
}

// markChanged records that an instance has changes to stage.
func (exec *execution) markChanged(inst *instance) {
	if exec.store == nil {
		return
	}
	exec.mu.Lock()
	defer exec.mu.Unlock()
	exec.changedInstances = append(exec.changedInstances, inst)
}

// setStatus stages the head.
func (exec *execution) setStatus(status Status, failure error) {
	if exec.store == nil {
		return
	}
	exec.mu.Lock()
	defer exec.mu.Unlock()
	exec.head.Status, exec.head.Error = status, ""
	if failure != nil {
		exec.head.Error = failure.Error()
	}
	exec.parts.inlineDirty = true
}

// recordInterrupt adds an interrupt, with its info as a Go value if known, and returns its stored
// form.
func (exec *execution) recordInterrupt(r *activation.Record, info any) partChange {
	exec.mu.Lock()
	defer exec.mu.Unlock()
	if info != nil {
		r.Info = info
	}
	exec.indexInterrupt(r)
	return partChange{r.Part(), r.Encode()}
}

// settleInterrupt records the final status of an interrupt and returns its stored form.
func (exec *execution) settleInterrupt(r *activation.Record, status activation.Status) partChange {
	exec.mu.Lock()
	defer exec.mu.Unlock()
	if r.Status != status {
		r.Status = status
	}
	r.Undelivered = false
	exec.indexInterrupt(r)
	settled := r.Closed(status)
	return partChange{r.Part(), settled.Encode()}
}

// indexInterrupt adds an interrupt to the index. The lock must be held.
func (exec *execution) indexInterrupt(r *activation.Record) {
	if exec.records == nil {
		exec.records = new(smallmap.Map[string, *activation.Record])
	}
	exec.records.Set(r.ID, r)
}

// setInfo sets the info of an interrupt as a Go value.
func (exec *execution) setInfo(id string, info any) {
	exec.mu.Lock()
	defer exec.mu.Unlock()
	exec.records.Get(id).Info = info
}

// wasLoaded reports whether an interrupt was there when this execution began, so that people may
// have seen it.
func (exec *execution) wasLoaded(r *activation.Record) bool {
	return exec.loaded != nil && slices.Contains(exec.loaded.at(r.Activation).records, r)
}

// addBadAnswers records answers that the asking code could not use.
func (exec *execution) addBadAnswers(bad []*activation.BadAnswer) {
	exec.mu.Lock()
	defer exec.mu.Unlock()
	for _, b := range bad {
		exec.badAnswers = append(exec.badAnswers, &fermata.AnswerError{ID: b.ID, Err: b.Err})
	}
}

// flush writes everything staged so far and returns when it is durable. After a failed save it does
// not save again: it is unknown whether the save was applied, and a second attempt could overwrite
// the changes of another execution.
func (exec *execution) flush(ctx context.Context) error {
	if exec.store == nil {
		return nil
	}
	exec.saving.Lock()
	defer exec.saving.Unlock()
	if exec.saveErr != nil {
		return exec.saveErr
	}
	delta, err := exec.takeDelta()
	if err != nil || len(delta.Put)+len(delta.Delete) == 0 {
		return err
	}
	lasting := &saveContext{Context: ctx}
	defer lasting.close()
	version, err := exec.store.Save(lasting, exec.key(), exec.version, delta)
	switch {
	case errors.Is(err, store.ErrStale): //mutate:stale-save-is-takeover
		exec.saveErr = fmt.Errorf("%w: run %s", ErrTakenOver, exec.run)
	case err != nil:
		exec.saveErr = &SaveError{Run: exec.run, Err: err}
	default:
		exec.version = version
	}
	return exec.saveErr
}

//mutate:run-key-has-account
func (exec *execution) key() store.Key { return store.Key{Account: exec.account, Run: exec.run} }

// takeDelta returns the staged changes as a delta.
func (exec *execution) takeDelta() (store.Delta, error) {
	exec.mu.Lock()
	changed := exec.changedInstances
	exec.changedInstances = nil
	exec.mu.Unlock()
	for _, f := range changed {
		if err := f.stageChanges(); err != nil {
			return store.Delta{}, err
		}
	}
	exec.mu.Lock()
	defer exec.mu.Unlock()
	return exec.parts.takeDelta(&exec.head), nil
}

// removeInside returns the changes that remove everything inside a finished activation from the
// store, and the open interrupts there, and drops the instances there. ranGraphs reports whether
// there can be any: with thousands of parallel graphs, most activations have none.
func (exec *execution) removeInside(place string, ranGraphs bool) (changes []partChange, open []*activation.Record) {
	if !ranGraphs && (exec.loaded == nil || len(exec.loaded.at(place).below) == 0) {
		return nil, nil
	}
	var frames []*instance
	exec.mu.Lock()
	exec.instances = slices.DeleteFunc(exec.instances, func(inst *instance) bool {
		if inst.location.Place == "" || !activation.Below(inst.location.Place, place) {
			return false
		}
		frames = append(frames, inst)
		return true
	})
	var parts []string
	if len(frames) > 0 {
		for part, owner := range exec.journalOwners { // of activations that did not finish
			if owner != place && activation.Below(owner, place) {
				parts = append(parts, part)
				delete(exec.journalOwners, part)
			}
		}
	}
	exec.mu.Unlock()
	if exec.loaded != nil {
		parts = append(parts, exec.loaded.at(place).below...)
	}
	for _, part := range parts {
		changes = append(changes, partChange{part: part})
	}
	for _, f := range frames { // lock order: an instance before the execution
		changes = append(changes, f.discard()...)
	}
	if len(changes) == 0 {
		return nil, nil
	}
	return changes, exec.openBelow(place)
}

// openBelow lists the open interrupts of activations inside an activation. It ignores others,
// because their code may be using them.
func (exec *execution) openBelow(place string) []*activation.Record {
	exec.mu.Lock()
	defer exec.mu.Unlock()
	var open []*activation.Record
	for _, r := range exec.records.All() {
		if r.Activation != place && activation.Below(r.Activation, place) && r.Status == activation.StatusOpen {
			open = append(open, r)
		}
	}
	return open
}

// unreadBelow lists the answers to interrupts inside an activation that no node has read.
func (exec *execution) unreadBelow(place string) []*activation.Record {
	exec.mu.Lock()
	defer exec.mu.Unlock()
	var unread []*activation.Record
	for _, r := range exec.records.All() {
		if r.Activation != place && activation.Below(r.Activation, place) && r.Status == activation.StatusAnswered && r.Undelivered {
			unread = append(unread, r)
		}
	}
	return unread
}

// abandonedBelow lists the open interrupts of graphs inside an activation that its node, which
// waits for these signals, no longer runs, and the parts of those graphs: if the node runs one
// again, it starts from the beginning.
func (exec *execution) abandonedBelow(place string, signals []*activation.Signal) (open []*activation.Record, parts []string) {
	if exec.loaded == nil || len(exec.loaded.at(place).below) == 0 {
		return nil, nil
	}
	waiting := make(map[string]bool, len(signals))
	for _, signal := range signals {
		waiting[signal.Record.ID] = true
	}
	running := make(map[string]bool)
	exec.mu.Lock()
	for _, f := range exec.instances {
		running[f.location.Place] = true
	}
	exec.mu.Unlock()
	for _, r := range exec.openBelow(place) {
		if waiting[r.ID] {
			continue
		}
		frame := exec.loaded.outermostInstance(r.Activation, place)
		if frame == "" || running[frame] {
			continue
		}
		for _, part := range exec.loaded.at(place).below {
			if _, at := splitPartName(part); activation.Below(at, frame) {
				parts = append(parts, part)
			}
		}
		open = append(open, r)
	}
	return open, parts
}

// checkedAnswer is an interrupt with its validated answer as JSON.
type checkedAnswer struct {
	record      *activation.Record
	answer      json.RawMessage
	fingerprint string // the schema that it was validated against
	attestation activation.Attestation
}

// checkAnswers validates the caller's answers. It changes nothing.
func (exec *execution) checkAnswers(root *compiled, given ...map[string]any) ([]checkedAnswer, error) {
	var checked []checkedAnswer
	for _, answers := range given {
		for id, answer := range answers {
			r := exec.records.Get(id)
			switch {
			case r == nil:
				//mutate:unknown-interrupt
				return nil, fmt.Errorf("%w %q in run %s", ErrUnknownInterrupt, id, exec.run)
			case r.Status == activation.StatusAnswered: //mutate:answered-once
				return nil, fmt.Errorf("%w: %s at %s", ErrAlreadyAnswered, id, r.Address)
			case r.Status == activation.StatusWithdrawn:
				if next := exec.successorOf(id); next != "" { //mutate:superseded-rejected
					return nil, fmt.Errorf("%w: %s at %s is now %s", ErrSuperseded, id, r.Address, next)
				}
				return nil, fmt.Errorf("%w: %s at %s", ErrWithdrawn, id, r.Address)
			}
			answer, attestation := splitAttested(answer)
			data, err := exec.checkAnswer(r, answer, attestation, root)
			if err == nil && len(data) > limits.MaxAnswerBytes {
				err = &fermata.AnswerError{ID: r.ID, Kind: r.Kind, Err: fmt.Errorf("it has %d bytes; at most %d are allowed: store it elsewhere and answer with a reference", len(data), limits.MaxAnswerBytes)}
			}
			if err != nil {
				return nil, err
			}
			checked = append(checked, checkedAnswer{r, data, answerFingerprint(r, answer), activation.Attestation(attestation)})
		}
	}
	return checked, nil
}

// successorOf returns the id of the interrupt that supersedes another, or "".
func (exec *execution) successorOf(id string) string {
	for _, r := range exec.records.All() {
		if r.Supersedes == id {
			return r.ID
		}
	}
	return ""
}

// splitAttested separates an answer from its attestation, if it has one.
func splitAttested(answer any) (any, fermata.Attestation) {
	switch a := answer.(type) {
	case fermata.AttestedAnswer:
		return a.Answer, a.Attestation
	case *fermata.AttestedAnswer:
		if a != nil {
			return a.Answer, a.Attestation
		}
	}
	return answer, fermata.Attestation{}
}

func (exec *execution) checkAnswer(r *activation.Record, answer any, attestation fermata.Attestation, root *compiled) (data json.RawMessage, err error) {
	defer func() {
		if broken, ok := errors.AsType[*PanicError](err); ok {
			data, err = nil, &fermata.AnswerError{ID: r.ID, Kind: r.Kind, Err: broken}
		}
	}()
	defer recovery.Recover(&err) // methods of the answer may panic
	if refusal, ok := answer.(fermata.Refusal); ok {
		if answer, err = refusalFor(r, refusal, attestation); err != nil || r.Kind != fermata.Approval.Name() {
			return answer.(json.RawMessage), err
		}
	}
	if r.Kind == KindHold {
		place, err := fermata.ParseAddress(r.Activation)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		data, err = root.checkHold(place, answer)
		if err == nil && data != nil {
			err = root.checkProtected(exec.loaded, "", place, data)
		}
		if err != nil {
			return nil, &fermata.AnswerError{ID: r.ID, Kind: r.Kind, Err: err}
		}
		return data, nil
	}
	if r.Kind == "" {
		return encodePlainAnswer(r, answer)
	}
	kind, ok := fermata.LookupKind(r.Kind)
	if !ok {
		return nil, root.programChanged(exec.run, unknownKindText(r))
	}
	data, err = kind.Check(r.Data, answer) //mutate:answers-checked-first
	if err == nil && attestation != (fermata.Attestation{}) {
		data, err = attestation.Write(kind.AttestedFields(), data)
	}
	if bad, ok := errors.AsType[*fermata.AnswerError](err); ok {
		bad.ID = r.ID
	}
	return data, err
}

// unknownKindText describes an interrupt whose kind this program does not have.
func unknownKindText(r *activation.Record) string {
	return fmt.Sprintf("an interrupt of kind %q at %s", r.Kind, r.Address)
}

// answerFingerprint returns the fingerprint of the answer schema of an interrupt's kind.
func answerFingerprint(r *activation.Record, answer any) string {
	if _, refused := answer.(fermata.Refusal); refused && r.Kind != fermata.Approval.Name() {
		return activation.RefusalType
	}
	if kind, ok := fermata.LookupKind(r.Kind); ok {
		return kind.AnswerFingerprint()
	}
	return ""
}

func encodePlainAnswer(r *activation.Record, answer any) (json.RawMessage, error) {
	if answer == nil {
		return nil, nil
	}
	data, err := roundtrip.Encode(answer)
	if lost := roundtrip.InfoOf(reflect.TypeOf(answer)).Problems(); err == nil && len(lost) > 0 {
		err = errors.New(lost[0])
	}
	if err == nil {
		err = roundtrip.CheckUntyped(reflect.ValueOf(answer), "it")
	}
	if err != nil {
		return nil, &fermata.AnswerError{ID: r.ID, Err: err}
	}
	if bytes.Equal(data, jsonNull) {
		return nil, nil
	}
	return data, nil
}

// jsonNull is an answer without data, like nil. Treated as data, it would decode to the zero value
// of the expected type.
var jsonNull = []byte("null")

// saveAnswers saves the answers. They are durable before anything runs on them.
func (exec *execution) saveAnswers(ctx context.Context, answers []checkedAnswer) error {
	for _, a := range answers {
		a.record.Status, a.record.Answer, a.record.Undelivered, a.record.AnswerType = activation.StatusAnswered, a.answer, true, a.fingerprint
		a.record.Refused = ""
		if a.record.Kind == KindHold {
			a.record.Attestation = a.attestation
		}
		exec.stage(exec.recordInterrupt(a.record, nil))
	}
	exec.indexOpen()
	exec.setStatus(StatusRunning, nil)
	err := exec.flush(ctx) //mutate:answers-saved-first
	if errors.Is(err, ErrTakenOver) {
		return fmt.Errorf("%w: run %s", ErrRunning, exec.run)
	}
	return err
}

// openInterrupts lists the open interrupts with the places around them.
func (exec *execution) openInterrupts(root *compiled) []*fermata.InterruptCtx {
	exec.mu.Lock()
	defer exec.mu.Unlock()
	var open []*activation.Record
	for _, r := range exec.records.All() {
		if r.Status == activation.StatusOpen && !r.Composite {
			open = append(open, r)
		}
	}
	slices.SortFunc(open, activation.Compare)
	view := interruptView{session: exec, root: root}
	list := make([]*fermata.InterruptCtx, 0, len(open))
	for _, r := range open {
		list = append(list, view.interrupt(r))
	}
	return list
}

// discardUnsaved discards all unsaved changes.
func (exec *execution) discardUnsaved() {
	exec.mu.Lock()
	defer exec.mu.Unlock()
	exec.instances, exec.changedInstances = nil, nil
	exec.parts.revert()
}
