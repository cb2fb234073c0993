package activation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/ident"
)

// Status is the state of an interrupt.
//
//	Open ──answer──▶ Answered
//	  ▲└──the node no longer asks──▶ Withdrawn ──it asks the same again──┐
//	  └──────────────────────────────────────────────────────────────────┘
type Status string

// The states of an interrupt.
const (
	StatusOpen      Status = "open"
	StatusAnswered  Status = "answered"
	StatusWithdrawn Status = "withdrawn"
)

// Valid reports whether the status is a known one.
func (s Status) Valid() bool { return s == StatusOpen || s == StatusAnswered || s == StatusWithdrawn }

// RefusalType is the AnswerType of a question that ended without an answer of its kind.
const RefusalType = "refusal"

// Record is a stored interrupt.
type Record struct {
	ID      string
	Address string
	// Activation and RelPath are the place that asked. Key distinguishes several questions of a
	// place.
	Activation string
	RelPath    string
	Key        string
	Kind       string
	// Data is the question. State is the state of the asking code, which it gets back when it
	// continues.
	Data   json.RawMessage
	State  json.RawMessage
	Status Status
	// Seq is the order of the questions of one place.
	Seq int
	// Answer is nil for an answer without data. Undelivered is true until the asking node has been
	// entered with the answer.
	Answer      json.RawMessage
	Undelivered bool
	// AnswerType names the answer type that the answer was checked against, or is RefusalType.
	AnswerType string
	// Attestation says who gave the answer to a hold.
	Attestation Attestation
	// Composite marks an interrupt that only bundles those of other places. Parent is the id of
	// such an interrupt.
	Composite bool
	Parent    string
	// Supersedes is the id of the interrupt that this one replaces, because what it showed has
	// changed. Before is what that one showed.
	Supersedes string
	Before     json.RawMessage
	// Refused says why the last answer was not used.
	Refused string

	// The following fields are not stored. used is greater than 0 if the current entry got the
	// answer, and highest for the last one. superseded reports that the current entry replaced
	// it. part caches the result of Part.
	used       int
	superseded bool
	part       string
	// Info is the question as a Go value, if it was asked in this process.
	Info any
}

// Attestation says who gave an answer, when, how they were authenticated, and by which rule. It is
// fermata.Attestation.
type Attestation struct {
	By         string
	At         time.Time
	Auth, Rule string
}

// Part returns the name of the part that stores the record. It is not safe for concurrent use.
func (r *Record) Part() string {
	if r.part == "" {
		r.part = "interrupt " + r.ID
	}
	return r.part
}

// Place returns the place of the record within the run.
func (r *Record) Place() string { return Join(r.Activation, r.RelPath) }

// Closed returns the record with a final status and without the fields that only an open one needs.
func (r *Record) Closed(status Status) Record {
	return Record{ID: r.ID, Address: r.Address, Activation: r.Activation, RelPath: r.RelPath, Key: r.Key, Kind: r.Kind, Status: status, Seq: r.Seq, Supersedes: r.Supersedes, part: r.part}
}

// Signal is the error that stops a node so that it waits here.
type Signal struct {
	Record *Record
	// Info is the question as a Go value, if it was asked in this process.
	Info any
	// Subs are the interrupts that a composite bundles.
	Subs []*Signal
}

func (s *Signal) Error() string {
	if s.Record.Kind != "" {
		return fmt.Sprintf("fermata: %s waits for an answer of kind %s", s.Record.Address, s.Record.Kind)
	}
	return fmt.Sprintf("fermata: %s waits for an answer", s.Record.Address)
}

// Rerun is a legacy interrupt that does not have an address yet.
type Rerun struct{ Extra any }

func (r *Rerun) Error() string { return "fermata: interrupt and rerun" }

// BadAnswer reports that the code got an answer of a type that it cannot use.
type BadAnswer struct {
	ID  string
	Err error
}

