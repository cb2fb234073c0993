package server

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"
)

// turns are for what is read from all that was ever written, and many might want at once: the gate would think that it waits for something, and let others in. One caller of an
// account at a time has a turn, so that no account keeps another waiting; and so many accounts, for there are only so many processors. A turn is paid for by being without one
// for three times as long, and an account may owe: whoever looks at this and that is never held up, and whoever asks for the same again and again gets a quarter of a
// processor in the long run.
type turns struct {
	mu    sync.Mutex
	busy  map[string]bool      // who has a turn, by account
	owes  map[string]time.Time // when an account will have paid for its turns
	queue []*turn              // who waits for one
}

// turn is somebody who waits.
type turn struct {
	account string
	given   chan struct{}
}

const (
	// turnPatience is how long somebody waits for a turn. What others do is over sooner, or not soon.
	turnPatience = 2 * time.Second
	// turnQueue is how many of an account wait.
	turnQueue = 4
	// turnPrice is how much longer than a turn an account is without one to pay for it. With a debt of turnCredit, ten seconds of turns, it still has the next at once;
	// longestRest is how long it is without one at most.
	turnPrice   = 3
	turnCredit  = turnPrice * 10 * time.Second
	longestRest = time.Minute
)

// mostTurns is how many accounts have a turn at a time.
func mostTurns() int { return max(2, runtime.GOMAXPROCS(0)/2) }

// take takes a turn for somebody of an account, until done. If there is none, it says when it is worth to come again.
func (t *turns) take(ctx context.Context, account string) (done func(), again time.Duration) {
	w := &turn{account, make(chan struct{})}
	if !t.wait(w) {
		return nil, turnPatience
	}
	patience := time.NewTimer(turnPatience)
	defer patience.Stop()
	select {
	case <-w.given:
	case <-patience.C:
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.queue, w); i >= 0 {
		t.queue = slices.Delete(t.queue, i, i+1)
		return nil, max(time.Second, t.rest(account))
	}
	began, owed := time.Now(), t.debt(account)
	return func() { t.end(account, owed+turnPrice*time.Since(began)) }, 0
}

// wait puts somebody into the queue, unless it is too long.
func (t *turns) wait(w *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting := 0
	for _, other := range t.queue {
		if other.account == w.account {
			waiting++
		}
	}
	if waiting >= turnQueue {
		return false
	}
	t.queue = append(t.queue, w)
	t.give()
	return true
}

// end gives a turn back, with what its account owes now: nobody pays for one turn with the time of another.
func (t *turns) end(account string, debt time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, account)
	if t.owes == nil {
		t.owes = make(map[string]time.Time)
	}
	t.owes[account] = time.Now().Add(min(debt, turnCredit+longestRest))
	if rest := t.rest(account); rest > 0 {
		time.AfterFunc(rest, t.rested)
	}
	t.give()
}

// debt is for how long an account pays.
func (t *turns) debt(account string) time.Duration { return max(0, time.Until(t.owes[account])) }

// rest is how long an account has no turn, because it owes too much.
func (t *turns) rest(account string) time.Duration { return t.debt(account) - turnCredit }

func (t *turns) rested() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.give()
}

// give gives turns to those who came first and may have one, and forgets who owes nothing.
func (t *turns) give() {
	if t.busy == nil {
		t.busy = make(map[string]bool)
	}
	maps.DeleteFunc(t.owes, func(account string, _ time.Time) bool { return t.debt(account) == 0 })
	t.queue = slices.DeleteFunc(t.queue, func(w *turn) bool {
		if t.busy[w.account] || len(t.busy) >= mostTurns() || t.rest(w.account) > 0 {
			return false
		}
		t.busy[w.account] = true
		close(w.given)
		return true
	})
}

// read takes a turn for whoever calls.
func (s *Server) read(ctx context.Context) (done func(), err error) {
	done, again := s.reading.take(ctx, who(ctx).Account)
	if done == nil {
		p := busy("the past of this account is being read for somebody else, or was for long and again and again, or that of too many others is")
		p.retryAfter, p.limit = again, "reading"
		return nil, p
	}
	return done, nil
}
