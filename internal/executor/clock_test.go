package executor_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/postgres"
	"github.com/fermata-go/fermata/internal/testtier"
)

// looked is a store that counts how often its clock is read.
type looked struct {
	store.Store
	times *atomic.Int64
}

func (l looked) Now(ctx context.Context) (time.Time, error) {
	defer l.times.Add(1)
	return l.Store.Now(ctx)
}

// leaping is a real server whose clock can be set, with replicas that read it continuously.
type leaping struct {
	t      *testing.T
	server *pgtest.ClockCluster
	open   func() store.Store
	looks  atomic.Int64
	dropper
}

func newLeaping(t *testing.T) *leaping {
	l := &leaping{t: t, server: pgtest.StartWithClock(t)}
	database := l.server.Database(t)
	l.open = func() store.Store {
		s, err := postgres.Open(t.Context(), database, postgres.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return looked{s, &l.looks}
	}
	return l
}

func (l *leaping) replica() *executor.Executor {
	e := l.executor(l.t, l.open(), func(c *executor.Config) { c.RequestTimeout, c.Poll = 24*time.Hour, 10*time.Millisecond })
	e.StartWorkers()
	return e
}

// jump sets the clock and waits until all replicas have read it.
func (l *leaping) jump(ahead time.Duration) {
	l.server.Jump(l.t, ahead)
	l.manyLooks()
}

func (l *leaping) manyLooks() {
	for from := l.looks.Load(); l.looks.Load() < from+20; {
		select {
		case <-l.t.Context().Done():
			l.t.Fatal("no replica reads the clock")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// waits checks that the request is open, whatever the clock shows.
func (l *leaping) waits(e *executor.Executor, ahead time.Duration) {
	l.t.Helper()
	view, err := e.GetRun(l.t.Context(), "acme", "drop-1")
	if err != nil || view.Run.Status != store.StatusWaiting || view.Interrupts[0].State != store.InterruptPending {
		l.t.Fatalf("I10: %v ahead: the request is %+v, %v", ahead, view, err)
	}
}

// The clock of a real server jumps two days ahead, and two back. Nothing expires by it on any
// replica, including one that starts after the jump. An answer that is rejected as too late is
// accepted when the clock is right again, and the effect happens once.
func TestI10_ClockJumpOfTheServerExpiresNothing(t *testing.T) {
	l := newLeaping(t)
	first, second := l.replica(), l.replica()
	startDrop(t, first)
	l.manyLooks() // the clock is right
	for _, ahead := range []time.Duration{48 * time.Hour, -48 * time.Hour, 25 * time.Hour} {
		l.jump(ahead)
		l.replica() // this replica has never seen another clock
		l.manyLooks()
		l.waits(second, ahead)
	}
	if _, err := second.Run(t.Context(), addressed(t, second, decision("early", "approve"))); err == nil {
		t.Error("I10: the server believes that it is too late, but accepts the answer")
	}
	l.jump(0)
	completed(t, mustRun(t, second, addressed(t, second, decision("1", "approve"))))
	if l.dropped.Load() != 1 {
		t.Errorf("I4: dropped %d times", l.dropped.Load())
	}
}

// The clock of a real server jumps many times, to any time.
func TestProperty_ClockJumpsOfTheServer(t *testing.T) {
	times := testtier.Count(1, 2, 500)
	l := newLeaping(t)
	e := l.replica()
	l.replica()
	startDrop(t, e)
	l.manyLooks()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range times {
		ahead := time.Duration(rng.NormFloat64() * float64(48*time.Hour))
		l.jump(ahead)
		l.waits(e, ahead)
		if rng.IntN(4) == 0 {
			l.jump(0)
		}
	}
	l.jump(0)
	completed(t, mustRun(t, e, addressed(t, e, decision("1", "approve"))))
	t.Logf("%d jumps, seed %d", times, seed)
}
