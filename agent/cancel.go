package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// CancelMode selects the point where a run is cancelled.
type CancelMode int

// The points where a run can be cancelled. They apply to all of its agents, at any depth; the
// transition between two agents counts as each of them.
const (
	// CancelNow cancels the context of the running work. Interrupted model and tool calls are
	// repeated by the resume.
	CancelNow CancelMode = iota
	// CancelAfterModel waits for the answer of a model. The resume makes its tool calls.
	CancelAfterModel
	// CancelAfterTools waits until the tool calls of a turn are done. Their results are kept.
	CancelAfterTools
)

// CancelOption configures one call of a [CancelFunc].
type CancelOption func(*cancelRequest)

type cancelRequest struct{ limit time.Duration }

// Within cancels immediately if the cancel point is not reached within the limit.
func Within(limit time.Duration) CancelOption {
	return func(r *cancelRequest) { r.limit = limit }
}

// CancelFunc cancels a run so that it can be resumed. Further calls add to the first: the run stops
// at the first point that is reached, and the earliest time limit counts.
type CancelFunc func(mode CancelMode, options ...CancelOption) *Cancellation

// Cancellation is a requested cancel.
type Cancellation struct{ c *canceller }

// Wait returns when the run has stopped: nil if it was cancelled at the requested point,
// [ErrCancelTimeout] if it was cancelled immediately because the point was not reached in time,
// [ErrRunEnded] if it had ended or waited for a person before. Do not call it in the loop that
// reads the run's events: the run stops only when that loop ends.
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

// canceller tracks whether and how one run is to be cancelled.
//
//	idle ──first call──▶ requested ──point reached──▶ stopped
//	                         └──time limit──▶ escalated, stopped
type canceller struct {
	abort   context.CancelCauseFunc
	settled chan struct{} // closed when the run has stopped
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

// take is called at the start of a run. The first run gets the canceller. A run inside one of its
// tools is separate: it ends with its context and does not end the outer run.
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

// within sets the time limit. The lock must be held.
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

// checkAt returns an error if the run is to be cancelled at one of these points. CancelNow applies
// at every point, for code that ignored its context. A nil canceller never cancels.
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

// isSettled reports whether the run has stopped. After that nothing changes.
func (c *canceller) isSettled() bool {
	select {
	case <-c.settled:
		return true
	default:
		return false
	}
}

// checkStart returns an error if a run must not begin or continue.
func (c *canceller) checkStart(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	if c != nil && c.isRequested() {
		return graph.ErrStopped
	}
	return nil
}

// isRequested reports whether a cancel was requested.
func (c *canceller) isRequested() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.requested) > 0
}

// checkEntry is the cancel point at the start of an agent. Inside a tool call only CancelNow
// applies, so that the call can finish.
func (c *canceller) checkEntry(path fermata.Address) error {
	if n := len(path); n > 0 && path[n-1].Type == fermata.SegmentTool {
		return c.checkAt()
	}
	return c.checkAt(CancelAfterModel, CancelAfterTools)
}

// settle records that the run has stopped, and whether it was because of the cancel.
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
