package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/server"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// countingStore counts how often somebody counts what is open.
type countingStore struct {
	store.Store
	counts atomic.Int64
}

func (c *countingStore) CountPending(ctx context.Context, account string, limit int) (int, error) {
	c.counts.Add(1)
	return c.Store.CountPending(ctx, account, limit)
}

func startOf(n int) string { return strings.Replace(startDemo, "demo-1", fmt.Sprint("demo-", n), 1) }

// Where there is room for many, a start does not count everything that its account has.
func TestQuota_IsNotCountedForEachStart(t *testing.T) {
	s := &countingStore{Store: memory.NewStore(nil)}
	site := openWith(t, nil, func(c *executor.Config) { c.Store = s })
	const starts = 50
	for n := range starts {
		if got := site.chat("agent@acme", startOf(n)); got.status != 200 {
			t.Fatalf("%+v", got)
		}
	}
	if looks := s.counts.Load(); looks < 1 || looks > starts/2 {
		t.Errorf("%d looks for %d starts", looks, starts)
	}
}

// Whoever starts one run after the other gets as many as are allowed, and none more. Accounts have nothing to do with each other.
func TestQuota_LimitIsExact(t *testing.T) {
	const limit = 20
	s := open(t, func(c *server.Config) { c.Limits.OpenRequests = limit })
	for n := range limit {
		if got := s.chat("agent@acme", startOf(n)); got.status != 200 {
			t.Fatalf("%d of %d: %+v", n+1, limit, got)
		}
	}
	for range 3 {
		if got := s.chat("agent@acme", startOf(limit)); got.status != 429 || got.field("code") != "too_many_open" {
			t.Errorf("one more: %+v", got)
		}
	}
	if got := s.chat("agent@other", startOf(limit)); got.status != 200 {
		t.Errorf("another account: %+v", got)
	}
}

// A store lists a thousand runs at once. A limit beyond that is one nevertheless.
func TestQuota_ActiveRunsBeyondOnePage(t *testing.T) {
	const limit = 1100
	s, release := openHeldWith(t, func(c *server.Config) { c.Limits.ActiveRuns = limit })
	defer release()
	start := func(n int) answer {
		return s.chat("agent@acme", strings.Replace(startHeld, "held/1", fmt.Sprint("held/", n), 1), "Prefer", "respond-async")
	}
	for n := range limit {
		if got := start(n); got.status != 202 {
			t.Fatalf("%d of %d: %+v", n+1, limit, got)
		}
	}
	if got := start(limit); got.status != 429 || got.field("code") != "too_many_runs" {
		t.Errorf("one more: %+v", got)
	}
}

// slowStore lets nobody count what is open before everybody has come, and counts how many do that at once.
type slowStore struct {
	store.Store
	arrived chan struct{}
	counts  atomic.Int64
}

func (s *slowStore) CountPending(ctx context.Context, account string, limit int) (int, error) {
	if account != "" { // else it is only looked whether the store answers, as for a gate whose work takes long
		s.counts.Add(1)
		<-s.arrived
	}
	return s.Store.CountPending(ctx, account, limit)
}

// Starts that come at once are not each counted for: the count would be dearest when there is least time. An account that is full is told so at the price of one, too.
func TestQuota_ConcurrentStartsShareOneCount(t *testing.T) {
	for name, full := range map[string]bool{"room": false, "full": true} {
		t.Run(name, func(t *testing.T) {
			const starts = 20
			s := &slowStore{Store: memory.NewStore(nil), arrived: make(chan struct{})}
			site := openWith(t, func(c *server.Config) {
				c.Limits.Concurrency = starts
				if full {
					c.Limits.OpenRequests = 1
				}
			}, func(c *executor.Config) { c.Store = s })
			want := 200
			if full {
				want = 429
				go func() { s.arrived <- struct{}{} }()
				if got := site.chat("agent@acme", startOf(starts)); got.status != 200 {
					t.Fatalf("%+v", got)
				}
				s.counts.Store(0)
			}
			answers := make(chan answer, starts)
			for n := range starts {
				go func() { answers <- site.chat("agent@acme", startOf(n)) }()
			}
			site.until("everybody waits for the look", func() bool { return site.server.CountedQuota("acme") == starts-1 })
			close(s.arrived)
			for range starts {
				if got := <-answers; got.status != want {
					t.Errorf("%+v", got)
				}
			}
			if looks := s.counts.Load(); looks < 1 || looks > 2 { // principalOf is held up for more than a second looks again
				t.Errorf("%d looks for %d starts at once", looks, starts)
			}
		})
	}
}

// panickyStore panics when what is open is counted for the first time.
type panickyStore struct {
	store.Store
	counted atomic.Bool
}

func (s *panickyStore) CountPending(ctx context.Context, account string, limit int) (int, error) {
	if s.counted.CompareAndSwap(false, true) {
		panic("boom")
	}
	return s.Store.CountPending(ctx, account, limit)
}

// A look that panicked was never over: whoever started a run after it waited for it until they hung up.
func TestQuota_PanickingCountReleasesWaiters(t *testing.T) {
	site := openWith(t, nil, func(c *executor.Config) { c.Store = &panickyStore{Store: memory.NewStore(nil)} })
	if got := site.chat("agent@acme", startOf(1)); got.status != 500 {
		t.Fatalf("%+v", got)
	}
	next := make(chan answer, 1)
	go func() { next <- site.chat("agent@acme", startOf(2)) }()
	select {
	case got := <-next:
		if got.status != 200 {
			t.Errorf("%+v", got)
		}
	case <-time.After(time.Minute):
		t.Fatal("the next start waits for a look that is over")
	}
}
