package executor_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/postgres"
)

// looked is a store that counts how often somebody looked at its clock.
type looked struct {
	store.Store
	times *atomic.Int64
}

func (l looked) Now(ctx context.Context) (time.Time, error) {
	defer l.times.Add(1)
	return l.Store.Now(ctx)
}

// The clock of a real server jumps two days ahead, and two back. Nothing expires by it, for no replica, also not for one that comes up meanwhile; what
// is refused as too late is taken when the clock is right again; and what is done is done once.
func TestI10_AServerWhoseClockJumpsExpiresNothing(t *testing.T) {
	server := pgtest.StartWithClock(t)
	database := server.Database(t)
	d := new(dropper)
	var times atomic.Int64
	replica := func() *executor.Executor {
		s, err := postgres.Open(t.Context(), database, postgres.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		e := d.executor(t, looked{s, &times}, func(c *executor.Config) { c.Timeout, c.Poll = 24*time.Hour, 10*time.Millisecond })
		e.Start()
		return e
	}
	manyLooks := func(ctx context.Context) {
		for from := times.Load(); times.Load() < from+20; {
			select {
			case <-ctx.Done():
				t.Fatal("nobody looks at the clock")
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	first, second := replica(), replica()
	startDrop(t, first)
	manyLooks(t.Context()) // at a clock that is right

	for _, ahead := range []time.Duration{48 * time.Hour, -48 * time.Hour, 25 * time.Hour} {
		server.Jump(t, ahead)
		manyLooks(t.Context())
		replica() // which has never seen it otherwise
		manyLooks(t.Context())
		view, err := second.Look(t.Context(), "acme", "drop-1")
		if err != nil || view.Run.Status != store.Waiting || view.Interrupts[0].State != store.Pending {
			t.Fatalf("%v ahead: it is %+v, %v", ahead, view, err)
		}
	}
	if _, err := second.Run(t.Context(), addressed(t, second, decision("early", "approve"))); err == nil {
		t.Error("I10: the server believes that it is too late, and takes it")
	}
	server.Jump(t, 0)
	manyLooks(t.Context())
	completed(t, mustRun(t, second, addressed(t, second, decision("1", "approve"))))
	if d.dropped.Load() != 1 {
		t.Errorf("I4: dropped %d times", d.dropped.Load())
	}
}
