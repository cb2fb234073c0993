package crashpoint

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/storetest"
)

// mode is what becomes of the call in which a process dies.
type mode string

const (
	before mode = "before" // it does not take effect
	after  mode = "after"  // it does, and nobody learns what came of it
	late   mode = "late"   // it is on its way, and arrives when somebody else is at work
)

var modes = []mode{before, after, late}

// point is where a process dies: in its nth call, from 1. The zero point is nowhere.
type point struct {
	at   int
	mode mode
}

// crashGate is the passage of a process that dies at a point.
type crashGate struct {
	mu    sync.Mutex
	death point
	trace []string // what it called
	dead  bool
	late  func() // what is still on its way
	dies  func() // ends the executor, which would try for half a minute to write down what it did; nil while there is none
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

// of says whose life it is.
func (l *crashGate) of(t *testing.T, e *executor.Executor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dies = func() { stop(t, e) }
}

// gone reports whether it is over.
func (l *crashGate) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// arrive lets what is still on its way arrive, once.
func (l *crashGate) arrive() {
	l.mu.Lock()
	call := l.late
	l.late = nil
	l.mu.Unlock()
	if call != nil {
		call()
	}
}

// lateOutside reports whether it died in a call to the world outside that is still on its way.
func (l *crashGate) lateOutside() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.late != nil && strings.HasPrefix(l.trace[len(l.trace)-1], "outside")
}

// process is an executor and the life that it has.
type process struct {
	*executor.Executor
	*crashGate
}

// processHost is where processes come and go, one after the other.
type processHost struct {
	t       *testing.T
	inner   func(n int) store.Store // of the nth process
	outside *externalTarget
	rules   rules
	target  target
	born    int
	now     *process
	first   *crashGate // of the one that dies
}

// open starts the next process. Only the first one dies; those after it look for work that it has left.
func (s *processHost) open(death point) {
	s.t.Helper()
	l := &crashGate{death: death}
	h := &effectClient{outside: s.outside, way: l}
	p := &port{inner: storetest.Audited(s.t, s.inner(s.born)), way: l}
	if s.first == nil {
		s.first, p.lease = l, time.Microsecond // so that nobody has to wait for its leases to end
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

// awaitLate lets what the first process has left on its way arrive at the worst moment: when the next one has got the run; or, if it is a call to a
// target that could be asked, just after that has said what it knows.
func (s *processHost) awaitLate(p *port, h *effectClient) {
	h.called = s.first.arrive
	switch {
	case !s.first.lateOutside() || s.target == nonIdempotent:
		p.claimed = s.first.arrive
	case s.target == fencing:
		h.looked = s.first.arrive
	}
}

// close ends the process that is there.
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

// do has a request answered: by the process that is there, or by the next one if that one dies of it.
func (s *processHost) do(request executor.RunRequest) answer {
	s.t.Helper()
	for range 10 {
		outcome, err := s.now.Run(s.t.Context(), request)
		if !s.now.isDead() {
			return answered(s.t, outcome, err)
		}
		if err == nil || errors.Is(err, executor.ErrPending) {
			// It was told before the end; whoever asked does not know that the process is dead, and has no reason to ask again.
			told := answered(s.t, outcome, err)
			s.close()
			s.open(point{})
			return told
		}
		s.close()
		s.open(point{})
	}
	s.t.Fatal("nobody answers")
	return answer{}
}
