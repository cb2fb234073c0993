package graph

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// NoLimit gives the nodes of the running step all the time they need.
const NoLimit time.Duration = -1

// StopFunc asks the runs of a context to stop. They do when their current step is over. Nodes that have not returned after
// the limit get their context cancelled, and are entered again when the run is resumed. Called again, it can shorten the limit.
type StopFunc func(limit time.Duration)

type stopKey struct{}

// WithStop returns a context for running graphs, and a function that stops what runs with it in good order: the call returns
// an error that is [ErrStopped], and the run can be resumed. A node that does not heed its context is waited for; if it were
// left behind, it would do its work a second time beside itself. Call the function with 0 in any case when the run is over, to
// free what the context holds.
func WithStop(parent context.Context) (context.Context, StopFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	requested := make(chan struct{})
	var once sync.Once
	stop := func(limit time.Duration) {
		once.Do(func() { close(requested) })
		switch {
		case limit == 0:
			cancel(ErrStopped)
		case limit > 0:
			timer := time.AfterFunc(limit, func() { cancel(ErrStopped) })
			context.AfterFunc(ctx, func() { timer.Stop() })
		}
	}
	return context.WithValue(ctx, stopKey{}, requested), stop
}

// stopChannel is closed when the runs of this context are asked to stop; nil if nobody can ask.
func stopChannel(ctx context.Context) chan struct{} {
	requested, _ := ctx.Value(stopKey{}).(chan struct{})
	return requested
}

// stopRequested returns an error if the run should not begin another step.
func stopRequested(ctx context.Context, requested chan struct{}) error {
	select {
	case <-requested:
		return ErrStopped
	default:
	}
	if ctx.Err() != nil {
		return cancelCause(ctx)
	}
	return nil
}

// cancelCause says why the context is over; errors.Is finds both what the context says and its cause.
func cancelCause(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != ctx.Err() {
		return fmt.Errorf("%w: %w", cause, ctx.Err())
	}
	return ctx.Err()
}

// saveTimeout is how long a save may take after the run's own context is gone: what is done has to be written down.
const saveTimeout = 30 * time.Second

// saveContext outlives the context it is made from by saveTimeout. A store that never looks at it costs nothing.
type saveContext struct {
	context.Context
	mu       sync.Mutex
	extended context.Context // nil until somebody wants to be told when it ends
	release  context.CancelFunc
}

func (c *saveContext) Deadline() (time.Time, bool) { return time.Time{}, false }

func (c *saveContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.extended == nil {
		long, cancel := context.WithCancel(context.WithoutCancel(c.Context))
		stop := context.AfterFunc(c.Context, func() {
			timer := time.AfterFunc(saveTimeout, cancel)
			context.AfterFunc(long, func() { timer.Stop() })
		})
		c.extended, c.release = long, func() { stop(); cancel() }
	}
	return c.extended.Done()
}

func (c *saveContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.extended == nil {
		return nil
	}
	return c.extended.Err()
}

// end is called when the save has returned.
func (c *saveContext) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.release != nil {
		c.release()
	}
}
