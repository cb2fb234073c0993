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
// the limit get their context cancelled, and are entered again when the run is resumed. The first call counts.
type StopFunc func(limit time.Duration)

type stopKey struct{}

// WithStop returns a context for running graphs, and a function that stops what runs with it in good order: the call returns
// an error that is [ErrStopped], and the run can be resumed. A node that does not heed its context is waited for; if it were
// left behind, it would do its work a second time beside itself.
func WithStop(parent context.Context) (context.Context, StopFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	requested := make(chan struct{})
	var once sync.Once
	stop := func(limit time.Duration) {
		once.Do(func() {
			close(requested)
			switch {
			case limit == 0:
				cancel(ErrStopped)
			case limit > 0:
				timer := time.AfterFunc(limit, func() { cancel(ErrStopped) })
				context.AfterFunc(parent, func() { timer.Stop() })
			}
		})
	}
	return context.WithValue(ctx, stopKey{}, requested), stop
}

// stopRequested returns an error if the run should not begin another step.
func stopRequested(ctx context.Context) error {
	if requested, ok := ctx.Value(stopKey{}).(chan struct{}); ok {
		select {
		case <-requested:
			return ErrStopped
		default:
		}
	}
	if ctx.Err() != nil {
		return cancelled(ctx)
	}
	return nil
}

// cancelled says why the context is over; errors.Is finds both what the context says and its cause.
func cancelled(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != ctx.Err() {
		return fmt.Errorf("%w: %w", cause, ctx.Err())
	}
	return ctx.Err()
}
