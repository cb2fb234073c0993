package admission

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// TurnLimiter bounds work that keeps a processor busy. A key, such as an account, works on one
// thing at a time, and the number of keys that work at the same time is bounded. The zero value
// uses [MaxHeavyReads].
//
// Full-history reads need it: reports, reconciliation, policy replay. They are CPU-bound, so the
// scheduler would mistake them for I/O waits and admit more.
type TurnLimiter struct {
	// Parallel is how many keys may work at the same time.
	Parallel int

	mu    sync.Mutex
	busy  map[string]bool // keys at work
	queue []*turnWaiter   // waiting callers, the first first
}

// turnWaiter is a waiting caller.
type turnWaiter struct {
	key     string
	granted chan struct{}
}

const (
	// turnWait is how long a caller waits for its turn before it is rejected, and how long it
	// should wait until it asks again.
	turnWait = 2 * time.Second
	// turnQueue is how many callers of one key may wait.
	turnQueue = 4
)

// MaxHeavyReads is how many accounts may read at the same time.
func MaxHeavyReads() int { return max(2, runtime.GOMAXPROCS(0)/2) }

// Acquire waits for the turn of a key and returns the function that ends it. Without a turn it
// returns after how long a retry makes sense.
func (t *TurnLimiter) Acquire(ctx context.Context, key string) (done func(), retryAfter time.Duration) {
	w := &turnWaiter{key, make(chan struct{})}
	if !t.enqueue(w) {
		return nil, turnWait
	}
	timer := time.NewTimer(turnWait)
	defer timer.Stop()
	select {
	case <-w.granted:
	case <-timer.C:
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.queue, w); i >= 0 {
		t.queue = slices.Delete(t.queue, i, i+1)
		return nil, turnWait
	}
	return func() { t.release(key) }, 0
}

// enqueue adds a caller to the queue, unless the queue is full.
func (t *TurnLimiter) enqueue(w *turnWaiter) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting := 0
	for _, other := range t.queue {
		if other.key == w.key {
			waiting++
		}
	}
	if waiting >= turnQueue {
		return false
	}
	t.queue = append(t.queue, w)
	t.grant()
	return true
}

func (t *TurnLimiter) release(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, key)
	t.grant()
}

// grant gives turns to waiting callers in order.
func (t *TurnLimiter) grant() {
	if t.busy == nil {
		t.busy = make(map[string]bool)
	}
	t.queue = slices.DeleteFunc(t.queue, func(w *turnWaiter) bool {
		if t.busy[w.key] || len(t.busy) >= cmp.Or(t.Parallel, MaxHeavyReads()) {
			return false
		}
		t.busy[w.key] = true
		close(w.granted)
		return true
	})
}
