package executor_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/timespan"
)

// card is the copy of a request in a channel. It is rendered from the request, as documented.
type card struct {
	mu    sync.Mutex
	shows desk.State
	slow  desk.NoticeKind // the first notice of this kind is slow
	nap   time.Duration   // duration of the slow delivery
	lost  error           // error of the slow delivery, though it has rendered
	slept atomic.Bool
	read  func(id string) desk.State
}

func (c *card) notify(_ context.Context, _ string, n desk.Notice) error {
	if n.Kind != desk.NoticeNotify && n.Kind != desk.NoticeRemind && n.Kind != desk.NoticeRerender {
		return nil
	}
	state := c.read(n.Request)
	var err error
	if n.Kind == c.slow && c.slept.CompareAndSwap(false, true) {
		time.Sleep(c.nap)
		err = c.lost
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shows == "" && n.Kind == desk.NoticeRerender {
		return nil // nothing was posted yet
	}
	c.shows = state
	return err
}

// A channel may be slow: a rendering from before the end may arrive after the rendering of the end.
// A process may be slow, too: it resumes a delivery after another process has taken it for dead and
// delivered instead.
func TestOutbox_CardShowsTheFinalState(t *testing.T) {
	for _, c := range []*card{
		{}, {slow: desk.NoticeNotify, nap: 10 * time.Second}, {slow: desk.NoticeNotify, nap: 10 * time.Second, lost: errReset},
		{slow: desk.NoticeRemind, nap: 10 * time.Second}, {slow: desk.NoticeRerender, nap: 10 * time.Second},
		// longer than the claim of the notice
		{slow: desk.NoticeNotify, nap: 3 * time.Minute}, {slow: desk.NoticeRerender, nap: 3 * time.Minute},
	} {
		t.Run(fmt.Sprintf("%s takes %s, %v", c.slow, c.nap, c.lost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory.NewStore(nil)
				ch := new(fakeChannel)
				change := func(config *executor.Config) {
					ch.on(inboxAndChat, desk.Step{At: timespan.Duration(time.Second), Remind: []string{"inbox"}})(config)
					config.Desk.Channels, config.Log, config.Poll = []channel.Channel{channel.Notify(c.notify)}, slog.New(slog.DiscardHandler), time.Second
				}
				e := new(dropper).executor(t, s, change)
				c.read = func(id string) desk.State {
					doc, err := e.RequestDocument(t.Context(), "acme", id)
					if err != nil {
						t.Error(err)
					}
					return doc.State
				}
				id := startDrop(t, e).Interrupts[0].ID
				e.StartWorkers()
				time.Sleep(3 * time.Second)
				acts(t, e, id, desk.Claim{From: by("ann")})
				time.Sleep(3 * time.Second)
				other := new(dropper).executor(t, s, change)
				other.StartWorkers()
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

// blink is a store that fails to read a request once.
type blink struct {
	store.Store
	soon atomic.Bool
	done atomic.Bool
}

func (b *blink) Document(ctx context.Context, account string, kind store.DocumentKind, id string) (store.Document, error) {
	if kind == store.RequestDocument && b.soon.CompareAndSwap(true, false) {
		b.done.Store(true)
		return store.Document{}, errReset
	}
	return b.Store.Document(ctx, account, kind, id)
}

// slowOnce renders a request that changes during the delivery, and returns all of its notices.
// woken is called after the rendering.
func slowOnce(t *testing.T, s store.Store, woken func()) []desk.Notice {
	var slept atomic.Bool
	ch := &fakeChannel{fail: func(n desk.Notice) error {
		if n.Kind == desk.NoticeRerender && slept.CompareAndSwap(false, true) {
			time.Sleep(10 * time.Second)
			woken()
		}
		return nil
	}}
	e := new(dropper).executor(t, s, func(c *executor.Config) { ch.on(inboxAndChat)(c); c.Poll = time.Second })
	id := startDrop(t, e).Interrupts[0].ID
	e.StartWorkers()
	time.Sleep(3 * time.Second)
	acts(t, e, id, desk.Claim{From: by("ann")})
	time.Sleep(3 * time.Second)
	acts(t, e, id, desk.Release{From: by("ann")})
	time.Sleep(10 * time.Minute)
	return ch.of(desk.NoticeRerender)
}

// The store is unavailable for a moment, so it is unknown whether a request has changed since it
// was rendered. It is not taken for unchanged.
func TestOutbox_PossiblyOutdatedCardIsRerendered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &blink{Store: memory.NewStore(nil)}
		if drawn := slowOnce(t, s, func() { s.soon.Store(true) }); !s.done.Load() || len(drawn) < 3 {
			t.Errorf("no rerender after the late delivery: %+v", drawn)
		}
	})
}

// Regression: each delivery that was in flight when its request changed was followed by another
// one. A request that changes faster than a channel renders took all delivery slots, and other
// accounts got no notices.
func TestOutbox_RequestThatAlwaysChangesLeavesSlotsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var drawing, most atomic.Int64
		ch := &fakeChannel{fail: func(desk.Notice) error {
			most.Store(max(most.Load(), drawing.Add(1)))
			time.Sleep(10 * time.Second)
			drawing.Add(-1)
			return nil
		}}
		e := new(dropper).executor(t, memory.NewStore(nil), func(c *executor.Config) { ch.on(inboxAndChat)(c); c.Poll = time.Second })
		id := startDrop(t, e).Interrupts[0].ID
		e.StartWorkers()
		for range 60 {
			time.Sleep(time.Second)
			acts(t, e, id, desk.Claim{From: by("ann")})
			time.Sleep(time.Second)
			acts(t, e, id, desk.Release{From: by("ann")})
		}
		time.Sleep(10 * time.Minute)
		// one for each change, and one for each change during a delivery
		if drawn := len(ch.of(desk.NoticeRerender)); drawn > 2*120 || most.Load() > 30 {
			t.Errorf("120 changes were rendered %d times, %d at once", drawn, most.Load())
		}
	})
}
