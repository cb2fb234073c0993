// Package visit holds what a run knows about one stay at one node: which questions were asked there and answered, which
// work is done, what is parked.
//
// It is the ground that both floors of the runtime stand on. The vocabulary (package fermata: Ask, Do, Approve, Effect,
// Interrupt …) reads and writes a visit that it finds in the context; the engine (package graph) makes visits, saves what
// they hold and enters the node again after an answer. Places are spelled as address texts, so that nothing here needs to
// know the types above.
//
//	place of a visit   node:outer#1;node:inner#2      node names with the number of the visit
//	relative place     tool:search#call_1             what user code appended below the node
package activation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-go/fermata/internal/smallmap"
)

// Durability says how soon a journal entry must be durable.
type Durability int

const (
	// SaveSoon is the step's own rhythm: at once, unless the run trades that for speed.
	SaveSoon Durability = iota
	// SaveNow means before the call returns, whatever the run trades.
	SaveNow
	// SaveWithNext means with the next save.
	SaveWithNext
)

// Host is the engine as a visit sees it.
type Host interface {
	// Run is the id of the run.
	Run() string
	// Time is the run's clock.
	Time() time.Time
	// Policy is the fermata.Policy of the run, or nil. It is untyped because that type lives above this package.
	Policy() any
	// Ledger is the fermata.Ledger of the run, or nil, untyped like Policy.
	Ledger() any
	// Put keeps one part of the visit's journal; nil data removes it.
	Put(ctx context.Context, v *Activation, part string, data []byte, when Durability) error
	// StatusOpen lists the interrupts at or below place that were open when this execution began.
	OpenInterrupts(place string) []*Record
	// Fresh reports whether this execution brought an answer for something at or below place.
	HasNewAnswer(place string) bool
}

// Instance is a graph at work: who runs it, its place within the run, and its address as people see it.
type Instance struct {
	Host           Host
	Place, Address string
	// Outer is the visit whose code runs it; nil for the outermost.
	Outer *Activation
}

// Over reports whether the visit around it has ended: then whoever still works on it was left behind.
func (f *Instance) Ended() bool { return f.Outer != nil && f.Outer.isOver() }

// Activation is one stay of a run at one node. There is one for every node that is entered, so it is kept small.
type Activation struct {
	*Instance
	node  *string // the node's segment, which the flow keeps
	ctx   context.Context
	state *state // nil while there is nothing to remember: most visits neither ask nor do

	// Attempt counts how often this visit ended with a plain error.
	Attempt int

	mu     sync.Mutex
	ended  atomic.Bool
	number int32
}

// state is what a visit knows, and what its current entry has used of that.
type state struct {
	place      string // spelled out when somebody wants to know it
	records    smallmap.Map[recordKey, *Record]
	journal    map[string]json.RawMessage   // by part name
	claims     smallmap.Map[recordKey, int] // what was used in this entry, and how often
	raised     []*Record                    // interrupts that the code of this entry was told about
	skipped    map[string]bool              // places that this entry did not go into
	badAnswers []*BadAnswer
	ranGraphs  bool // the code of this entry runs graphs
}

// recordKey is where a record or an entry-long claim lives.
type recordKey struct{ rel, key string }

// Init makes a zero Visit one without a past: the nth of a node, which is named by its segment.
func (v *Activation) Init(frame *Instance, node *string, number, attempt int) {
	v.Instance, v.node, v.number, v.Attempt = frame, node, int32(number), attempt
}

// Restore gives the visit back what an earlier execution saved under place. It is called before Enter.
func (v *Activation) Restore(place string, records []*Record, journal map[string]json.RawMessage) {
	m := v.ensureState()
	m.place, m.journal = place, journal
	for _, r := range records {
		m.add(r)
	}
}

// state is called with the lock held, or before Enter.
func (v *Activation) ensureState() *state {
	if v.state == nil {
		v.state = new(state)
	}
	return v.state
}

func (m *state) add(r *Record) { m.records.Set(recordKey{r.RelPath, r.Key}, r) }

// Enter returns the context for the node's code. It is called once.
func (v *Activation) Enter(ctx context.Context) context.Context {
	v.ctx = ctx
	return (*activationContext)(v)
}

