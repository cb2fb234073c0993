package executor

import (
	"fmt"
	"sync"
)

// errorCount counts what failed because nothing can be written. It comes again at the next look, all of it and for the same reason, so the log gets it as one: the disk
// that is full may be that of the log. The zero tally is empty; it may be used by several at once.
type errorCount struct {
	mu    sync.Mutex
	first error
	count int
}

func (t *errorCount) add(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count++; t.count == 1 {
		t.first = err
	}
}

// err is the first failure, with the number of all; nil if there is none.
func (t *errorCount) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count < 2 {
		return t.first
	}
	return fmt.Errorf("%d failed, the first: %w", t.count, t.first)
}
