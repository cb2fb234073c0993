package executor

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-go/fermata/store"
)

// Ready returns nil if the store can be reached and written to, and had room for what was to be written, and this executor takes work.
func (e *Executor) Ready(ctx context.Context) error {
	if e.closing() {
		return ErrClosed
	}
	if at := e.full.Load(); at != nil && time.Since(*at) < fullFor {
		return store.ErrFull
	}
	if _, err := e.store.Now(ctx); err != nil {
		return err
	}
	if _, err := e.store.Pending(ctx, "", 1); err != nil { // the time may be that of the host; this is read from what is kept
		return err
	}
	if s, knows := e.store.(store.Writable); knows {
		return s.Writable(ctx)
	}
	return nil
}

// fullFor is how long an executor is not ready after the store had no room for something. A store that is full still answers who asks, and even
// takes what is small. Runs that could not be written are tried again more often than this, and so are starts and decisions, so it lasts until there is room.
const fullFor = 10 * time.Second

// noteRoom remembers that the store had no room for something, if that is the error, and returns the error.
func (e *Executor) noteRoom(err error) error {
	if errors.Is(err, store.ErrFull) {
		now := time.Now()
		e.full.Store(&now)
	}
	return err
}
