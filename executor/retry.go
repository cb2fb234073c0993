package executor

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fermata-go/fermata/store"
)

// maxStaleTries is how often a change is prepared anew because somebody else has changed the same papers meanwhile.
const maxStaleTries = 100

// retryWhileStale calls try until it returns something else than ErrStale, or was called too often. Each call has to read anew what it works on.
func retryWhileStale(ctx context.Context, try func() error) error {
	for n := 0; ; n++ {
		err := try()
		if !errors.Is(err, store.ErrStale) {
			return err
		}
		if err := backOff(ctx, n); err != nil {
			return err
		}
	}
}

// backOff waits before the next try, for a random time that grows with the number of tries so far. It returns ErrStale after too many of them.
func backOff(ctx context.Context, tries int) error {
	if tries >= maxStaleTries {
		return store.ErrStale
	}
	timer := time.NewTimer(rand.N(time.Millisecond << min(tries, 6)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// keyedQueue are those in this process who want to change the same, by its name. Whoever has lost a race for it waits for the others, one after the other: if all of
// them tried again at random times, each would lose to nearly all others.
type keyedQueue struct {
	mu     sync.Mutex
	queues map[string]*queue
}

type queue struct {
	token   chan struct{} // holds one value while it is somebody's turn
	waiting int           // how many wait in it, or have their turn
}

// retryWhileStale is the function of that name for what others here try to change, too.
func (t *keyedQueue) whileStale(ctx context.Context, name string, try func() error) error {
	if err := try(); !errors.Is(err, store.ErrStale) {
		return err
	}
	l := t.enter(name)
	defer t.leave(name, l)
	select {
	case l.token <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.token }()
	return retryWhileStale(ctx, try)
}

func (t *keyedQueue) enter(name string) *queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.queues[name]
	if l == nil {
		if t.queues == nil {
			t.queues = make(map[string]*queue)
		}
		l = &queue{token: make(chan struct{}, 1)}
		t.queues[name] = l
	}
	l.waiting++
	return l
}

func (t *keyedQueue) leave(name string, l *queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.waiting--; l.waiting == 0 {
		delete(t.queues, name)
	}
}

// minStoreBackoff and maxStoreBackoff are how long to wait before a store that has failed is tried again. Once it is back, others look for runs that nobody owns any more
// about once a second: who still has something to say has to come before them.
const (
	minStoreBackoff = 10 * time.Millisecond
	maxStoreBackoff = 250 * time.Millisecond
)

// pauses waits for a store that has failed, and reports whether there is still time to try it again. A stop that waits no longer ends it.
func (e *Executor) waitForStore(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-e.ctx.Done():
	}
	return false
}
