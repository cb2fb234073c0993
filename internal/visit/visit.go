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
package visit

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

	"github.com/fermata-go/fermata/internal/few"
)

// When says how soon a journal entry must be durable.
type When int

const (
	// Soon is the step's own rhythm: at once, unless the run trades that for speed.
	Soon When = iota
	// Now means before the call returns, whatever the run trades.
	Now
	// Later means with the next save.
	Later
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
	Put(ctx context.Context, v *Visit, part string, data []byte, when When) error
	// Open lists the interrupts at or below place that were open when this execution began.
	Open(place string) []*Record
	// Fresh reports whether this execution brought an answer for something at or below place.
	Fresh(place string) bool
}

// Frame is a graph at work: who runs it, its place within the run, and its address as people see it.
type Frame struct {
	Host           Host
	Place, Address string
	// Outer is the visit whose code runs it; nil for the outermost.
	Outer *Visit
}

// Over reports whether the visit around it has ended: then whoever still works on it was left behind.
func (f *Frame) Over() bool { return f.Outer != nil && f.Outer.over() }

// Visit is one stay of a run at one node. There is one for every node that is entered, so it is kept small.
type Visit struct {
	*Frame
	node *string // the node's segment, which the flow keeps
	ctx  context.Context
	mem  *memory // nil while there is nothing to remember: most visits neither ask nor do

	// Attempt counts how often this visit ended with a plain error.
	Attempt int

	mu     sync.Mutex
	ended  atomic.Bool
	number int32
}

// memory is what a visit knows, and what its current entry has used of that.
type memory struct {
	place   string // spelled out when somebody wants to know it
	records few.Map[slot, *Record]
	journal map[string]json.RawMessage // by part name
	entered few.Map[slot, int]         // what was used in this entry, and how often
	handed  []*Record                  // interrupts that the code of this entry was told about
	skipped map[string]bool            // places that this entry did not go into
	bad     []*BadAnswer
	graphs  bool // the code of this entry runs graphs
}

// slot is where a record or an entry-long claim lives.
type slot struct{ rel, key string }

// Init makes a zero Visit one without a past: the nth of a node, which is named by its segment.
func (v *Visit) Init(frame *Frame, node *string, number, attempt int) {
	v.Frame, v.node, v.number, v.Attempt = frame, node, int32(number), attempt
}

// Restore gives the visit back what an earlier execution saved under place. It is called before Enter.
func (v *Visit) Restore(place string, records []*Record, journal map[string]json.RawMessage) {
	m := v.memory()
	m.place, m.journal = place, journal
	for _, r := range records {
		m.remember(r)
	}
}

// memory is called with the lock held, or before Enter.
func (v *Visit) memory() *memory {
	if v.mem == nil {
		v.mem = new(memory)
	}
	return v.mem
}

func (m *memory) remember(r *Record) { m.records.Set(slot{r.Rel, r.Key}, r) }

// Enter returns the context for the node's code. It is called once.
func (v *Visit) Enter(ctx context.Context) context.Context {
	v.ctx = ctx
	return (*entry)(v)
}

// Root is the place of the node itself.
func (v *Visit) Root() *Scope { return &Scope{Visit: v} }

// Place names the visit within the run.
func (v *Visit) Place() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.placed()
}

