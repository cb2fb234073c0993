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
	"strconv"
	"strings"
	"sync"
	"time"
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
	// Put keeps one part of the visit's journal; nil data removes it.
	Put(ctx context.Context, v *Visit, part string, data []byte, when When) error
	// Open lists the interrupts at or below place that were open when this execution began.
	Open(place string) []*Record
	// Fresh reports whether this execution brought an answer for something at or below place.
	Fresh(place string) bool
}

// Visit is one stay of a run at one node. The exported fields do not change after Enter.
type Visit struct {
	Host Host
	// Attempt counts how often this visit ended with a plain error.
	Attempt int

	where Where
	names sync.Once // place and address are spelled out when somebody wants to know them
	place string
	addr  string
	root  Scope
	entry scoped

	mu      sync.Mutex
	records map[string]*Record         // by slot: relative place + key
	journal map[string]json.RawMessage // by part name
	entered map[string]int             // what was used in this entry, by slot
	raised  map[string]*Signal         // asked in this entry, by interrupt id
	bad     []*BadAnswer
	ended   bool
}

// Where says which visit it is: of what node, in which graph at work, for which time.
type Where struct {
	// FramePlace and FrameAddress are those of the graph, Node is the node's segment.
	FramePlace, FrameAddress, Node string
	Number                         int
	// Place is the place under which the visit was saved, "" for a new one.
	Place string
}

// New returns a visit without a past.
func New(host Host, where Where, attempt int) *Visit {
	v := &Visit{Host: host, where: where, Attempt: attempt}
	v.root.Visit = v
	return v
}

// Place names the visit within the run.
func (v *Visit) Place() string { v.names.Do(v.spell); return v.place }

// Address is that of the node, as people see it.
func (v *Visit) Address() string { v.names.Do(v.spell); return v.addr }

func (v *Visit) spell() {
	v.place, v.addr = v.where.Place, Join(v.where.FrameAddress, v.where.Node)
	if v.place == "" {
		v.place = PlaceOf(v.where.FramePlace, v.where.Node, v.where.Number)
	}
}

// PlaceOf is the place of a visit in a frame.
func PlaceOf(frame, node string, number int) string {
	return Join(frame, node+"#"+strconv.Itoa(number))
}

// Enter returns the context for the node's code, and the scope it stands for. It is called once.
func (v *Visit) Enter(ctx context.Context) (context.Context, *Scope) {
	v.entry = scoped{ctx, &v.root}
	return &v.entry, &v.root
}

// Restore gives the visit back what an earlier execution saved. It is called before Enter.
func (v *Visit) Restore(records []*Record, journal map[string]json.RawMessage) {
	v.journal = journal
	for _, r := range records {
		v.remember(r)
	}
}

func (v *Visit) remember(r *Record) {
	if v.records == nil {
		v.records = make(map[string]*Record)
	}
	v.records[slot(r.Rel, r.Key)] = r
}

// slot is where a record or an entry-long claim lives. A tab cannot occur in an address text.
func slot(rel, key string) string { return rel + "\t" + key }

// Parts lists the names of the journal parts that the visit holds.
func (v *Visit) Parts() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.journal) == 0 {
		return nil
	}
	names := make([]string, 0, len(v.journal))
	for name := range v.journal {
		names = append(names, name)
	}
	return names
}

// End closes the visit to its own code: what a goroutine left behind still calls is refused. It reports whether the visit
// has anything to remember.
func (v *Visit) End() (used bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = true
	return len(v.records)+len(v.journal)+len(v.entered) > 0
}

// ErrEnded is returned to code that still runs after its node returned.
var ErrEnded = errors.New("fermata: the node has returned; its context is no longer part of the run")

// Scope is a place within a visit. Contexts carry it; it does not change.
type Scope struct {
	*Visit
	// Rel is the place below the node, "" for the node itself.
	Rel string
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

// With returns a context that stands for the scope.
func With(ctx context.Context, s *Scope) context.Context { return &scoped{ctx, s} }

// From returns the scope that the context stands for, or nil outside of a run.
func From(ctx context.Context) *Scope {
	s, _ := ctx.Value(contextKey{}).(*Scope)
	return s
}

// Child is the scope one segment further down.
func (s *Scope) Child(segment string) *Scope {
	return &Scope{Visit: s.Visit, Rel: Join(s.Rel, segment)}
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
	if s.ended {
		return ErrEnded
	}
	if s.count(slot(s.Rel, what)) > 1 {
		return &DuplicateError{Address: s.FullAddress(), What: what}
	}
	return nil
}

// count is called with the lock held.
func (v *Visit) count(slot string) int {
	if v.entered == nil {
		v.entered = make(map[string]int)
	}
	v.entered[slot]++
	return v.entered[slot]
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
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.journal[s.part(what)]
	return data, ok
}

// Record writes down something about this place.
func (s *Scope) Record(ctx context.Context, what string, data json.RawMessage, when When) error {
	part := s.part(what)
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return ErrEnded
	}
	before, had := s.journal[part]
	if s.journal == nil {
		s.journal = make(map[string]json.RawMessage)
	}
	s.journal[part] = data
	s.mu.Unlock()
	err := s.Host.Put(ctx, s.Visit, part, data, when)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if had {
			s.journal[part] = before
		} else {
			delete(s.journal, part)
		}
	}
	return err
}

// Forget removes what was recorded here, with the next save.
func (s *Scope) Forget(ctx context.Context, what string) {
	part := s.part(what)
	s.mu.Lock()
	_, had := s.journal[part]
	delete(s.journal, part)
	s.mu.Unlock()
	if had {
		_ = s.Host.Put(ctx, s.Visit, part, nil, Later) // Later only notes it; it cannot fail
	}
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
	var errs []error
	for _, r := range s.Host.Open(at) {
		errs = append(errs, &Signal{Record: r})
	}
	return errors.Join(errs...)
}

// order makes the nth key of a kind: ".1", ".2" …
func order(n int) string { return "." + strconv.Itoa(n) }

// Below reports whether place is at or below ancestor.
func Below(place, ancestor string) bool {
	return ancestor == "" || place == ancestor || strings.HasPrefix(place, ancestor) && place[len(ancestor)] == ';'
}
