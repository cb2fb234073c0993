//go:build unix

package chaos

import (
	"encoding/json"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/simtest"
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

	target simtest.Target[call]

	mu   sync.Mutex
	told []receivedNotice
}

func newSink(t *testing.T, clock func() time.Duration, slow time.Duration) *sink {
	s := &sink{clock: clock, slow: slow, called: func(int64) {}, heard: func(int64) {}, pause: time.Sleep}
	s.target.Clock = clock
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
	receipt, err := s.target.Call(c.Target, c.Key, c.Life, c)
	s.pause(after)
	if err != nil {
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

// log returns all executed calls, in order.
func (s *sink) log() (all []effectCall) {
	for _, d := range s.target.Log() {
		all = append(all, effectCall{call: d.Action, receipt: d.Receipt, at: d.At})
	}
	return all
}
