package memory

import (
	"context"
	"sync"

	"github.com/fermata-go/fermata/store"
)

// hints tells watchers that something happened. It never waits for one.
type hints struct {
	mu       sync.Mutex
	watchers map[chan store.Key]struct{}
}

// backlog is how many hints a watcher may be behind before it only learns that there were more.
const backlog = 64

func (h *hints) watch(ctx context.Context) <-chan store.Key {
	watcher := make(chan store.Key, backlog)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers == nil {
		h.watchers = make(map[chan store.Key]struct{})
	}
	h.watchers[watcher] = struct{}{}
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers, watcher)
		close(watcher)
	})
	return watcher
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
