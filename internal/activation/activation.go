// Package activation holds the state of one activation: one entry of a run into a node, with its
// questions, answers, completed work and parked work.
//
// The root package and package graph are both built on it. The functions of package fermata (Ask,
// Do, Approve, Effect, Interrupt …) read and write the activation that they find in the context.
// Package graph creates activations, saves their state and enters the node again after an answer.
// Places are encoded as address texts, so this package does not need the types of the packages
// above.
//
//	place of an activation   node:outer#1;node:inner#2      node names with the number of the activation
//	relative path            tool:search#call_1             what user code appended below the node
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

// Durability is how soon a journal entry must be durable.
type Durability int

const (
	// SaveSoon follows the save mode of the run: at once, unless the run trades that for speed.
	SaveSoon Durability = iota
	// SaveNow means before the call returns, in every save mode.
	SaveNow
	// SaveWithNext means with the next save.
	SaveWithNext
)

// Host is the part of the engine that an activation uses.
type Host interface {
	// Run returns the id of the run.
	Run() string
	// Time returns the time of the run's clock.
	Time() time.Time
	// Policy returns the fermata.Policy of the run, or nil. It is untyped because that type is
	// defined in a package above this one.
	Policy() any
	// Ledger returns the fermata.Ledger of the run, or nil, untyped like Policy.
	Ledger() any
	// Put stores one part of the activation's journal; nil data removes it.
	Put(ctx context.Context, v *Activation, part string, data []byte, durability Durability) error
	// OpenInterrupts lists the interrupts at or below place that were open when this execution
	// began.
	OpenInterrupts(place string) []*Record
	// HasNewAnswer reports whether this execution delivered an answer for an interrupt at or below
	// place.
	HasNewAnswer(place string) bool
}

// Instance is a running graph: its host, its place within the run, and its public address.
type Instance struct {
	Host           Host
	Place, Address string
	// Outer is the activation whose code runs the graph; nil for the outermost graph.
	Outer *Activation
}

// Ended reports whether the enclosing activation has ended, so that remaining goroutines of the
// graph must stop.
func (f *Instance) Ended() bool { return f.Outer != nil && f.Outer.isOver() }

// Activation is one entry of a run into a node. There is one for every entered node, so it is kept
// small.
type Activation struct {
	*Instance
	node  *string // the node's segment, owned by the flow
	ctx   context.Context
	state *state // nil while there is nothing to store: most activations neither ask nor record

	// Attempt counts how often this activation ended with a plain error.
	Attempt int

	mu     sync.Mutex
	ended  atomic.Bool
	number int32
}

// state holds what an activation has stored, and what its current entry has used.
type state struct {
	place      string // computed on first use
	records    smallmap.Map[recordKey, *Record]
	journal    map[string]json.RawMessage   // by part name
	claims     smallmap.Map[recordKey, int] // what was used in this entry, and how often
	raised     []*Record                    // interrupts that were raised in this entry
	skipped    map[string]bool              // places that this entry skipped
	badAnswers []*BadAnswer
	uses       int  // number of answers that this entry got
	ranGraphs  bool // the code of this entry ran graphs
}

// recordKey identifies a record, or a claim of the current entry.
type recordKey struct{ rel, key string }

// Init initializes a new activation: the nth of a node, which is named by its segment.
func (v *Activation) Init(instance *Instance, node *string, number, attempt int) {
	v.Instance, v.node, v.number, v.Attempt = instance, node, int32(number), attempt
}

// Restore sets the state that an earlier execution saved under place. It is called before Enter.
func (v *Activation) Restore(place string, records []*Record, journal map[string]json.RawMessage) {
	m := v.ensureState()
	m.place, m.journal = place, journal
	for _, r := range records {
		m.add(r)
	}
}

// ensureState returns the state and creates it if needed. The caller holds the lock or has not
// called Enter yet.
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

// Root returns the scope of the node itself.
func (v *Activation) Root() *Scope { return &Scope{Activation: v} }

// Place returns the place of the activation within the run.
func (v *Activation) Place() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.placeLocked()
}

