package admission

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"
)

// HeavyReadLimiter bounds full-history reads: reports, reconciliation and policy replay. They are
// CPU-bound, so the scheduler would mistake them for I/O waits and admit more. Each account has one
// such read at a time, and the number of accounts is bounded by the processors. A read creates a
// debt of three times its duration. An account may have some debt, so occasional reads are never
// delayed; an account that reads continuously gets a quarter of a processor in the long run.
type HeavyReadLimiter struct {
	mu    sync.Mutex
	busy  map[string]bool      // accounts with an active read
	debts map[string]time.Time // when an account's debt is paid, by account
	queue []*heavyReadWaiter   // waiting callers
}

// heavyReadWaiter is a waiting caller.
type heavyReadWaiter struct {
	account string
	granted chan struct{}
}

const (
	// heavyReadWait is how long a caller waits for its turn before it is rejected.
	heavyReadWait = 2 * time.Second
	// heavyReadQueue is how many callers of one account may wait.
	heavyReadQueue = 4
	// heavyReadCost is the debt per unit of reading time. An account with a debt below
	// heavyReadMaxDebt (ten seconds of reading) may start its next read at once. heavyReadMaxPause
	// bounds how long an account is paused.
	heavyReadCost     = 3
	heavyReadMaxDebt  = heavyReadCost * 10 * time.Second
	heavyReadMaxPause = time.Minute
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
		return nil, max(time.Second, t.pause(account))
	}
	began, owed := time.Now(), t.debt(account)
	return func() { t.release(account, owed+heavyReadCost*time.Since(began)) }, 0
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

// release returns a permit and sets the account's debt. The time of the read itself does not reduce
// the debt.
func (t *HeavyReadLimiter) release(account string, debt time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, account)
	if t.debts == nil {
		t.debts = make(map[string]time.Time)
	}
	t.debts[account] = time.Now().Add(min(debt, heavyReadMaxDebt+heavyReadMaxPause))
	if rest := t.pause(account); rest > 0 {
		time.AfterFunc(rest, t.afterPause)
	}
	t.grant()
}

// debt returns how long the account is still in debt.
func (t *HeavyReadLimiter) debt(account string) time.Duration {
	return max(0, time.Until(t.debts[account]))
}

// pause returns how long the account must wait because its debt is too high.
func (t *HeavyReadLimiter) pause(account string) time.Duration {
	return t.debt(account) - heavyReadMaxDebt
}

func (t *HeavyReadLimiter) afterPause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.grant()
}

// grant gives permits to waiting callers in order, and forgets accounts without debt.
func (t *HeavyReadLimiter) grant() {
	if t.busy == nil {
		t.busy = make(map[string]bool)
	}
	maps.DeleteFunc(t.debts, func(account string, _ time.Time) bool { return t.debt(account) == 0 })
	t.queue = slices.DeleteFunc(t.queue, func(w *heavyReadWaiter) bool {
		if t.busy[w.account] || len(t.busy) >= MaxHeavyReads() || t.pause(w.account) > 0 {
			return false
		}
		t.busy[w.account] = true
		close(w.granted)
		return true
	})
}
