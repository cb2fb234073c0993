//go:build unix

package chaos

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
)

// target is one of the two targets.
type target string

const (
	targetKnowsKeys target = "knows keys" // a second call with the same key has no effect
	targetDumb      target = "dumb"       // each call is executed
)

// effectCall is an executed call.
type effectCall struct {
	call
	receipt string
	at      time.Duration // since the start of the test
}

// receivedNotice is a notice that a replica delivered.
type receivedNotice struct {
	Account string      `json:"account"`
	Notice  desk.Notice `json:"notice"`
	Life    int64       `json:"life"` // of the replica

	came, at time.Duration // when it arrived, and when it was recorded, since the start of the test
}

// sink is the outside world. It runs in the test process, so its memory is the truth.
type sink struct {
	server *httptest.Server
	clock  func() time.Duration
	slow   time.Duration         // the duration of 3 % of the calls
	called func(life int64)      // called for each call before it is executed
	heard  func(life int64)      // called for each recorded notice
	pause  func(d time.Duration) // time.Sleep
	open   atomic.Int64          // connections

	mu    sync.Mutex
	calls int
	done  []effectCall
	byKey map[string]effectCall
	void  map[string]int64 // calls with this key of replicas up to this number are refused
	told  []receivedNotice
}

func newSink(t *testing.T, clock func() time.Duration, slow time.Duration) *sink {
	s := &sink{
		clock: clock, slow: slow, called: func(int64) {}, heard: func(int64) {}, pause: time.Sleep, byKey: make(map[string]effectCall), void: make(map[string]int64),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /", s.serve)
	mux.HandleFunc("POST "+noticePath, s.handleNotice)
	s.server = httptest.NewUnstartedServer(mux)
	s.server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.open.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.open.Add(-1)
		}
	}
	s.server.Start()
	t.Cleanup(s.server.Close)
	return s
}

// isIdle waits until no call is in progress: calls of dead replicas are still executed, which may
// take a while. All replicas must be dead.
func (s *sink) isIdle(atMost time.Duration) bool {
	for deadline := time.Now().Add(atMost); s.open.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

func (s *sink) serve(w http.ResponseWriter, r *http.Request) {
	var c call
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.called(c.Life)
	before, after := s.delays()
	// the caller may be dead or may have lost the run by now; it is executed all the same
	s.pause(before)
	receipt, done := s.do(c)
	s.pause(after)
	if !done {
		http.Error(w, "blocked by a person", http.StatusGone)
		return
	}
	_ = json.NewEncoder(w).Encode(receipt) // a dead caller does not need it
}

// noticePath is where notices go.
const noticePath = "/notice"

// handleNotice records a notice. Sometimes it fails and returns an error.
func (s *sink) handleNotice(w http.ResponseWriter, r *http.Request) {
	var t receivedNotice
	if err := json.NewDecoder(r.Body).Decode(&t); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if rand.IntN(100) < 3 {
		http.Error(w, "unavailable", http.StatusServiceUnavailable)
		return
	}
	t.came = s.clock()
	before, after := s.delays()
	s.pause(before) // as with calls: it is recorded even if the sender is dead
	s.mu.Lock()
	t.at = s.clock()
	s.told = append(s.told, t)
	s.mu.Unlock()
	s.heard(t.Life)
	s.pause(after)
	_ = json.NewEncoder(w).Encode("told") // a dead sender does not need it
}

// receivedNotices returns all recorded notices, in order.
func (s *sink) receivedNotices() []receivedNotice {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]receivedNotice(nil), s.told...)
}

// delays returns how long a call takes before and after it is executed.
func (s *sink) delays() (before, after time.Duration) {
	delay := time.Duration(rand.Int64N(int64(20 * time.Millisecond)))
	if rand.IntN(100) < 3 {
		delay = s.slow
	}
	if rand.IntN(2) == 0 {
		return delay, 0
	}
	return 0, delay
}

func (s *sink) do(c call) (receipt string, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if before, known := s.byKey[c.Key]; known && c.Target == targetKnowsKeys {
		return before.receipt, true
	}
	if c.Life <= s.void[c.Key] {
		return "", false
	}
	d := effectCall{call: c, receipt: fmt.Sprintf("receipt-%d", len(s.done)+1), at: s.clock()}
	s.done = append(s.done, d)
	s.byKey[c.Key] = d
	return d.receipt, true
}

// lookUp reports whether a call was executed, as a person would find out at the target.
func (s *sink) lookUp(key string) (receipt string, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, done := s.byKey[key]
	return d.receipt, done
}

// block makes the target refuse calls with a key of replicas up to this number, and returns false
// if one was already executed. Only then can a person say that an effect did not happen: a call in
// transit is not visible.
func (s *sink) block(key string, upTo int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, done := s.byKey[key]; done {
		return false
	}
	s.void[key] = max(s.void[key], upTo)
	return true
}

// log returns all executed calls, in order.
func (s *sink) log() []effectCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]effectCall(nil), s.done...)
}
