// Package hint tells those who watch that something has happened.
package broadcast

import (
	"context"
	"sync"
)

// backlog is how many hints a watcher may be behind before it only learns that there were more.
const backlog = 64

// Hub has watchers, and never waits for one. The zero K is the hint that it may have been anything. The zero Board is ready for use.
type Hub[K any] struct {
	mu          sync.Mutex
	closed      bool
	subscribers map[chan K]struct{}
}

// Watch returns the hints that are given until ctx ends, or the Board is closed; then the channel is closed.
func (b *Hub[K]) Subscribe(ctx context.Context) <-chan K {
	watcher := make(chan K, backlog)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		close(watcher)
		return watcher
	}
	if b.subscribers == nil {
		b.subscribers = make(map[chan K]struct{})
	}
	b.subscribers[watcher] = struct{}{}
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.end(watcher)
	})
	return watcher
}

// end is called with the lock held.
func (b *Hub[K]) end(watcher chan K) {
	if _, there := b.subscribers[watcher]; there {
		delete(b.subscribers, watcher)
		close(watcher)
	}
}

// Tell gives hints to all watchers.
func (b *Hub[K]) Publish(hints ...K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for watcher := range b.subscribers {
		for _, hint := range hints {
			send(watcher, hint)
		}
	}
}

// send takes the last room of a watcher for the zero hint. When there is no room at all, that one is still to be read, and says what is lost here.
func send[K any](watcher chan K, hint K) {
	switch cap(watcher) - len(watcher) {
	case 0:
	case 1:
		var anything K
		watcher <- anything
	default:
		watcher <- hint
	}
}

// Close ends all watches, and those to come.
func (b *Hub[K]) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for watcher := range b.subscribers {
		b.end(watcher)
	}
}
