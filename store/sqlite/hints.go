package sqlite

import (
	"context"
	"sync"
	"time"

	"github.com/fermata-go/fermata/store"
)

// backlog is how many hints a watcher may be behind before it only learns that there were more.
const backlog = 64

// lookInterval is how often a Store with watchers looks whether another process has written.
const lookInterval = 100 * time.Millisecond

// hints tells watchers that something happened. It never waits for one.
type hints struct {
	mu       sync.Mutex
	watchers map[chan store.Key]struct{}
	looking  context.CancelFunc // ends the look at other processes; nil while there is none
	stopped  bool
	wg       sync.WaitGroup
}

// Watch returns hints that something has happened to a run; see [store.Events]. What this Store has written is told at once and by
// name. SQLite does not say what others write to the file, only that somebody did: that is looked at ten times a second, as long as
// there are watchers, and told as a zero key.
func (s *Store) Watch(ctx context.Context) <-chan store.Key {
	watcher := make(chan store.Key, backlog)
	h := &s.hints
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers == nil {
		h.watchers = make(map[chan store.Key]struct{})
	}
	h.watchers[watcher] = struct{}{}
	if h.looking == nil && !h.stopped {
		var look context.Context
		look, h.looking = context.WithCancel(context.Background())
		h.wg.Go(func() { s.lookOut(look) })
	}
	context.AfterFunc(ctx, func() { h.leave(watcher) })
	return watcher
}

func (h *hints) leave(watcher chan store.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watchers, watcher)
	close(watcher)
	if len(h.watchers) == 0 {
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

func (h *hints) tell(keys []store.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for watcher := range h.watchers {
		for _, key := range keys {
			offer(watcher, key)
		}
	}
}

// offer takes the last room of a watcher for the zero key. When there is no room at all, that one is still to be read, and says
// what is lost here.
func offer(watcher chan store.Key, key store.Key) {
	switch cap(watcher) - len(watcher) {
	case 0:
	case 1:
		watcher <- store.Key{}
	default:
		watcher <- key
	}
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
			s.hints.tell([]store.Key{{}})
			last = version
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
