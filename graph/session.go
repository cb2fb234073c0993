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
	"github.com/fermata-go/fermata/internal/few"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/safely"
	"github.com/fermata-go/fermata/internal/savable"
	"github.com/fermata-go/fermata/internal/visit"
	"github.com/fermata-go/fermata/store"
)

// session is one execution of a run, from start or resume to the next rest. All frames of the run share it; it is the only
// one that writes.
//
// Frames and visits stage what changed, in consistent batches; flush writes everything staged in one save. Flushes that
// meet are joined, so that a thousand nodes that finish together cost a few saves and not a thousand.
type session struct {
	options
	naming sync.Once
	loaded *checkpoint             // nil for a new run
	places *few.Map[string, about] // what was open, and what is answered now, at and below each place

	saving sync.Mutex // held during a save
	mu     sync.Mutex // guards the rest
	head   head
	// version is that of the last save, ledger what changed since. It is nil without a store.
	version  int64
	ledger   *ledger
	frames   []*frame          // at work
	few      [2]*frame         // room for them
	journals map[string]string // the visits of journal parts that were written
	changed  []*frame          // of these, the ones that have something to stage
	records  *few.Map[string, *visit.Record]
	bad      []*fermata.AnswerError
	broken   error
}

type about struct {
	open  []*visit.Record
	fresh bool
}

var _ visit.Host = (*session)(nil)

func newSession(list []Option) *session {
	s := &session{options: options{clock: time.Now}}
	for _, option := range list {
		option(&s.options)
	}
	return s
}

// begin is called when it is known what was loaded: nil for a new run.
func (s *session) begin(loaded *checkpoint) {
	s.loaded = loaded
	if s.store != nil {
		s.ledger = newLedger(loaded)
	}
	if loaded != nil {
		s.version, s.head, s.records = loaded.version, loaded.head, &loaded.byID
	}
}

// Run names the run. A run that nobody named and nobody can resume gets a name only if somebody asks for it.
func (s *session) Run() string {
	s.naming.Do(func() {
		if s.run == "" {
			s.run = ident.Random("run")
		}
	})
	return s.run
}

func (s *session) Time() time.Time { return s.clock() }
func (s *session) Policy() any     { return s.policy }
func (s *session) Ledger() any     { return s.effects }

// Put keeps one entry of a visit's journal.
func (s *session) Put(ctx context.Context, v *visit.Visit, part string, data []byte, when visit.When) error {
	s.mu.Lock()
	if data == nil {
		delete(s.journals, part)
	} else {
		if s.journals == nil {
			s.journals = make(map[string]string)
		}
		s.journals[part] = v.Place()
	}
	s.mu.Unlock()
	s.put(change{part, data})
	if when == visit.Now || when == visit.Soon && !s.saveOnHold {
		return s.flush(ctx)
	}
	return nil
}

func (s *session) Open(place string) []*visit.Record {
	return s.places.Get(place).open
}

func (s *session) Fresh(place string) bool {
	return s.places.Get(place).fresh
}

// survey notes every open interrupt, and every one whose answer nobody has seen yet, under each place that contains it.
func (s *session) survey() {
	s.places = new(few.Map[string, about])
	open := make([]*visit.Record, 0, s.records.Len())
	for _, r := range s.records.All() {
		if r.Status == visit.Open || r.Fresh {
			open = append(open, r)
		}
	}
	slices.SortFunc(open, visit.Compare)
	for _, r := range open {
		for place := r.Place(); place != ""; place, _ = cutPlace(place) {
			a := s.places.At(place)
			if r.Status == visit.Open {
				a.open = append(a.open, r)
			} else if r.Kind != KindHold || !visit.Below(place, r.Visit) { //mutate:hold-release-is-no-answer
				// to the node itself a hold says nothing
				a.fresh = true
			}
		}
	}
}

// change is one part that is new or, with nil data, gone.
type change struct {
	part string
	data []byte
}

// put stages changes that belong together: a save has all of them or none.
func (s *session) put(changes ...change) {
	if s.store == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range changes {
		s.ledger.set(c)
	}
}

func (s *session) join(f *frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frames == nil {
		s.frames = s.few[:0]
	}
	s.frames = append(s.frames, f)
	if s.store != nil {
		s.changed = append(s.changed, f)
	}
}

// touch notes that a frame has something to stage.
func (s *session) touch(f *frame) {
	if s.store == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = append(s.changed, f)
}

// setStatus stages the head.
func (s *session) setStatus(status Status, failure error) {
	if s.store == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head.Status, s.head.Error = status, ""
	if failure != nil {
		s.head.Error = failure.Error()
	}
	s.ledger.stale = true
}

