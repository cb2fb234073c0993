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
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/roundtrip"
	"github.com/fermata-go/fermata/internal/smallmap"
	"github.com/fermata-go/fermata/store"
)

// execution is one execution of a run, from start or resume to the next rest. All frames of the run share it; it is the only
// one that writes.
//
// Frames and visits stage what changed, in consistent batches; flush writes everything staged in one save. Flushes that
// meet are joined, so that a thousand nodes that finish together cost a few saves and not a thousand.
type execution struct {
	options
	naming sync.Once
	loaded *checkpoint                        // nil for a new run
	places *smallmap.Map[string, placeStatus] // what was open, and what is answered now, at and below each place

	saving sync.Mutex // held during a save
	mu     sync.Mutex // guards the rest
	head   head
	// version is that of the last save, ledger what changed since. It is nil without a store.
	version          int64
	parts            *partSet
	instances        []*instance       // at work
	instancesBuf     [2]*instance      // room for them
	journalOwners    map[string]string // the visits of journal parts that were written
	changedInstances []*instance       // of these, the ones that have something to stage
	records          *smallmap.Map[string, *activation.Record]
	badAnswers       []*fermata.AnswerError
	saveErr          error
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

// begin is called when it is known what was loaded: nil for a new run.
func (s *execution) begin(loaded *checkpoint) {
	s.loaded = loaded
	if s.store != nil {
		s.parts = newPartSet(loaded)
	}
	if loaded != nil {
		s.version, s.head, s.records = loaded.version, loaded.head, &loaded.interrupts
	}
}

// Run names the run. A run that nobody named and nobody can resume gets a name only if somebody asks for it.
func (s *execution) Run() string {
	s.naming.Do(func() {
		if s.run == "" {
			s.run = ident.Random("run")
		}
	})
	return s.run
}

func (s *execution) Time() time.Time { return s.clock() }
func (s *execution) Policy() any     { return s.policy }
func (s *execution) Ledger() any     { return s.ledger }

// Put keeps one entry of a visit's journal.
func (s *execution) Put(ctx context.Context, v *activation.Activation, part string, data []byte, when activation.Durability) error {
	s.mu.Lock()
	if data == nil {
		delete(s.journalOwners, part)
	} else {
		if s.journalOwners == nil {
			s.journalOwners = make(map[string]string)
		}
		s.journalOwners[part] = v.Place()
	}
	s.mu.Unlock()
	s.stage(partChange{part, data})
	if when == activation.SaveNow || when == activation.SaveSoon && !s.saveOnWait {
		return s.flush(ctx)
	}
	return nil
}

func (s *execution) OpenInterrupts(place string) []*activation.Record {
	return s.places.Get(place).open
}

func (s *execution) HasNewAnswer(place string) bool {
	return s.places.Get(place).fresh
}

// survey notes every open interrupt, and every one whose answer nobody has seen yet, under each place that contains it.
func (s *execution) indexOpen() {
	s.places = new(smallmap.Map[string, placeStatus])
	open := make([]*activation.Record, 0, s.records.Len())
	for _, r := range s.records.All() {
		if r.Status == activation.StatusOpen || r.Undelivered {
			open = append(open, r)
		}
	}
	slices.SortFunc(open, activation.Compare)
	for _, r := range open {
		for place := r.Place(); place != ""; place, _ = splitPlace(place) {
			a := s.places.GetOrAdd(place)
			if r.Status == activation.StatusOpen {
				a.open = append(a.open, r)
			} else if r.Kind != KindHold || !activation.Below(place, r.Activation) { //mutate:hold-release-is-no-answer
				// to the node itself a hold says nothing
				a.fresh = true
			}
		}
	}
}

// partChange is one part that is new or, with nil data, gone.
type partChange struct {
	part string
	data []byte
}

// put stages changes that belong together: a save has all of them or none.
func (s *execution) stage(changes ...partChange) {
	if s.store == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range changes {
		s.parts.set(c)
	}
}

func (s *execution) addInstance(f *instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instances == nil {
		s.instances = s.instancesBuf[:0]
	}
	s.instances = append(s.instances, f)
	if s.store != nil {
		s.changedInstances = append(s.changedInstances, f)
	}
}

// touch notes that a frame has something to stage.
func (s *execution) markChanged(f *instance) {
	if s.store == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changedInstances = append(s.changedInstances, f)
}

// setStatus stages the head.
func (s *execution) setStatus(status Status, failure error) {
	if s.store == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head.Status, s.head.Error = status, ""
	if failure != nil {
		s.head.Error = failure.Error()
	}
	s.parts.inlineDirty = true
}

// keep remembers an interrupt, with what it asks as a Go value if that is known, and returns its stored form.
func (s *execution) recordInterrupt(r *activation.Record, info any) partChange {
	s.mu.Lock()
	defer s.mu.Unlock()
	if info != nil {
		r.Info = info
	}
	s.indexInterrupt(r)
	return partChange{r.Part(), r.Encode()}
}

// settle remembers how an interrupt ended, and returns its stored form.
func (s *execution) settleInterrupt(r *activation.Record, status activation.Status) partChange {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Status != status {
		r.Status = status
	}
	s.indexInterrupt(r)
	settled := r.Closed(status)
	return partChange{r.Part(), settled.Encode()}
}

// remember is called with the lock held.
func (s *execution) indexInterrupt(r *activation.Record) {
	if s.records == nil {
		s.records = new(smallmap.Map[string, *activation.Record])
	}
	s.records.Set(r.ID, r)
}

// show remembers what an interrupt asks, as a Go value.
func (s *execution) setInfo(id string, info any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records.Get(id).Info = info
}

// refused notes answers that the code which had asked could not use.
func (s *execution) addBadAnswers(bad []*activation.BadAnswer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range bad {
		s.badAnswers = append(s.badAnswers, &fermata.AnswerError{ID: b.ID, Err: b.Err})
	}
}

// flush writes everything staged so far and returns when it is durable. After a failed save nothing is saved any more:
// whether it was applied is unknown, and a second try could overwrite what somebody else did since.
func (s *execution) flush(ctx context.Context) error {
	if s.store == nil {
		return nil
	}
	s.saving.Lock()
	defer s.saving.Unlock()
	if s.saveErr != nil {
		return s.saveErr
	}
	delta, err := s.takeDelta()
	if err != nil || len(delta.Put)+len(delta.Delete) == 0 {
		return err
	}
	lasting := &saveContext{Context: ctx}
	defer lasting.close()
	version, err := s.store.Save(lasting, s.key(), s.version, delta)
	switch {
	case errors.Is(err, store.ErrStale): //mutate:stale-save-is-takeover
		s.saveErr = fmt.Errorf("%w: run %s", ErrTakenOver, s.run)
	case err != nil:
		s.saveErr = &SaveError{Run: s.run, Err: err}
	default:
		s.version = version
	}
	return s.saveErr
}

//mutate:run-key-has-account
func (s *execution) key() store.Key { return store.Key{Account: s.account, Run: s.run} }

// take turns what is staged into a delta.
func (s *execution) takeDelta() (store.Delta, error) {
	s.mu.Lock()
	changed := s.changedInstances
	s.changedInstances = nil
	s.mu.Unlock()
	for _, f := range changed {
		if err := f.stageChanges(); err != nil {
			return store.Delta{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts.takeDelta(&s.head), nil
}

// inside returns the changes that leave nothing in the store of what is inside a visit that is over, and the interrupts there
// that are still open, and forgets the frames there. ranGraphs says whether there can be any: of thousands of graphs beside each
// other, most visits have none.
func (s *execution) removeInside(place string, ranGraphs bool) (changes []partChange, open []*activation.Record) {
	if !ranGraphs && (s.loaded == nil || len(s.loaded.at(place).below) == 0) {
		return nil, nil
	}
	var frames []*instance
	s.mu.Lock()
	s.instances = slices.DeleteFunc(s.instances, func(f *instance) bool {
		if f.location.Place == "" || !activation.Below(f.location.Place, place) {
			return false
		}
		frames = append(frames, f)
		return true
	})
	var parts []string
	if len(frames) > 0 {
		for part, owner := range s.journalOwners { // of visits that did not come to their end
			if owner != place && activation.Below(owner, place) {
				parts = append(parts, part)
				delete(s.journalOwners, part)
			}
		}
	}
	s.mu.Unlock()
	if s.loaded != nil {
		parts = append(parts, s.loaded.at(place).below...)
	}
	for _, part := range parts {
		changes = append(changes, partChange{part: part})
	}
	for _, f := range frames { // a frame locks itself before the session, never the other way round
		changes = append(changes, f.discard()...)
	}
	if len(changes) == 0 {
		return nil, nil
	}
	return changes, s.openBelow(place)
}

// below lists the open interrupts of visits inside a visit. Those elsewhere are not looked at: the code there may be at work on them.
func (s *execution) openBelow(place string) []*activation.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	var open []*activation.Record
	for _, r := range s.records.All() {
		if r.Activation != place && activation.Below(r.Activation, place) && r.Status == activation.StatusOpen {
			open = append(open, r)
		}
	}
	return open
}

// abandoned lists the open interrupts of graphs inside a visit that its node, which waits for these signals, no longer runs,
// and the parts of those graphs: if the node comes back to one, it begins anew.
func (s *execution) abandonedBelow(place string, signals []*activation.Signal) (open []*activation.Record, parts []string) {
	if s.loaded == nil || len(s.loaded.at(place).below) == 0 {
		return nil, nil
	}
	asked := make(map[string]bool, len(signals))
	for _, signal := range signals {
		asked[signal.Record.ID] = true
	}
	running := make(map[string]bool)
	s.mu.Lock()
	for _, f := range s.instances {
		running[f.location.Place] = true
	}
	s.mu.Unlock()
	for _, r := range s.openBelow(place) {
		if asked[r.ID] {
			continue
		}
		frame := s.loaded.outermostInstance(r.Activation, place)
		if frame == "" || running[frame] {
			continue
		}
		for _, part := range s.loaded.at(place).below {
			if _, at := splitPartName(part); activation.Below(at, frame) {
				parts = append(parts, part)
			}
		}
		open = append(open, r)
	}
	return open, parts
}

// checkedAnswer is an interrupt with the answer that it gets, as JSON.
type checkedAnswer struct {
	record      *activation.Record
	answer      json.RawMessage
	fingerprint string // the form that it was checked against
}

// check looks at what the caller gave for each interrupt. Nothing is changed by it.
func (s *execution) checkAnswers(root *compiled, given ...map[string]any) ([]checkedAnswer, error) {
	var checked []checkedAnswer
	for _, answers := range given {
		for id, answer := range answers {
			r := s.records.Get(id)
			switch {
			case r == nil:
				//mutate:unknown-interrupt
				return nil, fmt.Errorf("%w %q in run %s", ErrUnknownInterrupt, id, s.run)
			case r.Status == activation.StatusAnswered: //mutate:answered-once
				return nil, fmt.Errorf("%w: %s at %s", ErrAlreadyAnswered, id, r.Address)
			case r.Status == activation.StatusWithdrawn:
				return nil, fmt.Errorf("%w: %s at %s", ErrWithdrawn, id, r.Address)
			}
			data, err := s.checkAnswer(r, answer, root)
			if err != nil {
				return nil, err
			}
			checked = append(checked, checkedAnswer{r, data, answerFingerprint(r)})
		}
	}
	return checked, nil
}

func (s *execution) checkAnswer(r *activation.Record, answer any, root *compiled) (data json.RawMessage, err error) {
	defer func() {
		if broken, ok := errors.AsType[*PanicError](err); ok {
			data, err = nil, &fermata.AnswerError{ID: r.ID, Kind: r.Kind, Err: broken}
		}
	}()
	defer recovery.Recover(&err) // an answer's own methods may panic
	if r.Kind == KindHold {
		place, err := fermata.ParseAddress(r.Activation)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		data, err = root.checkHold(place, answer)
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
		return nil, root.programChanged(s.run, unknownKindText(r))
	}
	data, err = kind.Check(r.Data, answer) //mutate:answers-checked-first
	if bad, ok := errors.AsType[*fermata.AnswerError](err); ok {
		bad.ID = r.ID
	}
	return data, err
}

// unknownKindText says of a question that this program does not have its kind.
func unknownKindText(r *activation.Record) string {
	return fmt.Sprintf("a question of the kind %q at %s", r.Kind, r.Address)
}

// answerFingerprint names the form of answers that the kind of an interrupt has in this program.
func answerFingerprint(r *activation.Record) string {
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
	if lost := roundtrip.Problems(reflect.TypeOf(answer), "it"); err == nil && len(lost) > 0 {
		err = errors.New(lost[0])
	}
	if err != nil {
		return nil, &fermata.AnswerError{ID: r.ID, Err: err}
	}
	if bytes.Equal(data, jsonNull) {
		return nil, nil
	}
	return data, nil
}

// jsonNull is JSON's nil, and an answer without data like it: taken for data, it would be the zero value of whatever type the code
// that asked expects.
var jsonNull = []byte("null")

// accept writes the answers down. They are durable before anything runs on them.
func (s *execution) saveAnswers(ctx context.Context, answers []checkedAnswer) error {
	for _, a := range answers {
		a.record.Status, a.record.Answer, a.record.Undelivered, a.record.AnswerType = activation.StatusAnswered, a.answer, true, a.fingerprint
		s.stage(s.recordInterrupt(a.record, nil))
	}
	s.indexOpen()
	s.setStatus(StatusRunning, nil)
	err := s.flush(ctx) //mutate:answers-saved-first
	if errors.Is(err, ErrTakenOver) {
		return fmt.Errorf("%w: run %s", ErrRunning, s.run)
	}
	return err
}

// waiting lists the open interrupts, with the places around them.
func (s *execution) openInterrupts(root *compiled) []*fermata.InterruptCtx {
	s.mu.Lock()
	defer s.mu.Unlock()
	var open []*activation.Record
	for _, r := range s.records.All() {
		if r.Status == activation.StatusOpen && !r.Composite {
			open = append(open, r)
		}
	}
	slices.SortFunc(open, activation.Compare)
	view := interruptView{session: s, root: root}
	list := make([]*fermata.InterruptCtx, 0, len(open))
	for _, r := range open {
		list = append(list, view.interrupt(r))
	}
	return list
}

// abandon gives up everything that is not saved.
func (s *execution) discardUnsaved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instances, s.changedInstances = nil, nil
	s.parts.revert()
}