// Root is the place of the node itself.
func (v *Activation) Root() *Scope { return &Scope{Activation: v} }

// Place names the visit within the run.
func (v *Activation) Place() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.placeLocked()
}

// placed is called with the lock held.
func (v *Activation) placeLocked() string {
	if v.state == nil && v.ended.Load() { // nothing is to be remembered any more
		return PlaceOf(v.Instance.Place, *v.node, int(v.number))
	}
	m := v.ensureState()
	if m.place == "" {
		m.place = PlaceOf(v.Instance.Place, *v.node, int(v.number))
	}
	return m.place
}

// PlaceOf is the place of a visit in a frame.
func PlaceOf(frame, node string, number int) string {
	if frame == "" {
		return node + "#" + strconv.Itoa(number)
	}
	return frame + ";" + node + "#" + strconv.Itoa(number)
}

// Address is that of the node, as people see it.
func (v *Activation) Address() string { return Join(v.Instance.Address, *v.node) }

// Parts lists the names of the journal parts that the visit holds.
func (v *Activation) Parts() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state == nil {
		return nil
	}
	names := make([]string, 0, len(v.state.journal))
	for name := range v.state.journal {
		names = append(names, name)
	}
	return names
}

// End closes the visit to its own code: what a goroutine left behind still calls is refused, and finds nothing. From then on the interrupts are the
// engine's, which does not lock them. It reports whether the visit has anything to remember.
func (v *Activation) End() (used bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended.Store(true)
	return v.state != nil
}

// over reports whether the visit, or one around it, has ended.
func (v *Activation) isOver() bool { return v.ended.Load() || v.Instance.Ended() }

// ErrEnded is returned to code that still runs after its node returned.
var ErrEnded = errors.New("fermata: the node has returned; its context is no longer part of the run")

// Scope is a place within a visit. Contexts carry it; it does not change.
type Scope struct {
	*Activation
	// Rel is the place below the node, "" for the node itself.
	RelPath string

	work *workItem
}

// workItem is a piece of work that is done once, and what was written down in the course of it: when the work is done, its result
// stands for all of that.
type workItem struct {
	parts  []string
	outer  *workItem // the work that it is part of
	raised *Record   // an interrupt that its code, in this entry, was told to wait for
}

type contextKey struct{}

// scopeContext is a context that stands for a scope.
type scopeContext struct {
	context.Context
	scope *Scope
}

func (c *scopeContext) Value(key any) any {
	if key == (contextKey{}) {
		return c.scope
	}
	return c.Context.Value(key)
}

// activationContext is a visit as the context of its node's code.
type activationContext Activation

func (e *activationContext) Deadline() (time.Time, bool) { return e.ctx.Deadline() }
func (e *activationContext) Done() <-chan struct{}       { return e.ctx.Done() }
func (e *activationContext) Err() error                  { return e.ctx.Err() }

func (e *activationContext) Value(key any) any {
	if key == (contextKey{}) {
		return (*Activation)(e).Root()
	}
	return e.ctx.Value(key)
}

// WithScope returns a context that stands for the scope.
func WithScope(ctx context.Context, s *Scope) context.Context { return &scopeContext{ctx, s} }

// FromContext returns the scope that the context stands for, or nil outside of a run.
func FromContext(ctx context.Context) *Scope {
	s, _ := ctx.Value(contextKey{}).(*Scope)
	return s
}

type editKey struct{}

// WithEditCheck returns a context in which arguments that a person edits have to pass a check, beside their schema: those of a tool are any JSON to the code that asks
// for its approval. nil is no check.
func WithEditCheck(ctx context.Context, check func(args json.RawMessage) error) context.Context {
	return context.WithValue(ctx, editKey{}, check)
}

// CheckEdit makes the check that the context demands.
func CheckEdit(ctx context.Context, args json.RawMessage) error {
	if check, _ := ctx.Value(editKey{}).(func(json.RawMessage) error); check != nil {
		return check(args)
	}
	return nil
}

// Child is the scope one segment further down.
func (s *Scope) Child(segment string) *Scope {
	return &Scope{Activation: s.Activation, RelPath: Join(s.RelPath, segment), work: s.work}
}

