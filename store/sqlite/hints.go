package sqlite

import (
	"context"
	"sync"
	"time"

	"github.com/fermata-go/fermata/internal/hint"
	"github.com/fermata-go/fermata/store"
)

// lookInterval is how often a Store with watchers looks whether another process has written.
const lookInterval = 100 * time.Millisecond

// hints tells watchers that something happened.
type hints struct {
	board hint.Board[store.Key]

	mu       sync.Mutex
	watchers int
	looking  context.CancelFunc // ends the look at other processes; nil while there is none
	stopped  bool
	wg       sync.WaitGroup
}

// Watch returns hints that something has happened to a run; see [store.Events]. What this Store has written is told at once and by
// name. SQLite does not say what others write to the file, only that somebody did: that is looked at ten times a second, as long as
// there are watchers, and told as a zero key.
func (s *Store) Watch(ctx context.Context) <-chan store.Key {
	h := &s.hints
	watching, end := context.WithCancel(context.WithoutCancel(ctx))
	watcher := h.board.Watch(watching)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchers++
	if h.looking == nil && !h.stopped {
		var look context.Context
		look, h.looking = context.WithCancel(context.Background())
		h.wg.Go(func() { s.lookOut(look) })
	}
	context.AfterFunc(ctx, func() {
		h.leave()
		end()
	})
	return watcher
}

func (h *hints) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers--; h.watchers == 0 {
		h.end()
	}
}

// end is called with the lock held.
func (h *hints) end() {
	if h.looking != nil {
		h.looking()
		h.looking = nil
	}
}

// stop ends the look at other processes for good. Watchers stay until their contexts end.
func (h *hints) stop() {
	h.mu.Lock()
	h.stopped = true
	h.end()
	h.mu.Unlock()
	h.wg.Wait()
}

// lookOut tells watchers when another connection than the writer's has written to the file.
func (s *Store) lookOut(ctx context.Context) {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	last := int64(-1) // so that the first look is a hint: nobody knows what was written between it and the watcher's coming
	for {
		var version int64
		err := s.writer.QueryRowContext(ctx, `PRAGMA data_version`).Scan(&version)
		if err == nil && version != last {
			s.hints.board.Tell(store.Key{})
			last = version
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
