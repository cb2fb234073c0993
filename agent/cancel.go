package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// CancelMode says at which point a run is cancelled.
type CancelMode int

// The points at which a run can be cancelled. They are looked for in all of its agents, at any depth; the borders between
// agents count as all of them.
const (
	// CancelNow cancels the context of whatever is at work. Models and tools that were are called again by the resume.
	CancelNow CancelMode = iota
	// CancelAfterModel waits for an answer of a model. The tools that it wants are called by the resume.
	CancelAfterModel
	// CancelAfterTools waits until the tools of a turn are done. Their results are kept.
	CancelAfterTools
)

// CancelOption changes one call of a [CancelFunc].
type CancelOption func(*cancelRequest)

type cancelRequest struct{ limit time.Duration }

// Within cancels at once if the point to cancel at has not come by then.
func Within(limit time.Duration) CancelOption {
	return func(r *cancelRequest) { r.limit = limit }
}

// CancelFunc cancels a run, and leaves it so that it can be resumed. Further calls add to the first: the run stops at
// whichever point comes first, and the earliest time limit counts.
type CancelFunc func(mode CancelMode, options ...CancelOption) *Cancellation

// Cancellation is a run that is being cancelled.
type Cancellation struct{ c *canceller }

// Wait returns when the run has come to rest: nil if it was cancelled where it should be, [ErrCancelTimeout] if it was
// cancelled at once because that point did not come in time, [ErrRunEnded] if it was over or waited for a person before.
// Do not call it where the run's events are read: that is where it comes to rest.
func (c *Cancellation) Wait(ctx context.Context) error {
	select {
	case <-c.c.settled:
	case <-ctx.Done():
		return ctx.Err()
	}
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	switch {
	case !c.c.stopped:
		return ErrRunEnded
	case c.c.escalated:
		return ErrCancelTimeout
	}
	return nil
}

// canceller knows whether and how one run is to be cancelled.
//
//	idle ──first call──▶ requested ──the point comes──▶ stopped
//	                         └──the time is up──▶ escalated, stopped
type canceller struct {
	abort   context.CancelCauseFunc
	settled chan struct{} // closed when the run has come to rest
	once    sync.Once

	mu        sync.Mutex
	taken     bool
	requested map[CancelMode]bool
	deadline  time.Time
	timer     *time.Timer
	stopped   bool
	escalated bool
}

type cancelKey struct{}

// WithCancel returns a context for one run, and a function that cancels the run.
func WithCancel(parent context.Context) (context.Context, CancelFunc) {
	ctx, abort := context.WithCancelCause(parent)
	c := &canceller{abort: abort, settled: make(chan struct{}), requested: make(map[CancelMode]bool)}
	return context.WithValue(ctx, cancelKey{}, c), c.cancel
}

func cancellerOf(ctx context.Context) *canceller {
	c, _ := ctx.Value(cancelKey{}).(*canceller)
	return c
}

// take is called by whoever begins a run. The first gets the canceller; a run inside a tool of that one is another run, which
// ends when its context does and does not end the one around it.
func (c *canceller) take() *canceller {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken {
		return nil
	}
	c.taken = true
	return c
}

func (c *canceller) cancel(mode CancelMode, options ...CancelOption) *Cancellation {
	request := cancelRequest{limit: -1}
	for _, option := range options {
		option(&request)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isSettled() {
		return &Cancellation{c}
	}
	c.requested[mode] = true
	if mode == CancelNow {
		c.abort(graph.ErrStopped)
	} else if request.limit >= 0 {
		c.within(request.limit)
	}
	return &Cancellation{c}
}

// within is called with the lock held.
func (c *canceller) within(limit time.Duration) {
	deadline := time.Now().Add(limit)
	if c.timer != nil {
		if !deadline.Before(c.deadline) {
			return
		}
		c.timer.Stop()
	}
	c.deadline = deadline
	c.timer = time.AfterFunc(limit, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.isSettled() {
			c.escalated = true
			c.abort(graph.ErrStopped)
		}
	})
}

// at returns an error if the run is to be cancelled at this point. At once is every point, for those who did not heed their
// context. A nil canceller never cancels.
func (c *canceller) checkAt(points ...CancelMode) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.escalated {
		return graph.ErrStopped
	}
	for _, point := range append(points, CancelNow) {
		if c.requested[point] {
			return graph.ErrStopped
		}
	}
	return nil
}

// resting reports whether the run has come to rest: then nothing changes any more.
func (c *canceller) isSettled() bool {
	select {
	case <-c.settled:
		return true
	default:
		return false
	}
}

// before returns an error if a run need not begin, or go on, at all.
func (c *canceller) checkStart(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	if c != nil && c.isRequested() {
		return graph.ErrStopped
	}
	return nil
}

// asked reports whether anybody wants the run cancelled.
func (c *canceller) isRequested() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.requested) > 0
}

// atEntry is the point at which an agent begins. Inside a tool call it is only that for at once: the call is to be finished.
func (c *canceller) checkEntry(path fermata.Address) error {
	if n := len(path); n > 0 && path[n-1].Type == fermata.SegmentTool {
		return c.checkAt()
	}
	return c.checkAt(CancelAfterModel, CancelAfterTools)
}

// over notes that the run has come to rest, and whether that is because it was cancelled.
func (c *canceller) settle(stopped bool) (escalated bool) {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.once.Do(func() {
		c.stopped = stopped
		if c.timer != nil {
			c.timer.Stop()
		}
		close(c.settled)
		c.abort(nil)
	})
	return c.escalated
}