// Inside is the scope for the course of the work at this place. What is recorded there is forgotten when the result is
// recorded with [Scope.Complete].
func (s *Scope) Begin() *Scope {
	return &Scope{Activation: s.Activation, RelPath: s.RelPath, work: &workItem{outer: s.work}}
}

// Done records the result of the work that was done inside, and then forgets its course: never the other way round, or a crash
// in between would lose both.
func (s *Scope) Complete(ctx context.Context, inside *Scope, what string, result json.RawMessage) error {
	if err := s.Record(ctx, what, result, SaveSoon); err != nil {
		return err
	}
	own := s.part(what)
	s.mu.Lock()
	parts := inside.work.parts
	inside.work.parts = nil
	s.mu.Unlock()
	for _, part := range parts {
		if part != own {
			s.deletePart(ctx, part)
		}
	}
	return nil
}

// At is the place of the scope within the run.
func (s *Scope) Path() string { return Join(s.Place(), s.RelPath) }

// FullAddress is the address of the scope as people see it.
func (s *Scope) FullAddress() string { return Join(s.Address(), s.RelPath) }

// Join appends one address text to another.
func Join(a, b string) string {
	if a == "" {
		return b
	}
	if b == "" {
		return a
	}
	return a + ";" + b
}

// Claim notes that what is used in this entry. The second claim of the same thing fails: two pieces of work at one place
// would get each other's answers.
func (s *Scope) Claim(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver() {
		return ErrEnded
	}
	if s.ensureState().count(recordKey{s.RelPath, what}) > 1 { //mutate:duplicate-place
		return &DuplicateError{Address: s.FullAddress(), What: what}
	}
	return nil
}

// ClaimGraph is Claim for a graph that the code at this place runs.
func (s *Scope) ClaimGraph() error {
	if err := s.Claim("graph"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver() {
		return ErrEnded
	}
	s.state.ranGraphs = true
	return nil
}

// RanGraphs reports whether the code of this entry ran graphs. It is for after End.
func (v *Activation) RanGraphs() bool { return v.state != nil && v.state.ranGraphs }

func (m *state) count(what recordKey) int {
	times := m.claims.GetOrAdd(what)
	*times++
	return *times
}

// DuplicateError says that one place was used twice in one stay at a node.
type DuplicateError struct{ Address, What string }

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("fermata: %s at %s is used twice in one visit: give each its own name or address", e.What, e.Address)
}

// part is the name under which something of this scope is kept: "do node:a#1;do:charge".
func (s *Scope) part(what string) string { return what + " " + s.Path() }

// Recall returns what was recorded here.
func (s *Scope) Recorded(what string) (json.RawMessage, bool) {
	part := s.part(what)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil {
		return nil, false
	}
	data, ok := s.state.journal[part]
	if ok {
		s.trackPart(part)
	}
	return data, ok
}

// note is called with the lock held.
func (s *Scope) trackPart(part string) {
	if s.work != nil {
		s.work.parts = append(s.work.parts, part)
	}
}

// Record writes down something about this place.
func (s *Scope) Record(ctx context.Context, what string, data json.RawMessage, when Durability) error {
	part := s.part(what)
	before, had, err := s.set(part, data)
	if err != nil {
		return err
	}
	if err = s.Host.Put(ctx, s.Activation, part, data, when); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if had {
			s.state.journal[part] = before
		} else {
			delete(s.state.journal, part)
		}
	}
	return err
}

func (s *Scope) set(part string, data json.RawMessage) (before json.RawMessage, had bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver() {
		return nil, false, ErrEnded
	}
	m := s.ensureState()
	s.trackPart(part)
	before, had = m.journal[part]
	if m.journal == nil {
		m.journal = make(map[string]json.RawMessage)
	}
	m.journal[part] = data
	return before, had, nil
}

// Forget removes what was recorded here, with the next save.
func (s *Scope) Delete(ctx context.Context, what string) { s.deletePart(ctx, s.part(what)) }

func (s *Scope) deletePart(ctx context.Context, part string) {
	s.mu.Lock()
	_, had := s.state.journal[part]
	delete(s.state.journal, part)
	s.mu.Unlock()
	if had {
		_ = s.Host.Put(ctx, s.Activation, part, nil, SaveWithNext) // SaveWithNext only notes it; it cannot fail
	}
}

