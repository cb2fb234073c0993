package simtest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// TargetKind is how a target handles duplicate calls.
type TargetKind string

// The kinds of targets.
const (
	Idempotent TargetKind = "idem" // ignores a key that it has seen
	// Fencing refuses a call below the highest fence, and supports queries; it repeats a call if
	// told to.
	Fencing       TargetKind = "fence_query"
	NonIdempotent TargetKind = "none" // executes every call
)

// Done is an executed call.
type Done[A any] struct {
	Action  A
	Key     string
	Receipt string
	At      time.Duration
}

// Target is an external system. It records every executed call and is safe for concurrent use. The
// zero value is ready to use.
type Target[A any] struct {
	// Clock, if set, is the time of executed calls.
	Clock func() time.Duration
	// Executed, if set, is called for each executed call.
	Executed func(Done[A])

	mu             sync.Mutex
	done           []Done[A]
	byKey          map[string]Done[A]
	fences         map[string]int64 // the lowest allowed number, by key
	calls, queries int
}

// ErrRefused is returned for a call whose number is below the fence of its key.
var ErrRefused = errors.New("simtest: call refused: its number is below the fence")

// Call is a call with an idempotency key. number is compared with the fence of the key.
func (t *Target[A]) Call(kind TargetKind, key string, number int64, action A) (receipt string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	if before, known := t.byKey[key]; known && kind == Idempotent {
		return before.Receipt, nil
	}
	if number < t.fences[key] {
		return "", ErrRefused
	}
	if kind == Fencing {
		t.raise(key, number)
	}
	d := Done[A]{Action: action, Key: key, Receipt: fmt.Sprintf("receipt-%d", len(t.done)+1)}
	if t.Clock != nil {
		d.At = t.Clock()
	}
	t.done = append(t.done, d)
	if t.byKey == nil {
		t.byKey = make(map[string]Done[A])
	}
	t.byKey[key] = d
	if t.Executed != nil {
		t.Executed(d)
	}
	return d.Receipt, nil
}

func (t *Target[A]) raise(key string, number int64) {
	if t.fences == nil {
		t.fences = make(map[string]int64)
	}
	t.fences[key] = max(t.fences[key], number)
}

// Query reports whether a call with a key was executed, and raises the fence.
func (t *Target[A]) Query(key string, fence int64) (receipt string, done bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queries++
	t.raise(key, fence)
	d, done := t.byKey[key]
	return d.Receipt, done
}

// Receipt returns the receipt of a key, as a person finds it.
func (t *Target[A]) Receipt(key string) (receipt string, done bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d, done := t.byKey[key]
	return d.Receipt, done
}

// Has reports whether a call with a key was executed.
func (t *Target[A]) Has(key string) bool {
	_, done := t.Receipt(key)
	return done
}

// Block refuses calls with a key up to a number, and returns false if one was already executed.
// Only then can a person say that an effect did not happen: a call in transit is not visible.
func (t *Target[A]) Block(key string, upTo int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, done := t.byKey[key]; done {
		return false
	}
	t.raise(key, upTo+1)
	return true
}

// Log returns all executed calls, in order.
func (t *Target[A]) Log() []Done[A] {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.done)
}

// Counts returns the number of calls, executed or not, and of queries.
func (t *Target[A]) Counts() (calls, queries int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls, t.queries
}
