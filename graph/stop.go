package graph

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// NoLimit gives the nodes of the running step unlimited time.
const NoLimit time.Duration = -1

// StopFunc asks the runs of a context to stop. They stop when their current step is over. The
// context of nodes that have not returned after the limit is cancelled; those nodes are entered
// again when the run is resumed. A further call can shorten the limit.
type StopFunc func(limit time.Duration)

type stopKey struct{}

// WithStop returns a context for running graphs, and a function that stops runs with this context
// gracefully: the call returns an error that is [ErrStopped], and the run can be resumed. The call
// waits for a node that ignores its context, because otherwise the node could run twice at the same
// time. Call the function with 0 when the run is over, to release resources.
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

// stopChannel returns a channel that is closed when a stop is requested; nil without [WithStop].
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

// cancelCause returns why the context is done; errors.Is finds both the context error and its
// cause.
func cancelCause(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != ctx.Err() {
		return fmt.Errorf("%w: %w", cause, ctx.Err())
	}
	return ctx.Err()
}

// saveTimeout limits a save after the run's context is done: finished work must still be saved.
const saveTimeout = 30 * time.Second

// saveContext outlives its parent context by saveTimeout. It allocates nothing if the store does
// not use Done.
type saveContext struct {
	context.Context
	mu       sync.Mutex
	extended context.Context // nil until Done is called
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

// close is called when the save has returned.
func (c *saveContext) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.release != nil {
		c.release()
	}
}