// Unseen returns the places below this one, outer ones first, at which work has a question open or an answer that nobody has used, and which
// this entry has not come to. what is the claim of such work.
func (s *Scope) UnvisitedPending(what string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil || s.isOver() {
		return nil
	}
	var places []string
	for _, r := range s.state.records.All() {
		if r.Status != StatusOpen && !r.Undelivered || r.RelPath == s.RelPath || !Below(r.RelPath, s.RelPath) || s.isSkipped(r.RelPath) {
			continue
		}
		for end := len(s.RelPath) + 1; end <= len(r.RelPath); end++ {
			if end < len(r.RelPath) && r.RelPath[end] != ';' {
				continue
			}
			if rel := r.RelPath[:end]; s.state.claims.Get(recordKey{rel, what}) == 0 {
				places = append(places, Join(s.placeLocked(), rel))
			}
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// StatusAnswered reports whether a question at this place has its answer, without asking it. key is that of Ask.
func (s *Scope) Answered(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil || s.isOver() {
		return false
	}
	r := s.state.records.Get(recordKey{s.RelPath, key})
	return r != nil && r.Status == StatusAnswered
}

// AnsweredAs returns the last question of a kind at this place that has its answer, as if it were asked once more; nil if there is none.
func (s *Scope) LastAnswered(kind string) *Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil || s.isOver() {
		return nil
	}
	var last *Record
	for _, r := range s.state.records.All() {
		if r.RelPath == s.RelPath && r.Kind == kind && r.Status == StatusAnswered && (last == nil || r.Seq > last.Seq) {
			last = r
		}
	}
	if last != nil {
		last.used = true
	}
	return last
}

// Skip notes that this entry does not go into the work at this place, because it is done or waits: what was asked there is
// not asked again, and that means nothing.
func (s *Scope) Skip() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver() { // what it used is being looked at, without the lock
		return
	}
	m := s.ensureState()
	if m.skipped == nil {
		m.skipped = make(map[string]bool)
	}
	m.skipped[s.RelPath] = true
}

// Hand notes that the code at this place is told to wait: it has to pass that on.
func (s *Scope) Raise(signals ...*Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, signal := range signals {
		s.raise(signal.Record)
	}
}

// hand is called with the lock held. Each piece of work keeps what it was told itself: looking through what everybody was told would
// make a list of a thousand items that wait a million looks.
func (s *Scope) raise(r *Record) {
	m := s.ensureState()
	m.raised = append(m.raised, r)
	for w := s.work; w != nil; w = w.outer {
		w.raised = r
	}
}

// Finish returns an error if the work whose inside this is was told to wait and ends all the same.
func (s *Scope) Finish() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.work.raised != nil {
		return swallowed(s.work.raised)
	}
	return nil
}

const parked = "parked"

// Park notes that the work at this place waits for a person and for nothing else.
func (s *Scope) Park(ctx context.Context) {
	_ = s.Record(ctx, parked, json.RawMessage("true"), SaveWithNext) // SaveWithNext only notes it; it cannot fail
}

// Parked returns the open interrupts of this place if its work waits and none of them was answered: then there is nothing
// to do here, and the work must not be entered. Otherwise it returns nil and the place is no longer parked.
func (s *Scope) Parked(ctx context.Context) error {
	if _, ok := s.Recorded(parked); !ok {
		return nil
	}
	at := s.Path()
	if s.Host.HasNewAnswer(at) {
		s.Delete(ctx, parked)
		return nil
	}
	var signals []*Signal
	for _, r := range s.Host.OpenInterrupts(at) {
		signals = append(signals, &Signal{Record: r})
	}
	if signals == nil {
		return nil
	}
	s.Skip()
	s.Raise(signals...)
	return JoinSignals(signals)
}

// ordinalKey makes the key of the nth interrupt of a place: ".1", ".2" …
func ordinalKey(n int) string { return "." + strconv.Itoa(n) }

// Below reports whether place is at or below ancestor.
func Below(place, ancestor string) bool {
	return ancestor == "" || place == ancestor || strings.HasPrefix(place, ancestor) && place[len(ancestor)] == ';'
}
