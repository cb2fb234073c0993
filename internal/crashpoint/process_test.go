package crashpoint

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/simtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

// mode is what happens to the call in which a process crashes.
type mode string

const (
	before mode = "before" // it does not take effect
	after  mode = "after"  // it takes effect, but its result is lost
	late   mode = "late"   // it is in transit and arrives while another process works
)

var modes = []mode{before, after, late}

// point is where a process crashes: in its nth call, from 1. The zero point is nowhere.
type point struct {
	at   int
	mode mode
}

// crashGate is the passage of a process that crashes at a point.
type crashGate struct {
	mu    sync.Mutex
	death point
	trace []string // its calls
	dead  bool
	late  func() // calls in transit
	dies  func() // stops the executor, which would retry for half a minute; nil while there is none
}

func (l *crashGate) do(what string, call func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return errDead
	}
	l.trace = append(l.trace, what)
	if len(l.trace) != l.death.at {
		call()
		return nil
	}
	l.dead = true
	switch l.death.mode {
	case before:
	case after:
		call()
	case late:
		l.late = call
	}
	if l.dies != nil {
		l.dies()
	}
	return errDead
}

// of sets the executor of the gate.
func (l *crashGate) of(t *testing.T, e *executor.Executor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dies = func() { stop(t, e) }
}

// isDead reports whether the process has crashed.
func (l *crashGate) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// arrive lets the calls in transit arrive, once.
func (l *crashGate) arrive() {
	l.mu.Lock()
	call := l.late
	l.late = nil
	l.mu.Unlock()
	if call != nil {
		call()
	}
}

// lateOutside reports whether it crashed in a call to a target that is still in transit.
func (l *crashGate) lateOutside() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.late != nil && strings.HasPrefix(l.trace[len(l.trace)-1], "outside")
}

// process is an executor with its crash gate.
type process struct {
	*executor.Executor
	*crashGate
}

// processHost runs processes one after the other.
type processHost struct {
	t       *testing.T
	inner   func(n int) store.Store // for the nth process
	outside *target
	rules   simtest.FixedPolicy
	target  simtest.TargetKind
	born    int
	now     *process
	first   *crashGate // of the one that crashes
}

// open starts the next process. Only the first one crashes; later ones continue its work.
func (s *processHost) open(death point) {
	s.t.Helper()
	l := &crashGate{death: death}
	h := &effectClient{outside: s.outside, way: l}
	p := &port{inner: storetest.Audited(s.t, s.inner(s.born)), way: l}
	if s.first == nil {
		s.first, p.lease = l, time.Microsecond // so that no one waits for its leases to expire
	} else {
		s.awaitLate(p, h)
	}
	s.born++
	c := config(s.t, p, h.flows(s.t))
	c.Desk.Policy, c.Desk.Directory = s.rules, groupMembers
	e, err := executor.New(c)
	if l.isDead() {
		s.open(point{})
		return
	}
	if err != nil {
		s.t.Fatal(err)
	}
	l.of(s.t, e)
	s.now = &process{e, l}
	if s.born > 1 {
		e.StartWorkers()
	}
}

// awaitLate lets calls of the first process that are in transit arrive at the worst time: when the
// next one has claimed the run, or just after the target was queried.
func (s *processHost) awaitLate(p *port, h *effectClient) {
	h.called = s.first.arrive
	switch {
	case !s.first.lateOutside() || s.target == simtest.NonIdempotent:
		p.claimed = s.first.arrive
	case s.target == simtest.Fencing:
		h.looked = s.first.arrive
	}
}

// close stops the current process.
func (s *processHost) close() {
	s.t.Helper()
	if s.now == nil {
		return
	}
	if err := s.now.Stop(context.Background()); err != nil {
		s.t.Fatal(err)
	}
	s.now = nil
}

// do sends a request to the current process, or to the next one if that one crashes.
func (s *processHost) do(request executor.RunRequest) answer {
	s.t.Helper()
	for range 10 {
		outcome, err := s.now.Run(s.t.Context(), request)
		if !s.now.isDead() {
			return answered(s.t, outcome, err)
		}
		if err == nil || errors.Is(err, executor.ErrPending) {
			// The reply came before the crash. The client does not know of the crash and has no
			// reason to retry.
			told := answered(s.t, outcome, err)
			s.close()
			s.open(point{})
			return told
		}
		s.close()
		s.open(point{})
	}
	s.t.Fatal("no reply")
	return answer{}
}