// placeLocked is Place for callers that hold the lock.
func (v *Activation) placeLocked() string {
	if v.state == nil && v.ended.Load() { // nothing may be stored any more
		return PlaceOf(v.Instance.Place, *v.node, int(v.number))
	}
	m := v.ensureState()
	if m.place == "" {
		m.place = PlaceOf(v.Instance.Place, *v.node, int(v.number))
	}
	return m.place
}

// PlaceOf returns the place of an activation in an instance.
func PlaceOf(instance, node string, number int) string {
	if instance == "" {
		return node + "#" + strconv.Itoa(number)
	}
	return instance + ";" + node + "#" + strconv.Itoa(number)
}

// Address returns the public address of the node.
func (v *Activation) Address() string { return Join(v.Instance.Address, *v.node) }

// Parts lists the names of the journal parts of the activation.
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

// End ends the activation for its own code. Calls of goroutines that are still running are rejected
// and find nothing. From then on only the engine uses the interrupts, without locking. End reports
// whether the activation has stored anything.
func (v *Activation) End() (used bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended.Store(true)
	return v.state != nil
}

// isOver reports whether the activation, or an enclosing one, has ended.
func (v *Activation) isOver() bool { return v.ended.Load() || v.Instance.Ended() }

// ErrEnded is returned to code that still runs after its node returned.
var ErrEnded = errors.New("fermata: the node has returned; its context is no longer part of the run")

// Scope is a place within an activation. Contexts carry it; it is immutable.
type Scope struct {
	*Activation
	// RelPath is the path below the node, "" for the node itself.
	RelPath string

	work *workItem
}

// workItem is a piece of work that runs once, with the journal parts that were recorded during it.
// When the work is complete, its result replaces those parts.
type workItem struct {
	parts  []string
	outer  *workItem // the enclosing work item
	raised *Record   // an interrupt that its code raised in this entry
}

type contextKey struct{}

// scopeContext is a context that carries a scope.
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

// activationContext is an activation as the context of its node's code.
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

// WithScope returns a context that carries the scope.
func WithScope(ctx context.Context, s *Scope) context.Context { return &scopeContext{ctx, s} }

// FromContext returns the scope of the context, or nil outside a run.
func FromContext(ctx context.Context) *Scope {
	s, _ := ctx.Value(contextKey{}).(*Scope)
	return s
}

type editKey struct{}

// WithEditCheck returns a context in which edited arguments must pass a check in addition to their
// schema. The code that asks for approval of a tool call sees its arguments as any JSON. A nil
// check is ignored.
func WithEditCheck(ctx context.Context, check func(args json.RawMessage) error) context.Context {
	return context.WithValue(ctx, editKey{}, check)
}

// CheckEdit runs the check of the context.
func CheckEdit(ctx context.Context, args json.RawMessage) error {
	if check, _ := ctx.Value(editKey{}).(func(json.RawMessage) error); check != nil {
		return check(args)
	}
	return nil
}

// Child returns the scope one segment below.
func (s *Scope) Child(segment string) *Scope {
	return &Scope{Activation: s.Activation, RelPath: Join(s.RelPath, segment), work: s.work}
}

// Begin returns the scope in which the work at this place runs. Parts recorded there are deleted
// when the result is recorded with [Scope.Complete].
func (s *Scope) Begin() *Scope {
	return &Scope{Activation: s.Activation, RelPath: s.RelPath, work: &workItem{outer: s.work}}
}

// Complete records the result of the work in inside and then deletes the parts recorded during it.
// The order matters: otherwise a crash in between would lose both.
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

// Path returns the place of the scope within the run.
func (s *Scope) Path() string { return Join(s.Place(), s.RelPath) }

// FullAddress returns the public address of the scope.
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

// Claim records the use of a name in this entry. The second claim of the same name fails, because
// two pieces of work at one place would get each other's answers.
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

// RanGraphs reports whether the code of this entry ran graphs. It must be called after End.
func (v *Activation) RanGraphs() bool { return v.state != nil && v.state.ranGraphs }

