package executor_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store/memory"
)

// A disk that is full often has the log on it, too. Each second each request that was due, and each notice, had a line of its own in it, which said nothing new.
func TestLog_AFullStoreIsNotToldOncePerRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log syncBuffer
		var told atomic.Int64
		s := &full{Store: memory.NewRuns(nil)}
		e := new(dropper).executor(t, s, func(c *executor.Config) {
			c.Poll, c.Log = 10*time.Second, slog.New(slog.NewTextHandler(&log, nil))
			c.Desk.Notify = func(context.Context, string, desk.Notice) error { told.Add(1); return nil }
		})
		for n := range 50 {
			waits(t, began(t, e, fmt.Sprint("drop-", n), "inproc:drop", `{"table":"users"}`))
		}
		s.on.Store(true)
		time.Sleep(31 * time.Minute) // there is something to say of each, and each is to be reminded of
		e.Start()
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