// placed is called with the lock held.
func (v *Visit) placed() string {
	if v.mem == nil && v.ended.Load() { // nothing is to be remembered any more
		return PlaceOf(v.Frame.Place, *v.node, int(v.number))
	}
	m := v.memory()
	if m.place == "" {
		m.place = PlaceOf(v.Frame.Place, *v.node, int(v.number))
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
func (v *Visit) Address() string { return Join(v.Frame.Address, *v.node) }

// Parts lists the names of the journal parts that the visit holds.
func (v *Visit) Parts() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mem == nil {
		return nil
	}
	names := make([]string, 0, len(v.mem.journal))
	for name := range v.mem.journal {
		names = append(names, name)
	}
	return names
}

// End closes the visit to its own code: what a goroutine left behind still calls is refused, and finds nothing. From then on the interrupts are the
// engine's, which does not lock them. It reports whether the visit has anything to remember.
func (v *Visit) End() (used bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended.Store(true)
	return v.mem != nil
}

// over reports whether the visit, or one around it, has ended.
func (v *Visit) over() bool { return v.ended.Load() || v.Frame.Over() }

// ErrEnded is returned to code that still runs after its node returned.
var ErrEnded = errors.New("fermata: the node has returned; its context is no longer part of the run")

// Scope is a place within a visit. Contexts carry it; it does not change.
type Scope struct {
	*Visit
	// Rel is the place below the node, "" for the node itself.
	Rel string

	work *work
}

// work is a piece of work that is done once, and what was written down in the course of it: when the work is done, its result
// stands for all of that.
type work struct {
	parts []string
	outer *work   // the work that it is part of
	told  *Record // an interrupt that its code, in this entry, was told to wait for
}

type contextKey struct{}

// scoped is a context that stands for a scope.
type scoped struct {
	context.Context
	scope *Scope
}

func (c *scoped) Value(key any) any {
	if key == (contextKey{}) {
		return c.scope
	}
	return c.Context.Value(key)
}

// entry is a visit as the context of its node's code.
type entry Visit

func (e *entry) Deadline() (time.Time, bool) { return e.ctx.Deadline() }
func (e *entry) Done() <-chan struct{}       { return e.ctx.Done() }
func (e *entry) Err() error                  { return e.ctx.Err() }

func (e *entry) Value(key any) any {
	if key == (contextKey{}) {
		return (*Visit)(e).Root()
	}
	return e.ctx.Value(key)
}

// With returns a context that stands for the scope.
func With(ctx context.Context, s *Scope) context.Context { return &scoped{ctx, s} }

// From returns the scope that the context stands for, or nil outside of a run.
func From(ctx context.Context) *Scope {
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
	return &Scope{Visit: s.Visit, Rel: Join(s.Rel, segment), work: s.work}
}

// Inside is the scope for the course of the work at this place. What is recorded there is forgotten when the result is
// recorded with [Scope.Done].
func (s *Scope) Inside() *Scope {
	return &Scope{Visit: s.Visit, Rel: s.Rel, work: &work{outer: s.work}}
}

// Done records the result of the work that was done inside, and then forgets its course: never the other way round, or a crash
// in between would lose both.
func (s *Scope) Done(ctx context.Context, inside *Scope, what string, result json.RawMessage) error {
	if err := s.Record(ctx, what, result, Soon); err != nil {
		return err
	}
	own := s.part(what)
	s.mu.Lock()
	parts := inside.work.parts
	inside.work.parts = nil
	s.mu.Unlock()
	for _, part := range parts {
		if part != own {
			s.forget(ctx, part)
		}
	}
	return nil
}

// At is the place of the scope within the run.
func (s *Scope) At() string { return Join(s.Place(), s.Rel) }

// FullAddress is the address of the scope as people see it.
func (s *Scope) FullAddress() string { return Join(s.Address(), s.Rel) }

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
	if s.over() {
		return ErrEnded
	}
	if s.memory().count(slot{s.Rel, what}) > 1 { //mutate:duplicate-place
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
	if s.over() {
		return ErrEnded
	}
	s.mem.graphs = true
	return nil
}

// RanGraphs reports whether the code of this entry ran graphs. It is for after End.
func (v *Visit) RanGraphs() bool { return v.mem != nil && v.mem.graphs }

func (m *memory) count(what slot) int {
	times := m.entered.At(what)
	*times++
	return *times
}

// DuplicateError says that one place was used twice in one stay at a node.
type DuplicateError struct{ Address, What string }

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("fermata: %s at %s is used twice in one visit: give each its own name or address", e.What, e.Address)
}

// part is the name under which something of this scope is kept: "do node:a#1;do:charge".
func (s *Scope) part(what string) string { return what + " " + s.At() }

// Recall returns what was recorded here.
func (s *Scope) Recall(what string) (json.RawMessage, bool) {
	part := s.part(what)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mem == nil {
		return nil, false
	}
	data, ok := s.mem.journal[part]
	if ok {
		s.note(part)
	}
	return data, ok
}

// note is called with the lock held.
func (s *Scope) note(part string) {
	if s.work != nil {
		s.work.parts = append(s.work.parts, part)
	}
}

// Record writes down something about this place.
func (s *Scope) Record(ctx context.Context, what string, data json.RawMessage, when When) error {
	part := s.part(what)
	before, had, err := s.set(part, data)
	if err != nil {
		return err
	}
	if err = s.Host.Put(ctx, s.Visit, part, data, when); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if had {
			s.mem.journal[part] = before
		} else {
			delete(s.mem.journal, part)
		}
	}
	return err
}

