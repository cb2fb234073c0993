package sqlite

import (
	"context"
	"sync"
	"time"

	"github.com/fermata-go/fermata/internal/broadcast"
	"github.com/fermata-go/fermata/internal/store"
)

// pollInterval is how often a Store with watchers checks for writes of other processes.
const pollInterval = 100 * time.Millisecond

// watchers notifies watchers of changes.
type watchers struct {
	hub broadcast.Hub[store.Key]

	mu       sync.Mutex
	count    int
	stopPoll context.CancelFunc // stops polling; nil if it is not running
	stopped  bool
	wg       sync.WaitGroup
}

// Watch returns hints that a run may have changed; see [store.Events]. Writes of this Store are
// reported at once with their key. SQLite only reports that another process wrote to the file, not
// what. This is polled ten times a second while there are watchers, and reported as a zero key.
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

// endPoll stops polling. The caller holds the lock.
func (h *watchers) endPoll() {
	if h.stopPoll != nil {
		h.stopPoll()
		h.stopPoll = nil
	}
}

// stop stops polling permanently. Watchers stay until their contexts end.
func (h *watchers) stop() {
	h.mu.Lock()
	h.stopped = true
	h.endPoll()
	h.mu.Unlock()
	h.wg.Wait()
}

// poll notifies watchers when another connection has written to the file.
func (s *Store) poll(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	last := int64(-1) // so that the first poll gives a hint: writes before it may have been missed
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
