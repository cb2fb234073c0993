package server

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"
)

// heavyReadLimiter are for what is read from all that was ever written, and many might want at once: the gate would think that it waits for something, and let others in. One caller of an
// account at a time has a turn, so that no account keeps another waiting; and so many accounts, for there are only so many processors. A turn is paid for by being without one
// for three times as long, and an account may owe: whoever looks at this and that is never held up, and whoever asks for the same again and again gets a quarter of a
// processor in the long run.
type heavyReadLimiter struct {
	mu    sync.Mutex
	busy  map[string]bool      // principalOf has a turn, by account
	debts map[string]time.Time // when an account will have paid for its turns
	queue []*heavyReadWaiter   // principalOf waits for one
}

// heavyReadWaiter is somebody who waits.
type heavyReadWaiter struct {
	account string
	granted chan struct{}
}

const (
	// heavyReadWait is how long somebody waits for a turn. What others do is over sooner, or not soon.
	heavyReadWait = 2 * time.Second
	// heavyReadQueue is how many of an account wait.
	heavyReadQueue = 4
	// heavyReadCost is how much longer than a turn an account is without one to pay for it. With a debt of heavyReadMaxDebt, ten seconds of turns, it still has the next at once;
	// heavyReadMaxPause is how long it is without one at most.
	heavyReadCost     = 3
	heavyReadMaxDebt  = heavyReadCost * 10 * time.Second
	heavyReadMaxPause = time.Minute
)

// maxHeavyReads is how many accounts have a turn at a time.
func maxHeavyReads() int { return max(2, runtime.GOMAXPROCS(0)/2) }

// take takes a turn for somebody of an account, until done. If there is none, it says when it is worth to come again.
func (t *heavyReadLimiter) acquire(ctx context.Context, account string) (done func(), again time.Duration) {
	w := &heavyReadWaiter{account, make(chan struct{})}
	if !t.enqueue(w) {
		return nil, heavyReadWait
	}
	patience := time.NewTimer(heavyReadWait)
	defer patience.Stop()
	select {
	case <-w.granted:
	case <-patience.C:
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

// wait puts somebody into the queue, unless it is too long.
func (t *heavyReadLimiter) enqueue(w *heavyReadWaiter) bool {
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

// end gives a turn back, with what its account owes now: nobody pays for one turn with the time of another.
func (t *heavyReadLimiter) release(account string, debt time.Duration) {
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

// debt is for how long an account pays.
func (t *heavyReadLimiter) debt(account string) time.Duration {
	return max(0, time.Until(t.debts[account]))
}

// rest is how long an account has no turn, because it owes too much.
func (t *heavyReadLimiter) pause(account string) time.Duration {
	return t.debt(account) - heavyReadMaxDebt
}

func (t *heavyReadLimiter) afterPause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.grant()
}

// give gives turns to those who came first and may have one, and forgets who owes nothing.
func (t *heavyReadLimiter) grant() {
	if t.busy == nil {
		t.busy = make(map[string]bool)
	}
	maps.DeleteFunc(t.debts, func(account string, _ time.Time) bool { return t.debt(account) == 0 })
	t.queue = slices.DeleteFunc(t.queue, func(w *heavyReadWaiter) bool {
		if t.busy[w.account] || len(t.busy) >= maxHeavyReads() || t.pause(w.account) > 0 {
			return false
		}
		t.busy[w.account] = true
		close(w.granted)
		return true
	})
}

// decode takes a turn for whoever calls.
func (s *Server) heavyRead(ctx context.Context) (done func(), err error) {
	done, again := s.heavyReads.acquire(ctx, principalOf(ctx).Account)
	if done == nil {
		p := overloaded("the past of this account is being read for somebody else, or was for long and again and again, or that of too many others is")
		p.retryAfter, p.limit = again, "reading"
		return nil, p
	}
	return done, nil
}
