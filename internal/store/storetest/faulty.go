package storetest

import (
	"context"
	"errors"
	"sync"

	"github.com/fermata-go/fermata/internal/store"
)

var _ store.Checkpoints = (*Faulty)(nil)

// FaultTime is the side of the write on which a fault occurs.
type FaultTime int

const (
	// BeforeWrite means that the store does not change.
	BeforeWrite FaultTime = iota
	// AfterWrite means that the store has changed, but the caller gets an error and cannot know.
	AfterWrite
)

// ErrCrashed is returned by every call after a crash, until Restart.
var ErrCrashed = errors.New("storetest: the process crashed")

// Faulty forwards calls to another store, fails where a test wants it to, and counts. Without
// faults it behaves like the inner store. All methods are safe for concurrent use.
type Faulty struct {
	inner store.Checkpoints

	mu       sync.Mutex
	faults   map[int]fault
	failLoad error
	crashed  bool
	saves    int
	bytesPut int64
	largest  int64
}

type fault struct {
	when  FaultTime
	err   error
	crash bool
}

// NewFaulty returns a store without faults around inner.
func NewFaulty(inner store.Checkpoints) *Faulty {
	return &Faulty{inner: inner, faults: map[int]fault{}}
}

// FailSave makes the nth Save since NewFaulty (the first is 1) return err. Other saves work.
// FailSave may be called several times with different n. If the inner store rejects the save, its
// error is returned instead of err.
func (f *Faulty) FailSave(n int, when FaultTime, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[n] = fault{when: when, err: err}
}

// CrashSave simulates a crash at the nth Save since NewFaulty: it and every later call return
// ErrCrashed and change nothing. Saves that are running at that moment may be applied but are not
// acknowledged.
func (f *Faulty) CrashSave(n int, when FaultTime) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[n] = fault{when: when, err: ErrCrashed, crash: true}
}

// Restart ends a crash. The next process finds what the inner store holds.
func (f *Faulty) Restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crashed = false
}

// FailLoad makes every Load return err, until FailLoad(nil).
func (f *Faulty) FailLoad(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failLoad = err
}

// Saves returns how often Save was called; calls during a crash do not count.
func (f *Faulty) Saves() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.saves
}

// BytesPut returns the size of all names and data in saves that the inner store accepted.
func (f *Faulty) BytesPut() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytesPut
}

// LargestSave returns the size of the largest save that BytesPut counts.
func (f *Faulty) LargestSave() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.largest
}

// Load implements [store.Checkpoints].
func (f *Faulty) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	if err := f.loadFault(); err != nil {
		return store.Checkpoint{}, err
	}
	return f.inner.Load(ctx, key)
}

// Save implements [store.Checkpoints].
func (f *Faulty) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	fault, err := f.begin()
	if err != nil {
		return 0, err
	}
	version, err := f.inner.Save(ctx, key, base, delta)
	if err := f.end(fault, err, size(delta)); err != nil {
		return 0, err
	}
	return version, nil
}

// Delete implements [store.Checkpoints].
func (f *Faulty) Delete(ctx context.Context, key store.Key) error {
	if err := f.crash(); err != nil {
		return err
	}
	return f.inner.Delete(ctx, key)
}

func (f *Faulty) crash() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.crashed {
		return ErrCrashed
	}
	return nil
}

func (f *Faulty) loadFault() error {
	if err := f.crash(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failLoad
}

// begin counts the save and returns its fault, or the error of a fault that occurs before the
// write.
func (f *Faulty) begin() (fault, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.crashed {
		return fault{}, ErrCrashed
	}
	f.saves++
	due := f.faults[f.saves]
	if due.err != nil && due.when == BeforeWrite {
		f.crashed = due.crash
		return fault{}, due.err
	}
	return due, nil
}

// end returns the result of Save. An error of the inner store takes precedence over a fault,
// because nothing was applied.
func (f *Faulty) end(due fault, err error, size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		f.bytesPut += size
		f.largest = max(f.largest, size)
	}
	switch {
	case f.crashed: // another save crashed in between
		return ErrCrashed
	case err != nil && !due.crash:
		return err
	default:
		f.crashed = due.crash
		return due.err
	}
}

func size(delta store.Delta) int64 {
	total := 0
	for _, part := range delta.Put {
		total += len(part.Name) + len(part.Data)
	}
	return int64(total)
}
