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

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// A full disk often holds the log, too. Regression: each second each due request and each notice
// had its own line in it.
func TestLog_FullStoreIsNotLoggedPerRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log syncBuffer
		var told atomic.Int64
		s := &full{Store: memory.NewStore(nil)}
		e := new(dropper).executor(t, s, func(c *executor.Config) {
			c.Poll, c.Log = 10*time.Second, slog.New(slog.NewTextHandler(&log, nil))
			c.Desk.Channels = []channel.Channel{channel.Notify(func(context.Context, string, desk.Notice) error { told.Add(1); return nil })}
		})
		for n := range 50 {
			waits(t, began(t, e, fmt.Sprint("drop-", n), "inproc:drop", `{"table":"users"}`))
		}
		s.on.Store(true)
		time.Sleep(31 * time.Minute) // each request is due, and each has a reminder
		e.StartWorkers()
		time.Sleep(100 * time.Second)
		synctest.Wait()
		text := log.String()
		if lines := strings.Count(text, "\n"); !strings.Contains(text, "the disk is full") || lines > 100 || len(text) > 20_000 {
			t.Errorf("in ten polls the log got %d lines, %d bytes:\n%.1500s", lines, len(text), text)
		}
		s.on.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := told.Load(); n < 50 {
			t.Errorf("%d notices were sent when there was room again, want at least one for each request", n)
		}
	})
}

// Regression: an action that the rules allow is charged, and this could not be written. It was
// retried each second, so a database that was full for half a minute left parked runs that an
// operator had to retry.
func TestRules_StoreThatIsFullForAWhileParksNothing(t *testing.T) {
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
			t.Errorf("the run is %s after %d attempts, paid %d, %v", run.Status, run.Attempts, paid.Load(), err)
		}
	})
}

// allowing are rules that allow and count everything.
const allowing = `
default: allow
rules:
- id: much
  when: req.tool == "pay"
  limit: {amount: args.cents, max: 100000, window: 24h}
  then: deny
`
