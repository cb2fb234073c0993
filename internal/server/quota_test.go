package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// countingStore counts the quota counts.
type countingStore struct {
	store.Store
	counts atomic.Int64
}

func (c *countingStore) CountPending(ctx context.Context, account string, without []string, limit int) (int, error) {
	c.counts.Add(1)
	return c.Store.CountPending(ctx, account, without, limit)
}

func startOf(n int) string { return strings.Replace(startDemo, "demo-1", fmt.Sprint("demo-", n), 1) }

// Far from the limit, a start does not count all requests of its account.
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
		t.Errorf("%d counts for %d starts", looks, starts)
	}
}

// Sequential starts get exactly as many runs as allowed. Accounts are independent.
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

// A store lists at most a thousand runs at once. A higher limit still applies.
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

// slowStore blocks counts until all callers have arrived, and counts how many run at once.
type slowStore struct {
	store.Store
	arrived chan struct{}
	counts  atomic.Int64
}

func (s *slowStore) CountPending(ctx context.Context, account string, without []string, limit int) (int, error) {
	if account != "" { // otherwise it is a store probe of the scheduler
		s.counts.Add(1)
		<-s.arrived
	}
	return s.Store.CountPending(ctx, account, without, limit)
}

// Concurrent starts share one count, which is most expensive under load. An account at its limit is
// rejected at the cost of one count, too.
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
			site.until("all wait for the count", func() bool { return site.server.CountedQuota("acme") == starts-1 })
			close(s.arrived)
			for range starts {
				if got := <-answers; got.status != want {
					t.Errorf("%+v", got)
				}
			}
			// after more than a second it counts again
			if looks := s.counts.Load(); looks < 1 || looks > 2 {
				t.Errorf("%d counts for %d concurrent starts", looks, starts)
			}
		})
	}
}

// panickyStore panics during the first count.
type panickyStore struct {
	store.Store
	counted atomic.Bool
}

func (s *panickyStore) CountPending(ctx context.Context, account string, without []string, limit int) (int, error) {
	if s.counted.CompareAndSwap(false, true) {
		panic("boom")
	}
	return s.Store.CountPending(ctx, account, without, limit)
}

// A count that panicked used to block all later starts of the account.
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
		t.Fatal("the next start waits for a finished count")
	}
}
