package server

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// turns are for what is read from all that was ever written, and many might want at once: the gate would think that it waits for something, and let others in. One caller of an
// account at a time has a turn, so that no account keeps another waiting; and so many accounts, for there are only so many processors. Who took long rests for three times
// as long before the next turn of the account: whoever asks for the same again and again gets a quarter of a processor at most.
type turns struct {
	mu    sync.Mutex
	busy  map[string]bool      // who has a turn, by account
	rests map[string]time.Time // until when an account has none
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
	// shortTurn is how long a turn may take without a rest, restFactor how much longer than the turn a rest is, and longestRest how long at most.
	shortTurn   = 50 * time.Millisecond
	restFactor  = 3
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
		return nil, max(time.Second, time.Until(t.rests[account]))
	}
	began := time.Now()
	return func() { t.end(account, time.Since(began)) }, 0
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

// end gives a turn back.
func (t *turns) end(account string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, account)
	if took >= shortTurn {
		if t.rests == nil {
			t.rests = make(map[string]time.Time)
		}
		rest := min(restFactor*took, longestRest)
		t.rests[account] = time.Now().Add(rest)
		time.AfterFunc(rest, func() { t.rested(account) })
	}
	t.give()
}

func (t *turns) rested(account string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.rests, account)
	t.give()
}

// give gives turns to those who came first and may have one.
func (t *turns) give() {
	if t.busy == nil {
		t.busy = make(map[string]bool)
	}
	t.queue = slices.DeleteFunc(t.queue, func(w *turn) bool {
		if _, rests := t.rests[w.account]; rests || t.busy[w.account] || len(t.busy) >= mostTurns() {
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
		p := busy("the past of this account is being read for somebody else, or was a moment ago and it took long, or that of too many others is")
		p.retryAfter, p.limit = again, "reading"
		return nil, p
	}
	return done, nil
}
