package executor

import (
	"context"
)

// Ready returns nil if the store can be reached and written to, and took what was to be written,
// and this executor takes work.
func (e *Executor) Ready(ctx context.Context) error {
	if e.background.IsStopping() {
		return ErrClosed
	}
	if err := e.background.LastWriteError(); err != nil {
		return err
	}
	if _, err := e.store.Now(ctx); err != nil {
		return err
	}
	// the time may be that of the host; this is read from what is kept
	if _, err := e.store.CountPending(ctx, "", nil, 1); err != nil {
		return err
	}
	return e.store.CheckWritable(ctx)
}
