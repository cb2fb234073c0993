package sqlite

import (
	"context"
	"sync"
	"time"

	"github.com/fermata-go/fermata/internal/broadcast"
	"github.com/fermata-go/fermata/store"
)

// pollInterval is how often a Store with watchers looks whether another process has written.
const pollInterval = 100 * time.Millisecond

// watchers tells watchers that something happened.
type watchers struct {
	hub broadcast.Hub[store.Key]

	mu       sync.Mutex
	count    int
	stopPoll context.CancelFunc // ends the look at other processes; nil while there is none
	stopped  bool
	wg       sync.WaitGroup
}

// Watch returns hints that something has happened to a run; see [store.Events]. What this Store has written is told at once and by
// name. SQLite does not say what others write to the file, only that somebody did: that is looked at ten times a second, as long as
// there are watchers, and told as a zero key.
func (s *Store) Watch(ctx context.Context) <-chan store.Key {
	h := &s.watch
	watching, end := context.WithCancel(context.WithoutCancel(ctx))
	watcher := h.hub.Subscribe(watching)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count++
	if h.stopPoll == nil && !h.stopped {
		var look context.Context
		look, h.stopPoll = context.WithCancel(context.Background())
		h.wg.Go(func() { s.poll(look) })
	}
	context.AfterFunc(ctx, func() {
		h.remove()
		end()
	})
	return watcher
}

func (h *watchers) remove() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count--; h.count == 0 {
		h.endPoll()
	}
}

// end is called with the lock held.
func (h *watchers) endPoll() {
	if h.stopPoll != nil {
		h.stopPoll()
		h.stopPoll = nil
	}
}

// stop ends the look at other processes for good. Watchers stay until their contexts end.
func (h *watchers) stop() {
	h.mu.Lock()
	h.stopped = true
	h.endPoll()
	h.mu.Unlock()
	h.wg.Wait()
}

// lookOut tells watchers when another connection than the writer's has written to the file.
func (s *Store) poll(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	last := int64(-1) // so that the first look is a hint: nobody knows what was written between it and the watcher's coming
	for {
		var version int64
		err := s.writer.QueryRowContext(ctx, `PRAGMA data_version`).Scan(&version)
		if err == nil && version != last {
			s.watch.hub.Publish(store.Key{})
			last = version
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
