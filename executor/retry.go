package executor

import (
	"context"
	"errors"
	"math/rand/v2"
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