func (m *state) count(what recordKey) int {
	times := m.claims.GetOrAdd(what)
	*times++
	return *times
}

// DuplicateError is returned if one place is used twice in one activation.
type DuplicateError struct{ Address, What string }

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("fermata: %s at %s is used twice in one activation: give each its own name or address", e.What, e.Address)
}

// part returns the name of the part that stores something of this scope: "do node:a#1;do:charge".
func (s *Scope) part(what string) string { return what + " " + s.Path() }

// Recorded returns what was recorded here under a name.
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

// trackPart adds a part to the current work item. The caller holds the lock.
func (s *Scope) trackPart(part string) {
	if s.work != nil {
		s.work.parts = append(s.work.parts, part)
	}
}

// Record stores data about this place under a name.
func (s *Scope) Record(ctx context.Context, what string, data json.RawMessage, durability Durability) error {
	part := s.part(what)
	before, had, err := s.set(part, data)
	if err != nil {
		return err
	}
	if err = s.Host.Put(ctx, s.Activation, part, data, durability); err != nil {
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

// Delete removes what was recorded here, with the next save.
func (s *Scope) Delete(ctx context.Context, what string) { s.deletePart(ctx, s.part(what)) }

func (s *Scope) deletePart(ctx context.Context, part string) {
	s.mu.Lock()
	_, had := s.state.journal[part]
	delete(s.state.journal, part)
	s.mu.Unlock()
	if had {
		// SaveWithNext only stages the change and cannot fail
		_ = s.Host.Put(ctx, s.Activation, part, nil, SaveWithNext)
	}
}

// UnvisitedPending returns the places below this one, outer ones first, that have an open question
// or an unused answer and that this entry has not visited. what is the claim of such work.
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

// Answered reports whether a question at this place has an answer, without asking it. key is the
// key given to Ask.
func (s *Scope) Answered(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil || s.isOver() {
		return false
	}
	r := s.state.records.Get(recordKey{s.RelPath, key})
	return r != nil && r.Status == StatusAnswered
}

// LastAnswered returns the last answered question of a kind at this place and marks it as used, as
// if it were asked again; nil if there is none.
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
		s.state.use(last)
	}
	return last
}

// Skip records that this entry does not enter the work at this place, because it is complete or
// waits. Its questions are not asked again, which has no meaning.
func (s *Scope) Skip() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver() { // the engine reads the state without the lock
		return
	}
	m := s.ensureState()
	if m.skipped == nil {
		m.skipped = make(map[string]bool)
	}
	m.skipped[s.RelPath] = true
}

// Raise records that the code at this place got signals, which it must return.
func (s *Scope) Raise(signals ...*Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, signal := range signals {
		s.raise(signal.Record)
	}
}

// raise records one signal. The caller holds the lock. Each work item keeps its last signal itself:
// a search through all signals would be quadratic in the number of waiting items.
func (s *Scope) raise(r *Record) {
	m := s.ensureState()
	m.raised = append(m.raised, r)
	for w := s.work; w != nil; w = w.outer {
		w.raised = r
	}
}

// Finish returns an error if the code of this work item got a signal and did not return it.
func (s *Scope) Finish() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.work.raised != nil {
		return swallowed(s.work.raised)
	}
	return nil
}

const parked = "parked"

// Park records that the work at this place only waits for a person.
func (s *Scope) Park(ctx context.Context) {
	// SaveWithNext only stages the change and cannot fail
	_ = s.Record(ctx, parked, json.RawMessage("true"), SaveWithNext)
}

// Parked returns the open interrupts of this place if its work waits and none of them was answered.
// Then the work must not be entered. Otherwise Parked returns nil and the place is no longer
// parked.
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

// ordinalKey returns the key of the nth interrupt of a place: ".1", ".2" …
func ordinalKey(n int) string { return "." + strconv.Itoa(n) }

// Below reports whether place is at or below ancestor.
func Below(place, ancestor string) bool {
	return ancestor == "" || place == ancestor || strings.HasPrefix(place, ancestor) && place[len(ancestor)] == ';'
}
