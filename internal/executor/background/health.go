package background

import (
	"errors"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// writeErrorWindow is how long an executor is not ready after the store did not accept a write. A
// full store still answers reads and accepts small writes. Runs, starts and decisions that could
// not be written are tried again more often than this, so the executor stays not ready until the
// store accepts them.
const writeErrorWindow = 10 * time.Second

// writeError is a write that the store did not accept, and when.
type writeError struct {
	at  time.Time
	err error
}

// NoteWriteError remembers that the store had no room for something, or that its disk refused it,
// if that is the error, and returns the error.
func (g *Group) NoteWriteError(err error) error {
	for _, why := range []error{store.ErrFull, store.ErrDisk} {
		if errors.Is(err, why) {
			g.lastWriteError.Store(&writeError{time.Now(), why})
		}
	}
	return err
}

// LastWriteError returns why the store did not accept a write recently, or nil.
func (g *Group) LastWriteError() error {
	if last := g.lastWriteError.Load(); last != nil && time.Since(last.at) < writeErrorWindow {
		return last.err
	}
	return nil
}