// Ask returns the answered record of a question at this place, or the signal with which the node
// must stop. key identifies the question. The nth call with the same key at one place in one
// activation refers to the same interrupt.
func (s *Scope) Ask(kind, key string, data json.RawMessage, info any) (*Record, *Signal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver() { //mutate:ask-after-return
		return nil, nil, ErrEnded
	}
	m := s.ensureState()
	if n := m.count(recordKey{s.RelPath, key}); n > 1 {
		key += ordinalKey(n)
	}
	r := m.records.Get(recordKey{s.RelPath, key})
	if r == nil {
		r = s.newRecord(key, kind)
		r.Data = data
		m.add(r)
	}
	if r.Status == StatusAnswered {
		m.use(r)
		return r, nil, nil
	}
	if r.Status == StatusWithdrawn {
		r.Status, r.Data = StatusOpen, data
	}
	s.raise(r)
	return nil, &Signal{Record: r, Info: info}, nil
}

// use records that the current entry got the answer of a record.
func (m *state) use(r *Record) {
	m.uses++
	r.used = m.uses
}

// newRecord creates a record. The caller holds the lock.
func (s *Scope) newRecord(key, kind string) *Record {
	place := s.placeLocked()
	return &Record{
		ID:      ident.Derive("int", s.Host.Run(), place, s.RelPath, key),
		Address: s.FullAddress(), Activation: place, RelPath: s.RelPath, Key: key, Kind: kind, Status: StatusOpen,
		Seq: s.state.count(recordKey{s.RelPath, "seq"}),
	}
}

// Compare orders interrupts by place, with numbers compared as numbers, and at one place by Seq.
func Compare(a, b *Record) int {
	if c := compareNatural(a.Activation, b.Activation); c != 0 {
		return c
	}
	if c := compareNatural(a.RelPath, b.RelPath); c != 0 {
		return c
	}
	if a.Seq != b.Seq {
		return cmp.Compare(a.Seq, b.Seq)
	}
	return cmp.Compare(a.ID, b.ID)
}

func compareNatural(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	for i > 0 && isDigit(a[i-1]) { // the first difference may be inside a number
		i--
	}
	a, b = a[i:], b[i:]
	da, db := digits(a), digits(b)
	if da != db && da > 0 && db > 0 {
		return cmp.Compare(da, db)
	}
	return cmp.Compare(a, b)
}

// digits returns the number of leading digits of s.
func digits(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// Interrupt returns the signal for an interrupt without a kind. While the last one at this place is
// open and shows the same, Interrupt reuses it with the new state. If it showed something else, the
// new one supersedes it. After an answer Interrupt creates a new one.
func (s *Scope) Interrupt(data, state json.RawMessage, info any, subs ...*Signal) (*Signal, error) {
	if err := s.Claim("interrupt"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver() {
		return nil, ErrEnded
	}
	last, n := s.lastLocked()
	var superseded *Record
	if last != nil && last.Status == StatusOpen && !last.Composite && !bytes.Equal(last.Data, data) { //mutate:changed-interrupt-new-id
		superseded = last
	}
	if last == nil || last.Status != StatusOpen || superseded != nil {
		last = s.newRecord(ordinalKey(n+1), "")
		s.state.add(last)
	}
	if superseded != nil {
		superseded.Status, superseded.superseded = StatusWithdrawn, true
		last.Supersedes, last.Before, last.Parent = superseded.ID, superseded.Data, superseded.Parent
	}
	last.Data, last.State, last.Composite = data, state, len(subs) > 0
	s.raise(last)
	for _, sub := range subs {
		// an answered parent is replaced by the new one
		if sub.Record.Parent == "" || s.isEarlier(sub.Record.Parent, n) {
			sub.Record.Parent = last.ID
		}
	}
	return &Signal{Record: last, Info: info, Subs: subs}, nil
}

// isEarlier reports whether id belongs to one of the first n interrupts without a kind at this
// place. The caller holds the lock.
func (s *Scope) isEarlier(id string, n int) bool {
	for k := 1; k <= n; k++ {
		if s.state.records.Get(recordKey{s.RelPath, ordinalKey(k)}).ID == id {
			return true
		}
	}
	return false
}

// lastLocked returns the newest interrupt without a kind at this place, and their number. The
// caller holds the lock.
func (s *Scope) lastLocked() (*Record, int) {
	var last *Record
	n := 0
	if s.state == nil {
		return nil, 0
	}
	for r := s.state.records.Get(recordKey{s.RelPath, ordinalKey(1)}); r != nil; r = s.state.records.Get(recordKey{s.RelPath, ordinalKey(n + 1)}) {
		last, n = r, n+1
	}
	return last, n
}

// Last returns a copy of the newest interrupt without a kind at this place, or nil. Its answer, if
// it has one, counts as used.
func (s *Scope) Last() *Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver() {
		return nil
	}
	last, _ := s.lastLocked()
	if last == nil {
		return nil
	}
	if last.Status == StatusAnswered {
		s.state.use(last)
	}
	dup := *last
	return &dup
}

// Interrupted reports whether this place has asked anything in this activation before.
func (s *Scope) Interrupted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != nil && !s.isOver() {
		for _, r := range s.state.records.All() {
			if r.RelPath == s.RelPath {
				return true
			}
		}
	}
	return false
}

