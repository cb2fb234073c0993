package executor

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fermata-go/fermata/store"
)

// maxTries is how often a change is prepared anew because somebody else has changed the same papers meanwhile.
const maxTries = 100

// whileStale calls try until it returns something else than ErrStale, or was called too often. Each call has to read anew what it works on.
func whileStale(ctx context.Context, try func() error) error {
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
	if tries >= maxTries {
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

// turns are those in this process who want to change the same, by its name. Whoever has lost a race for it waits for the others, one after the other: if all of
// them tried again at random times, each would lose to nearly all others.
type turns struct {
	mu    sync.Mutex
	lines map[string]*line
}

type line struct {
	turn chan struct{} // holds one value while it is somebody's turn
	in   int           // how many wait in it, or have their turn
}

// whileStale is the function of that name for what others here try to change, too.
func (t *turns) whileStale(ctx context.Context, name string, try func() error) error {
	if err := try(); !errors.Is(err, store.ErrStale) {
		return err
	}
	l := t.join(name)
	defer t.leave(name, l)
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.turn }()
	return whileStale(ctx, try)
}

func (t *turns) join(name string) *line {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[name]
	if l == nil {
		if t.lines == nil {
			t.lines = make(map[string]*line)
		}
		l = &line{turn: make(chan struct{}, 1)}
		t.lines[name] = l
	}
	l.in++
	return l
}

func (t *turns) leave(name string, l *line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.in--; l.in == 0 {
		delete(t.lines, name)
	}
}

// minPause and maxPause are how long to wait before a store that has failed is tried again. Once it is back, others look for runs that nobody owns any more
// about once a second: who still has something to say has to come before them.
const (
	minPause = 10 * time.Millisecond
	maxPause = 250 * time.Millisecond
)

// pauses waits for a store that has failed, and reports whether there is still time to try it again. A stop that waits no longer ends it.
func (e *Executor) pauses(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-e.life.Done():
	}
	return false
}
