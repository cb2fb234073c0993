// Package background is the lifecycle of what an executor does in the background: goroutines that a
// stop waits for, pauses that a stop ends, and what they report when they fail again and again.
package background

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// CommitTimeout is how long writing the end of an execution may take after everything else is over.
const CommitTimeout = 30 * time.Second

// Group is everything that runs in the background of one executor. It is safe for concurrent use.
type Group struct {
	// Ctx is the context of everything in the background. It ends after the last task, or when Stop
	// has waited long enough.
	Ctx context.Context
	// Stopping is closed by Stop: no more work is begun.
	Stopping chan struct{}
	// Tasks are the goroutines that Stop waits for.
	Tasks sync.WaitGroup
	Log   *slog.Logger

	cancel         context.CancelFunc
	mu             sync.Mutex
	stopped        bool
	errors         errorLog
	lastWriteError atomic.Pointer[writeError] // nil if the store accepted everything
}

// New returns a group that logs to log.
func New(log *slog.Logger) *Group {
	g := &Group{Stopping: make(chan struct{}), Log: log}
	g.Ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// Go calls task in the background and returns true, unless the group was stopped.
func (g *Group) Go(task func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.stopped {
		g.Tasks.Go(task)
	}
	return !g.stopped
}

// IsStopping reports whether no more work is begun.
func (g *Group) IsStopping() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stopped
}

// Stop begins no more work, calls wake, and waits for the tasks. When ctx ends it cancels them. It
// may be called several times.
func (g *Group) Stop(ctx context.Context, wake func()) {
	g.mu.Lock()
	if !g.stopped {
		close(g.Stopping)
	}
	g.stopped = true
	g.mu.Unlock()
	done := make(chan struct{})
	go func() {
		g.Tasks.Wait()
		close(done)
	}()
	wake()
	select {
	case <-done:
	case <-ctx.Done():
	}
	g.cancel()
	<-done
}

// Cancel ends the context of the group, before anything was begun in it.
func (g *Group) Cancel() { g.cancel() }

// Sleep waits, or until the group is stopped.
func (g *Group) Sleep(atMost time.Duration) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-g.Stopping:
	}
}

// MinBackoff and MaxBackoff are how long to wait before a store that has failed is tried again.
// Once it is back, other processes look for runs without an owner about once a second: an owner
// that still has something to write must be faster.
const (
	MinBackoff = 10 * time.Millisecond
	MaxBackoff = 250 * time.Millisecond
)

// WaitForStore waits before a store that has failed is tried again, and reports whether there is
// time to do so. A stop that waits no longer ends it.
func (g *Group) WaitForStore(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-g.Ctx.Done():
	}
	return false
}
