// Package retry repeats transactions that lost a race, and says how long to wait before the next
// attempt.
package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// MaxTries is how often a change is prepared again because another process has changed the same
// documents in the meantime.
const MaxTries = 100

// WhileStale calls try until it returns another error than ErrStale, or was called too often. Each
// call has to read its data again.
func WhileStale(ctx context.Context, try func() error) error {
	for n := 0; ; n++ {
		err := try()
		if !errors.Is(err, store.ErrStale) {
			return err
		}
		if err := BackOff(ctx, n); err != nil {
			return err
		}
	}
}

// BackOff waits before the next try, for a random time that grows with the number of tries. It
// returns ErrStale after too many of them.
func BackOff(ctx context.Context, tries int) error {
	if tries >= MaxTries {
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

// Queue serialises changes of the same name in this process after the first conflict. Random
// retries of many writers would let each lose to nearly all others.
type Queue struct {
	mu     sync.Mutex
	queues map[string]*line
}

type line struct {
	token   chan struct{} // holds one value while a try is in progress
	waiting int           // how many wait in it, or have their turn
}

// WhileStale is the function of that name for what others here try to change, too.
func (t *Queue) WhileStale(ctx context.Context, name string, try func() error) error {
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
	return WhileStale(ctx, try)
}

func (t *Queue) enter(name string) *line {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.queues[name]
	if l == nil {
		if t.queues == nil {
			t.queues = make(map[string]*line)
		}
		l = &line{token: make(chan struct{}, 1)}
		t.queues[name] = l
	}
	l.waiting++
	return l
}

func (t *Queue) leave(name string, l *line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.waiting--; l.waiting == 0 {
		delete(t.queues, name)
	}
}

// DelayAfter returns how long a run waits after so many attempts.
func DelayAfter(attempts int) time.Duration {
	return min(time.Second<<min(attempts, 10), 5*time.Minute)
}
