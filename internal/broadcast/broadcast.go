// Package broadcast sends values to any number of subscribers without waiting for them.
package broadcast

import (
	"context"
	"sync"
)

// backlog is the number of values that a subscriber may be behind before values are replaced by a
// zero value.
const backlog = 64

// Hub sends values to subscribers and never blocks. The zero K means that values were dropped, so
// anything may have changed. The zero Hub is ready to use.
type Hub[K any] struct {
	mu          sync.Mutex
	closed      bool
	subscribers map[chan K]struct{}
}

// Subscribe returns the values published until ctx ends or the Hub is closed; then the channel is
// closed.
func (h *Hub[K]) Subscribe(ctx context.Context) <-chan K {
	subscriber := make(chan K, backlog)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(subscriber)
		return subscriber
	}
	if h.subscribers == nil {
		h.subscribers = make(map[chan K]struct{})
	}
	h.subscribers[subscriber] = struct{}{}
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.end(subscriber)
	})
	return subscriber
}

// end removes a subscriber. The caller holds the lock.
func (h *Hub[K]) end(subscriber chan K) {
	if _, ok := h.subscribers[subscriber]; ok {
		delete(h.subscribers, subscriber)
		close(subscriber)
	}
}

// Publish sends values to all subscribers.
func (h *Hub[K]) Publish(values ...K) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for subscriber := range h.subscribers {
		for _, value := range values {
			send(subscriber, value)
		}
	}
}

// send uses the last free slot of a subscriber for the zero value. If there is no slot left, the
// zero value is still unread and also covers the value dropped here.
func send[K any](subscriber chan K, value K) {
	switch cap(subscriber) - len(subscriber) {
	case 0:
	case 1:
		var anything K
		subscriber <- anything
	default:
		subscriber <- value
	}
}

// Close ends all subscriptions. Later subscriptions end at once.
func (h *Hub[K]) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for subscriber := range h.subscribers {
		h.end(subscriber)
	}
}
