// Package presence tracks the viewers of requests, in memory. Each process knows only the
// viewers that report to it.
package presence

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// TTL is how long a report counts. Clients report more often.
const TTL = 30 * time.Second

// Viewer is a person with a request on the screen.
type Viewer struct {
	ID string
	At time.Time // the last report
}

// Tracker has the current viewers. The zero value is ready to use.
type Tracker struct {
	mu       sync.Mutex
	requests map[key]map[string]report
	watchers map[string]map[chan string]bool // by account
}

type key struct{ account, request string }

// report is the last report of a viewer. The timer ends it.
type report struct {
	at    time.Time
	timer *time.Timer
}

// Report records that a person is looking at a request.
func (t *Tracker) Report(account, request, person string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := key{account, request}
	if t.requests == nil {
		t.requests = make(map[key]map[string]report)
	}
	if t.requests[k] == nil {
		t.requests[k] = make(map[string]report)
	}
	known, again := t.requests[k][person]
	if again {
		known.timer.Reset(TTL)
	} else {
		known.timer = time.AfterFunc(TTL, func() { t.forget(k, person) })
	}
	known.at = time.Now()
	t.requests[k][person] = known
	if !again {
		t.notify(k)
	}
}

// forget removes a viewer whose last report is too old.
func (t *Tracker) forget(k key, person string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.requests[k][person].at) < TTL { // reported again while the timer fired
		return
	}
	delete(t.requests[k], person)
	if len(t.requests[k]) == 0 {
		delete(t.requests, k)
	}
	t.notify(k)
}

// Viewers returns the viewers of a request, sorted by id.
func (t *Tracker) Viewers(account, request string) (viewers []Viewer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, r := range t.requests[key{account, request}] {
		viewers = append(viewers, Viewer{id, r.at})
	}
	slices.SortFunc(viewers, func(a, b Viewer) int { return strings.Compare(a.ID, b.ID) })
	return viewers
}

// maxPending is how many changes a watcher may miss to read; further ones are dropped.
const maxPending = 64

// Watch returns the ids of requests whose viewers changed. stop has to be called.
func (t *Tracker) Watch(account string) (changed <-chan string, stop func()) {
	c := make(chan string, maxPending)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watchers == nil {
		t.watchers = make(map[string]map[chan string]bool)
	}
	if t.watchers[account] == nil {
		t.watchers[account] = make(map[chan string]bool)
	}
	t.watchers[account][c] = true
	return c, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.watchers[account], c)
		if len(t.watchers[account]) == 0 {
			delete(t.watchers, account)
		}
	}
}

// notify tells the watchers of an account. The caller holds the lock.
func (t *Tracker) notify(k key) {
	for c := range t.watchers[k.account] {
		select {
		case c <- k.request:
		default: // it is slow; the next change of these viewers is sent
		}
	}
}
