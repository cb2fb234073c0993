package executor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// A disk that is full often has the log on it, too. Each second each request that was due, and each notice, had a line of its own in it, which said nothing new.
func TestLog_AFullStoreIsNotToldOncePerRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log syncBuffer
		var told atomic.Int64
		s := &full{Store: memory.NewStore(nil)}
		e := new(dropper).executor(t, s, func(c *executor.Config) {
			c.Poll, c.Log = 10*time.Second, slog.New(slog.NewTextHandler(&log, nil))
			c.Desk.Notify = func(context.Context, string, desk.Notice) error { told.Add(1); return nil }
		})
		for n := range 50 {
			waits(t, began(t, e, fmt.Sprint("drop-", n), "inproc:drop", `{"table":"users"}`))
		}
		s.on.Store(true)
		time.Sleep(31 * time.Minute) // there is something to say of each, and each is to be reminded of
		e.StartWorkers()
		time.Sleep(100 * time.Second)
		synctest.Wait()
		text := log.String()
		if lines := strings.Count(text, "\n"); !strings.Contains(text, "the disk is full") || lines > 100 || len(text) > 20_000 {
			t.Errorf("in ten looks the log got %d lines, %d bytes, as\n%.1500s", lines, len(text), text)
		}
		s.on.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := told.Load(); n < 50 {
			t.Errorf("%d notices were sent when there was room again, want one for each request at least", n)
		}
	})
}

// What the rules allow is charged, and that could not be written. It was tried again each second, so that a database that was full for half a minute left runs
// parked, each of which somebody had to let go on.
func TestRules_AStoreThatIsFullForAWhileParksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paid atomic.Int64
		s := &full{Store: memory.NewStore(nil)}
		e := executorOf(t, s, payer(t, &paid, "pay"), func(c *executor.Config) {
			c.Poll, c.Log, c.Desk.Policy = time.Second, slog.New(slog.DiscardHandler), loadRules(t, allowing)
		})
		e.StartWorkers()
		s.on.Store(true)
		start := executor.RunRequest{Account: "acme", StateKey: "p-1", Graph: "inproc:pay", Input: []byte(`{"cents":600}`), Actor: "req", Wait: -1}
		if _, err := e.Run(t.Context(), start); !errors.Is(err, executor.ErrPending) {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Minute)
		s.on.Store(false)
		time.Sleep(15 * time.Minute)
		synctest.Wait()
		if run, err := s.Get(t.Context(), "acme", "p-1"); err != nil || run.Status != store.StatusCompleted || paid.Load() != 600 {
			t.Errorf("it is %s after %d attempts, paid %d, %v", run.Status, run.Attempts, paid.Load(), err)
		}
	})
}

// allowing rules let everything be done, and count it.
const allowing = `
default: allow
rules:
- id: much
  when: req.tool == "pay"
  limit: {amount: args.cents, max: 100000, window: 24h}
  then: deny
`