// keep remembers an interrupt, with what it asks as a Go value if that is known, and returns its stored form.
func (s *session) keep(r *visit.Record, info any) change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if info != nil {
		r.Info = info
	}
	s.remember(r)
	return change{r.Part(), r.Encode()}
}

// settle remembers how an interrupt ended, and returns its stored form.
func (s *session) settle(r *visit.Record, status visit.Status) change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Status != status {
		r.Status = status
	}
	s.remember(r)
	settled := r.Settled(status)
	return change{r.Part(), settled.Encode()}
}

// remember is called with the lock held.
func (s *session) remember(r *visit.Record) {
	if s.records == nil {
		s.records = new(few.Map[string, *visit.Record])
	}
	s.records.Set(r.ID, r)
}

// show remembers what an interrupt asks, as a Go value.
func (s *session) show(id string, info any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records.Get(id).Info = info
}

// refused notes answers that the code which had asked could not use.
func (s *session) refused(bad []*visit.BadAnswer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range bad {
		s.bad = append(s.bad, &fermata.AnswerError{ID: b.ID, Err: b.Err})
	}
}

// flush writes everything staged so far and returns when it is durable. After a failed save nothing is saved any more:
// whether it was applied is unknown, and a second try could overwrite what somebody else did since.
func (s *session) flush(ctx context.Context) error {
	if s.store == nil {
		return nil
	}
	s.saving.Lock()
	defer s.saving.Unlock()
	if s.broken != nil {
		return s.broken
	}
	delta, err := s.take()
	if err != nil || len(delta.Put)+len(delta.Delete) == 0 {
		return err
	}
	lasting := &lastingContext{Context: ctx}
	defer lasting.end()
	version, err := s.store.Save(lasting, s.key(), s.version, delta)
	switch {
	case errors.Is(err, store.ErrStale): //mutate:stale-save-is-takeover
		s.broken = fmt.Errorf("%w: run %s", ErrTakenOver, s.run)
	case err != nil:
		s.broken = &SaveError{Run: s.run, Err: err}
	default:
		s.version = version
	}
	return s.broken
}

//mutate:run-key-has-account
func (s *session) key() store.Key { return store.Key{Account: s.account, Run: s.run} }

