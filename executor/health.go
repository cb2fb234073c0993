package executor

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-go/fermata/store"
)

// Ready returns nil if the store can be reached and written to, and took what was to be written, and this executor takes work.
func (e *Executor) Ready(ctx context.Context) error {
	if e.isStopping() {
		return ErrClosed
	}
	if last := e.lastWriteError.Load(); last != nil && time.Since(last.at) < writeErrorWindow {
		return last.err
	}
	if _, err := e.store.Now(ctx); err != nil {
		return err
	}
	if _, err := e.store.CountPending(ctx, "", 1); err != nil { // the time may be that of the host; this is read from what is kept
		return err
	}
	return e.store.CheckWritable(ctx)
}

// writeErrorWindow is how long an executor is not ready after the store did not take something. A store that is full, or may grow no further, still answers who asks, and even
// takes what is small. Runs that could not be written are tried again more often than this, and so are starts and decisions, so it lasts until it takes them.
const writeErrorWindow = 10 * time.Second

// writeError is what a store did not take, and why.
type writeError struct {
	at  time.Time
	err error
}

// noteRoom remembers that the store had no room for something, or that its disk refused it, if that is the error, and returns the error.
func (e *Executor) noteWriteError(err error) error {
	for _, why := range []error{store.ErrFull, store.ErrDisk} {
		if errors.Is(err, why) {
			e.lastWriteError.Store(&writeError{time.Now(), why})
		}
	}
	return err
}
