package admission

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// HeavyReadLimiter bounds full-history reads: reports, reconciliation and policy replay. They are
// CPU-bound, so the scheduler would mistake them for I/O waits and admit more. Each account has one
// such read at a time, and the number of accounts is bounded by the processors.
type HeavyReadLimiter struct {
	mu    sync.Mutex
	busy  map[string]bool    // accounts with an active read
	queue []*heavyReadWaiter // waiting callers, the first first
}

// heavyReadWaiter is a waiting caller.
type heavyReadWaiter struct {
	account string
	granted chan struct{}
}

const (
	// heavyReadWait is how long a caller waits for its turn before it is rejected, and how long it
	// should wait until it asks again.
	heavyReadWait = 2 * time.Second
	// heavyReadQueue is how many callers of one account may wait.
	heavyReadQueue = 4
)

// MaxHeavyReads is how many accounts may read at the same time.
func MaxHeavyReads() int { return max(2, runtime.GOMAXPROCS(0)/2) }

// Acquire waits for a read permit for an account and returns the function that releases it. Without
// a permit it returns after how long a retry makes sense.
func (t *HeavyReadLimiter) Acquire(ctx context.Context, account string) (done func(), retryAfter time.Duration) {
	w := &heavyReadWaiter{account, make(chan struct{})}
	if !t.enqueue(w) {
		return nil, heavyReadWait
	}
	timer := time.NewTimer(heavyReadWait)
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
		return nil, heavyReadWait
	}
	return func() { t.release(account) }, 0
}

// enqueue adds a caller to the queue, unless the queue is full.
func (t *HeavyReadLimiter) enqueue(w *heavyReadWaiter) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting := 0
	for _, other := range t.queue {
		if other.account == w.account {
			waiting++
		}
	}
	if waiting >= heavyReadQueue {
		return false
	}
	t.queue = append(t.queue, w)
	t.grant()
	return true
}

func (t *HeavyReadLimiter) release(account string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, account)
	t.grant()
}

// grant gives permits to waiting callers in order.
func (t *HeavyReadLimiter) grant() {
	if t.busy == nil {
		t.busy = make(map[string]bool)
	}
	t.queue = slices.DeleteFunc(t.queue, func(w *heavyReadWaiter) bool {
		if t.busy[w.account] || len(t.busy) >= MaxHeavyReads() {
			return false
		}
		t.busy[w.account] = true
		close(w.granted)
		return true
	})
}