// take turns what is staged into a delta.
func (s *session) take() (store.Delta, error) {
	s.mu.Lock()
	changed := s.changed
	s.changed = nil
	s.mu.Unlock()
	for _, f := range changed {
		if err := f.stage(); err != nil {
			return store.Delta{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.delta(&s.head), nil
}

// inside returns the changes that leave nothing in the store of what is inside a visit that is over, and the interrupts there
// that are still open, and forgets the frames there. ranGraphs says whether there can be any: of thousands of graphs beside each
// other, most visits have none.
func (s *session) inside(place string, ranGraphs bool) (changes []change, open []*visit.Record) {
	if !ranGraphs && (s.loaded == nil || len(s.loaded.at(place).below) == 0) {
		return nil, nil
	}
	var frames []*frame
	s.mu.Lock()
	s.frames = slices.DeleteFunc(s.frames, func(f *frame) bool {
		if f.names.Place == "" || !visit.Below(f.names.Place, place) {
			return false
		}
		frames = append(frames, f)
		return true
	})
	var parts []string
	if len(frames) > 0 {
		for part, owner := range s.journals { // of visits that did not come to their end
			if owner != place && visit.Below(owner, place) {
				parts = append(parts, part)
				delete(s.journals, part)
			}
		}
	}
	s.mu.Unlock()
	if s.loaded != nil {
		parts = append(parts, s.loaded.at(place).below...)
	}
	for _, part := range parts {
		changes = append(changes, change{part: part})
	}
	for _, f := range frames { // a frame locks itself before the session, never the other way round
		changes = append(changes, f.discard()...)
	}
	if len(changes) == 0 {
		return nil, nil
	}
	return changes, s.below(place)
}

// below lists the open interrupts of visits inside a visit. Those elsewhere are not looked at: the code there may be at work on them.
func (s *session) below(place string) []*visit.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	var open []*visit.Record
	for _, r := range s.records.All() {
		if r.Visit != place && visit.Below(r.Visit, place) && r.Status == visit.Open {
			open = append(open, r)
		}
	}
	return open
}

// abandoned lists the open interrupts of graphs inside a visit that its node, which waits for these signals, no longer runs,
// and the parts of those graphs: if the node comes back to one, it begins anew.
func (s *session) abandoned(place string, signals []*visit.Signal) (open []*visit.Record, parts []string) {
	if s.loaded == nil || len(s.loaded.at(place).below) == 0 {
		return nil, nil
	}
	asked := make(map[string]bool, len(signals))
	for _, signal := range signals {
		asked[signal.Record.ID] = true
	}
	running := make(map[string]bool)
	s.mu.Lock()
	for _, f := range s.frames {
		running[f.names.Place] = true
	}
	s.mu.Unlock()
	for _, r := range s.below(place) {
		if asked[r.ID] {
			continue
		}
		frame := s.loaded.outermost(r.Visit, place)
		if frame == "" || running[frame] {
			continue
		}
		for _, part := range s.loaded.at(place).below {
			if _, at := partWord(part); visit.Below(at, frame) {
				parts = append(parts, part)
			}
		}
		open = append(open, r)
	}
	return open, parts
}

// answered is an interrupt with the answer that it gets, as JSON.
type answered struct {
	record *visit.Record
	answer json.RawMessage
	fits   string // the form that it was checked against
}

// check looks at what the caller gave for each interrupt. Nothing is changed by it.
func (s *session) check(root *compiled, given ...map[string]any) ([]answered, error) {
	var checked []answered
	for _, answers := range given {
		for id, answer := range answers {
			r := s.records.Get(id)
			switch {
			case r == nil:
				//mutate:unknown-interrupt
				return nil, fmt.Errorf("%w %q in run %s", ErrUnknownInterrupt, id, s.run)
			case r.Status == visit.Answered: //mutate:answered-once
				return nil, fmt.Errorf("%w: %s at %s", ErrAlreadyAnswered, id, r.Address)
			case r.Status == visit.Withdrawn:
				return nil, fmt.Errorf("%w: %s at %s", ErrStale, id, r.Address)
			}
			data, err := s.checkOne(r, answer, root)
			if err != nil {
				return nil, err
			}
			checked = append(checked, answered{r, data, answerForm(r)})
		}
	}
	return checked, nil
}

func (s *session) checkOne(r *visit.Record, answer any, root *compiled) (data json.RawMessage, err error) {
	defer func() {
		if broken, ok := errors.AsType[*PanicError](err); ok {
			data, err = nil, &fermata.AnswerError{ID: r.ID, Kind: r.Kind, Err: broken}
		}
	}()
	defer safely.Recover(&err) // an answer's own methods may panic
	if r.Kind == KindHold {
		place, err := fermata.ParseAddress(r.Visit)
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
		return plainAnswer(r, answer)
	}
	kind, ok := fermata.LookupKind(r.Kind)
	if !ok {
		return nil, root.changed(s.run, noSuchKind(r))
	}
	data, err = kind.Check(r.Data, answer) //mutate:answers-checked-first
	if bad, ok := errors.AsType[*fermata.AnswerError](err); ok {
		bad.ID = r.ID
	}
	return data, err
}

// noSuchKind says of a question that this program does not have its kind.
func noSuchKind(r *visit.Record) string {
	return fmt.Sprintf("a question of the kind %q at %s", r.Kind, r.Address)
}

// answerForm names the form of answers that the kind of an interrupt has in this program.
func answerForm(r *visit.Record) string {
	if kind, ok := fermata.LookupKind(r.Kind); ok {
		return kind.AnswerPrint()
	}
	return ""
}

func plainAnswer(r *visit.Record, answer any) (json.RawMessage, error) {
	if answer == nil {
		return nil, nil
	}
	data, err := savable.Encode(answer)
	if lost := savable.Mistakes(reflect.TypeOf(answer), "it"); err == nil && len(lost) > 0 {
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
func (s *session) accept(ctx context.Context, answers []answered) error {
	for _, a := range answers {
		a.record.Status, a.record.Answer, a.record.Fresh, a.record.Fits = visit.Answered, a.answer, true, a.fits
		s.put(s.keep(a.record, nil))
	}
	s.survey()
	s.setStatus(StatusRunning, nil)
	err := s.flush(ctx) //mutate:answers-saved-first
	if errors.Is(err, ErrTakenOver) {
		return fmt.Errorf("%w: run %s", ErrRunning, s.run)
	}
	return err
}

// waiting lists the open interrupts, with the places around them.
func (s *session) waiting(root *compiled) []*fermata.InterruptCtx {
	s.mu.Lock()
	defer s.mu.Unlock()
	var open []*visit.Record
	for _, r := range s.records.All() {
		if r.Status == visit.Open && !r.Composite {
			open = append(open, r)
		}
	}
	slices.SortFunc(open, visit.Compare)
	view := viewer{session: s, root: root}
	list := make([]*fermata.InterruptCtx, 0, len(open))
	for _, r := range open {
		list = append(list, view.interrupt(r))
	}
	return list
}

// abandon gives up everything that is not saved.
func (s *session) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames, s.changed = nil, nil
	s.ledger.forget()
}