// BadAnswers returns the answers refused in this entry.
func (v *Activation) BadAnswers() []*BadAnswer {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state == nil {
		return nil
	}
	return v.state.badAnswers
}

// Collect splits the error that a node returned. If every leaf is an interrupt, it returns the
// signals. Otherwise it returns only plain, because a plain error wins. A legacy interrupt becomes
// an interrupt at this place.
func (s *Scope) Collect(err error) (signals []*Signal, plain error) {
	signals, failed := s.collect(nil, err)
	if failed == errPlain {
		return nil, err
	}
	if failed != nil {
		return nil, failed
	}
	return signals, nil
}

// IsRunError reports whether err is, or wraps, an error about the run itself: a stop, a failed
// save, a changed program, or a person's refusal to continue. Code that converts errors to results
// must pass it on.
func IsRunError(err error) bool {
	_, ok := errors.AsType[interface {
		error
		RunError()
	}](err)
	return ok
}

// ControlError is a sentinel error about the run itself.
type ControlError string

func (e ControlError) Error() string { return string(e) }

// RunError marks the error for IsRunError.
func (e ControlError) RunError() {}

// AskedBelow reports whether something was asked in this activation below a child segment with this
// prefix.
func (s *Scope) AskedBelow(segment string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil || s.isOver() {
		return false
	}
	prefix := Join(s.RelPath, segment)
	for _, r := range s.state.records.All() {
		if strings.HasPrefix(r.RelPath, prefix) {
			return true
		}
	}
	return false
}

// AskedHere reports whether a question with a kind was asked in this activation at this place, or
// below a child segment with one of these prefixes.
func (s *Scope) AskedHere(segments ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil || s.isOver() {
		return s.isOver() // code that still runs after the end must not continue
	}
	for _, r := range s.state.records.All() {
		below := func(segment string) bool { return strings.HasPrefix(r.RelPath, Join(s.RelPath, segment)) }
		if r.Kind != "" && (r.RelPath == s.RelPath || slices.ContainsFunc(segments, below)) {
			return true
		}
	}
	return false
}

// IsWait reports whether err consists only of signals to wait.
func IsWait(err error) bool {
	switch e := err.(type) {
	case *Signal, *Rerun:
		return true
	case interface{ Unwrap() []error }:
		parts := e.Unwrap()
		return len(parts) > 0 && !slices.ContainsFunc(parts, func(part error) bool { return !IsWait(part) })
	case interface{ Unwrap() error }:
		return IsWait(e.Unwrap())
	}
	return false
}

// errPlain is returned if an error does not consist of interrupts only.
var errPlain = errors.New("not an interrupt")

// collect appends the interrupts that err consists of.
func (s *Scope) collect(found []*Signal, err error) ([]*Signal, error) {
	switch e := err.(type) {
	case *Signal:
		return append(found, e), nil
	case *Rerun:
		signal, failed := s.rerun(e)
		return append(found, signal), failed
	case interface{ Unwrap() []error }:
		parts := e.Unwrap()
		for _, part := range parts {
			var failed error
			if found, failed = s.collect(found, part); failed != nil {
				return nil, failed
			}
		}
		if len(parts) > 0 {
			return found, nil
		}
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return s.collect(found, inner)
		}
	}
	return nil, errPlain
}

func (s *Scope) rerun(legacy *Rerun) (*Signal, error) {
	var data json.RawMessage
	if legacy.Extra != nil {
		var err error
		if data, err = json.Marshal(legacy.Extra); err != nil {
			return nil, fmt.Errorf("fermata: encode the extra of an interrupt at %s: %w", s.FullAddress(), err)
		}
	}
	return s.Interrupt(data, nil, legacy.Extra)
}

