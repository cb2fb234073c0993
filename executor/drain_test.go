package executor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store/memory"
)

// A process that is asked to end gives what it works on to another one at once, and not when its lease is over. Whoever waits for it there hears that it is
// under way; they were kept waiting until their connection was cut.
func TestStop_HandsOverWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := memory.NewRuns(nil)
		slow, w := &world{hold: make(chan struct{})}, new(world)
		leaving := newExecutor(t, runs, slow, func(c *executor.Config) { c.Lease = time.Hour })
		staying := newExecutor(t, runs, w, func(c *executor.Config) { c.Poll = time.Second })
		staying.Start()
		start(t, leaving, "demo-1")
		waited := make(chan error)
		begin := time.Now()
		request := answer("demo-1", "1", "approve")
		request.Wait = time.Hour
		go func() {
			_, err := leaving.Run(context.Background(), request)
			waited <- err
		}()
		synctest.Wait() // it publishes, and that takes for ever
		patience, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := leaving.Stop(patience); err != nil {
			t.Fatal(err)
		}
		if pending, ok := errors.AsType[*executor.PendingError](<-waited); !ok || pending.StateKey != "demo-1" || time.Since(begin) > 10*time.Second {
			t.Errorf("who waited heard %v after %v", pending, time.Since(begin))
		}
		completed(t, mustRun(t, staying, request))
		if took := time.Since(begin); w.published.Load() != 1 || slow.published.Load() != 0 || took > 15*time.Second {
			t.Errorf("published %d times there and %d here, after %v", w.published.Load(), slow.published.Load(), took)
		}
		if _, err := leaving.Run(t.Context(), answer("demo-1", "1", "approve")); err != executor.ErrClosed {
			t.Errorf("after its end: %v", err)
		}
	})
}