func (s *Scope) set(part string, data json.RawMessage) (before json.RawMessage, had bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over() {
		return nil, false, ErrEnded
	}
	m := s.memory()
	s.note(part)
	before, had = m.journal[part]
	if m.journal == nil {
		m.journal = make(map[string]json.RawMessage)
	}
	m.journal[part] = data
	return before, had, nil
}

// Forget removes what was recorded here, with the next save.
func (s *Scope) Forget(ctx context.Context, what string) { s.forget(ctx, s.part(what)) }

func (s *Scope) forget(ctx context.Context, part string) {
	s.mu.Lock()
	_, had := s.mem.journal[part]
	delete(s.mem.journal, part)
	s.mu.Unlock()
	if had {
		_ = s.Host.Put(ctx, s.Visit, part, nil, Later) // Later only notes it; it cannot fail
	}
}

// Unseen returns the places below this one, outer ones first, at which work has a question open or an answer that nobody has used, and which
// this entry has not come to. what is the claim of such work.
func (s *Scope) Unseen(what string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mem == nil || s.over() {
		return nil
	}
	var places []string
	for _, r := range s.mem.records.All() {
		if r.Status != Open && !r.Fresh || r.Rel == s.Rel || !Below(r.Rel, s.Rel) || s.passedBy(r.Rel) {
			continue
		}
		for end := len(s.Rel) + 1; end <= len(r.Rel); end++ {
			if end < len(r.Rel) && r.Rel[end] != ';' {
				continue
			}
			if rel := r.Rel[:end]; s.mem.entered.Get(slot{rel, what}) == 0 {
				places = append(places, Join(s.placed(), rel))
			}
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// Answered reports whether a question at this place has its answer, without asking it. key is that of Ask.
func (s *Scope) Answered(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mem == nil || s.over() {
		return false
	}
	r := s.mem.records.Get(slot{s.Rel, key})
	return r != nil && r.Status == Answered
}

// AnsweredAs returns the last question of a kind at this place that has its answer, as if it were asked once more; nil if there is none.
func (s *Scope) AnsweredAs(kind string) *Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mem == nil || s.over() {
		return nil
	}
	var last *Record
	for _, r := range s.mem.records.All() {
		if r.Rel == s.Rel && r.Kind == kind && r.Status == Answered && (last == nil || r.Seq > last.Seq) {
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
	if s.over() { // what it used is being looked at, without the lock
		return
	}
	m := s.memory()
	if m.skipped == nil {
		m.skipped = make(map[string]bool)
	}
	m.skipped[s.Rel] = true
}

// Hand notes that the code at this place is told to wait: it has to pass that on.
func (s *Scope) Hand(signals ...*Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, signal := range signals {
		s.hand(signal.Record)
	}
}

// hand is called with the lock held. Each piece of work keeps what it was told itself: looking through what everybody was told would
// make a list of a thousand items that wait a million looks.
func (s *Scope) hand(r *Record) {
	m := s.memory()
	m.handed = append(m.handed, r)
	for w := s.work; w != nil; w = w.outer {
		w.told = r
	}
}

// Finish returns an error if the work whose inside this is was told to wait and ends all the same.
func (s *Scope) Finish() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.work.told != nil {
		return swallowed(s.work.told)
	}
	return nil
}

const parked = "parked"

// Park notes that the work at this place waits for a person and for nothing else.
func (s *Scope) Park(ctx context.Context) {
	_ = s.Record(ctx, parked, json.RawMessage("true"), Later) // Later only notes it; it cannot fail
}

// Parked returns the open interrupts of this place if its work waits and none of them was answered: then there is nothing
// to do here, and the work must not be entered. Otherwise it returns nil and the place is no longer parked.
func (s *Scope) Parked(ctx context.Context) error {
	if _, ok := s.Recall(parked); !ok {
		return nil
	}
	at := s.At()
	if s.Host.Fresh(at) {
		s.Forget(ctx, parked)
		return nil
	}
	var signals []*Signal
	for _, r := range s.Host.Open(at) {
		signals = append(signals, &Signal{Record: r})
	}
	if signals == nil {
		return nil
	}
	s.Skip()
	s.Hand(signals...)
	return Wait(signals)
}

// order makes the key of the nth interrupt of a place: ".1", ".2" …
func order(n int) string { return "." + strconv.Itoa(n) }

// Below reports whether place is at or below ancestor.
func Below(place, ancestor string) bool {
	return ancestor == "" || place == ancestor || strings.HasPrefix(place, ancestor) && place[len(ancestor)] == ';'
}
