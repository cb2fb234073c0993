package executor_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store/memory"
)

// card is the copy of a request in a channel. It is drawn from the row, as the docs want it.
type card struct {
	mu    sync.Mutex
	shows desk.State
	slow  desk.NoticeKind // of which the first is slow
	slept atomic.Bool
	read  func(id string) desk.State
}

func (c *card) notify(_ context.Context, _ string, n desk.Notice) error {
	if n.Kind != desk.Notify && n.Kind != desk.Rerender {
		return nil
	}
	state := c.read(n.Request)
	if n.Kind == c.slow {
		if c.slept.CompareAndSwap(false, true) {
			time.Sleep(10 * time.Second)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shows == "" && n.Kind == desk.Rerender {
		return nil // nothing was posted yet
	}
	c.shows = state
	return nil
}

// A channel may be slow: what it drew of a request before it ended comes after what it drew of the end.
func TestOutbox_ACardShowsTheEnd(t *testing.T) {
	for _, slow := range []desk.NoticeKind{"", desk.Notify, desk.Rerender} {
		t.Run("slow is "+string(slow), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory.NewRuns(nil)
				c := &card{slow: slow}
				ch := new(channel)
				change := func(config *executor.Config) {
					ch.on(inboxAndChat)(config)
					config.Desk.Notify, config.Log, config.Poll = c.notify, slog.New(slog.DiscardHandler), time.Second
				}
				e := new(dropper).executor(t, s, change)
				c.read = func(id string) desk.State {
					doc, err := e.Request(t.Context(), "acme", id)
					if err != nil {
						t.Error(err)
					}
					return doc.State
				}
				id := startDrop(t, e).Interrupts[0].ID
				e.Start()
				time.Sleep(3 * time.Second)
				acts(t, e, id, desk.Claim{From: by("ann")})
				time.Sleep(3 * time.Second)
				other := new(dropper).executor(t, s, change)
				other.Start()
				completed(t, mustRun(t, other, addressed(t, other, decision("1", "approve"))))
				time.Sleep(10 * time.Minute)
				c.mu.Lock()
				defer c.mu.Unlock()
				if want := c.read(id); c.shows != want {
					t.Errorf("ten minutes later the card shows %q; the request is %q", c.shows, want)
				}
			})
		})
	}
}