// JoinSignals returns an error that waits for all of the signals.
func JoinSignals(signals []*Signal) error {
	if len(signals) == 1 {
		return signals[0]
	}
	errs := make([]error, len(signals))
	for i, s := range signals {
		errs[i] = s
	}
	return errors.Join(errs...)
}

// Flatten returns the signals and everything they bundle, outer ones first, each record once.
func Flatten(signals []*Signal) []*Signal {
	if len(signals) == 1 && signals[0].Subs == nil {
		return signals
	}
	var flat []*Signal
	seen := make(map[*Record]bool, len(signals))
	var walk func([]*Signal)
	walk = func(list []*Signal) {
		for _, s := range list {
			if !seen[s.Record] {
				seen[s.Record] = true
				flat = append(flat, s)
			}
			walk(s.Subs)
		}
	}
	walk(signals)
	return flat
}

// ErrSwallowed is returned if a node got an interrupt and continued instead of returning it.
var ErrSwallowed = errors.New("fermata: an interrupt was raised but not returned")

// Swallowed returns an error if a signal of this entry is not among the signals that the node
// returned.
func (v *Activation) Swallowed(returned []*Signal) error {
	known := recordsOf(returned)
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range v.state.raised {
		if !contains(r, returned, known) { //mutate:swallowed-interrupt
			return swallowed(r)
		}
	}
	return nil
}

// ExplainUnwrapped adds what to do to the error of a node that formatted the error of an interrupt
// instead of wrapping it. Any other error is returned unchanged.
func (v *Activation) ExplainUnwrapped(err error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range v.state.raised {
		if strings.Contains(err.Error(), (&Signal{Record: r}).Error()) {
			return fmt.Errorf("%w (the run did not wait: wrap the error of the call with %%w, not with %%v)", err)
		}
	}
	return err
}

func swallowed(r *Record) error {
	return fmt.Errorf("%w: %s asked; the error of the call must be returned", ErrSwallowed, r.Address)
}

// recordsOf returns the records of signals as a set, or nil for a single signal.
func recordsOf(signals []*Signal) map[*Record]bool {
	if len(signals) <= 1 {
		return nil
	}
	known := make(map[*Record]bool, len(signals))
	for _, s := range signals {
		known[s.Record] = true
	}
	return known
}

func contains(r *Record, signals []*Signal, known map[*Record]bool) bool {
	return known[r] || len(signals) == 1 && signals[0].Record == r
}

// UnusedAnswers returns the answered questions that this entry did not ask, and the new answers to
// interrupts without a kind that it did not read. The entry now asks something else, and an answer
// to an old question must not be used for a later one.
func (v *Activation) UnusedAnswers() []*Record {
	var unused []*Record
	for r := range v.Records() {
		if r.Status != StatusAnswered || r.used > 0 || v.isSkipped(r.RelPath) {
			continue
		}
		// an answer without data need not be read
		read := r.Kind == "" && (r.Composite || !r.Undelivered || r.Answer == nil)
		if !read { //mutate:answer-matches-record
			unused = append(unused, r)
		}
	}
	return unused
}

// Superseded returns the interrupts that this entry replaced by others.
func (v *Activation) Superseded() []*Record {
	var list []*Record
	for r := range v.Records() {
		if r.superseded {
			list = append(list, r)
		}
	}
	return list
}

// isSkipped reports whether this entry skipped the work that contains rel.
func (v *Activation) isSkipped(rel string) bool {
	for len(v.state.skipped) > 0 && rel != "" {
		if v.state.skipped[rel] {
			return true
		}
		rel = rel[:max(0, strings.LastIndexByte(rel, ';'))]
	}
	return false
}

// Withdrawable returns the open records of this activation that the node did not raise again.
func (v *Activation) Withdrawable(returned []*Signal) []*Record {
	known := recordsOf(returned)
	var left []*Record
	for r := range v.Records() {
		if r.Status == StatusOpen && !contains(r, returned, known) {
			left = append(left, r)
		}
	}
	return left
}

// Records iterates over every interrupt of this activation. It must be called after End.
func (v *Activation) Records() iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		if v.state == nil {
			return
		}
		for _, r := range v.state.records.All() {
			if !yield(r) {
				return
			}
		}
	}
}
