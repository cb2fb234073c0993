package executor_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// card is the copy of a request in a channel. It is drawn from the row, as the docs want it.
type card struct {
	mu    sync.Mutex
	shows desk.State
	slow  desk.NoticeKind // of which the first is slow
	nap   time.Duration   // for so long
	lost  error           // what it says then, though it has drawn it
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
		return nil // emptyIndex was posted yet
	}
	c.shows = state
	return err
}

// A channel may be slow: what it drew of a request before it ended comes after what it drew of the end. So may a process be: it wakes up with a copy in its hands when
// another one has given it up for dead, and told what it had to tell.
func TestOutbox_ACardShowsTheEnd(t *testing.T) {
	for _, c := range []*card{
		{}, {slow: desk.NoticeNotify, nap: 10 * time.Second}, {slow: desk.NoticeNotify, nap: 10 * time.Second, lost: errReset},
		{slow: desk.NoticeRemind, nap: 10 * time.Second}, {slow: desk.NoticeRerender, nap: 10 * time.Second},
		{slow: desk.NoticeNotify, nap: 3 * time.Minute}, {slow: desk.NoticeRerender, nap: 3 * time.Minute}, // longer than the notice is left to it
	} {
		t.Run(fmt.Sprintf("%s takes %s, %v", c.slow, c.nap, c.lost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory.NewStore(nil)
				ch := new(channel)
				change := func(config *executor.Config) {
					ch.on(inboxAndChat, desk.Step{At: desk.Duration(time.Second), Remind: []string{"inbox"}})(config)
					config.Desk.Notify, config.Log, config.Poll = c.notify, slog.New(slog.DiscardHandler), time.Second
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

// blink is a store that cannot read a request once, soon.
type blink struct {
	store.Store
	soon  atomic.Bool
	again bool // as soon as a copy is claimed that is drawn again
	done  atomic.Bool
}

func (b *blink) CommitWrites(ctx context.Context, account string, beside store.Writes) error {
	err := b.Store.CommitWrites(ctx, account, beside)
	if p := beside.Documents; b.again && err == nil && len(p) == 1 && p[0].BaseRevision == 1 && strings.Contains(p[0].ID, "/again") {
		b.soon.Store(!b.done.Load())
	}
	return err
}

func (b *blink) Document(ctx context.Context, account string, kind store.DocumentKind, id string) (store.Document, error) {
	if kind == store.RequestDocument && b.soon.CompareAndSwap(true, false) {
		b.done.Store(true)
		return store.Document{}, errReset
	}
	return b.Store.Document(ctx, account, kind, id)
}

// slowOnce has a request drawn that changes meanwhile, and returns all notices of that. woken is called when it was drawn.
func slowOnce(t *testing.T, s store.Store, woken func()) []desk.Notice {
	var slept atomic.Bool
	ch := &channel{fail: func(n desk.Notice) error {
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

// Nobody knows what was drawn if the request could not be read before. It is drawn once more, under another key than that of the notice in hand: or nothing of it could be
// noted, and the notice would be sent again.
func TestOutbox_WhatIsDrawnAgainWithoutALookIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &blink{Store: memory.NewStore(nil), again: true}
		drawn := slowOnce(t, s, func() {})
		if !s.done.Load() {
			t.Fatal("nothing was drawn again")
		}
		for _, n := range drawn {
			if what := became(t, s, n.Key); what.Tries != 1 || what.Result != "told" {
				t.Errorf("%s: %+v", n.Key, what)
			}
		}
	})
}

// Whether a request has changed since it was drawn cannot be found out, as the store is away for a moment. It is not taken for one that has not.
func TestOutbox_WhatMayHaveBeenDrawnLateIsDrawnAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &blink{Store: memory.NewStore(nil)}
		if drawn := slowOnce(t, s, func() { s.soon.Store(true) }); !s.done.Load() || len(drawn) < 3 {
			t.Errorf("nothing was drawn after what came late: %+v", drawn)
		}
	})
}

// Each copy that was under way when its request changed was followed by one of its own, and that by another if it changed again. A request that changes faster than a
// channel can draw had all places in the end, and people of other accounts were told nothing.
func TestOutbox_ARequestThatAlwaysChangesLeavesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var drawing, most atomic.Int64
		ch := &channel{fail: func(desk.Notice) error {
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
		if drawn := len(ch.of(desk.NoticeRerender)); drawn > 2*120 || most.Load() > 30 { // one for each change, and one for each that came meanwhile
			t.Errorf("120 changes were drawn %d times, %d at once", drawn, most.Load())
		}
	})
}
