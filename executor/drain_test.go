package executor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store/memory"
)

// A process that is asked to end gives what it works on to another one at once, and not when its lease is over.
func TestStop_HandsOverWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := memory.NewRuns(nil)
		slow, w := &world{hold: make(chan struct{})}, new(world)
		leaving := newExecutor(t, runs, slow, func(c *executor.Config) { c.Lease = time.Hour })
		staying := newExecutor(t, runs, w, func(c *executor.Config) { c.Poll = time.Second })
		staying.Start()
		start(t, leaving, "demo-1")
		outcome := make(chan fermata.Outcome)
		begin := time.Now()
		go func() {
			request := answer("demo-1", "1", "approve")
			request.Wait = time.Hour
			o, err := leaving.Run(context.Background(), request)
			if err != nil {
				t.Error(err)
			}
			outcome <- o
		}()
		synctest.Wait() // it publishes, and that takes for ever
		patience, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := leaving.Stop(patience); err != nil {
			t.Fatal(err)
		}
		completed(t, <-outcome)
		if took := time.Since(begin); w.published.Load() != 1 || slow.published.Load() != 0 || took > 15*time.Second {
			t.Errorf("published %d times there and %d here, after %v", w.published.Load(), slow.published.Load(), took)
		}
		if _, err := leaving.Run(t.Context(), answer("demo-1", "1", "approve")); err != executor.ErrClosed {
			t.Errorf("after its end: %v", err)
		}
	})
}
