package ops

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The readiness endpoint is public and never rejects. Each call used to be three database queries.
func TestReadyz_FloodCausesOneStoreCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, broken := 0, error(nil)
		r := newReadiness(func(ctx context.Context) error {
			asked++
			time.Sleep(time.Second)
			return errors.Join(broken, ctx.Err())
		})
		gone, leave := context.WithCancel(t.Context())
		first := make(chan error)
		go func() { first <- r.ready(gone) }()
		synctest.Wait()
		leave() // the first caller disconnects
		flood := func(want error) {
			t.Helper()
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					if err := r.ready(t.Context()); !errors.Is(err, want) {
						t.Errorf("%v, want %v", err, want)
					}
				})
			}
			all.Wait()
		}
		flood(nil)
		flood(<-first)
		if asked != 1 {
			t.Errorf("200 at once are %d checks", asked)
		}
		time.Sleep(readyTTL)
		broken = errors.New("the store is gone")
		flood(broken)
		if asked != 2 {
			t.Errorf("later there were %d", asked)
		}
	})
}
