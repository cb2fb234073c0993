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
