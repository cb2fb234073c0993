package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/fermata-go/fermata/internal/redistest"
	"github.com/fermata-go/fermata/internal/store"
)

// waitTimeout is how long a test waits for something fast on an overloaded machine.
const waitTimeout = time.Minute

// withManualClock returns a Store whose breaker uses a clock of the test.
func withManualClock(t *testing.T, inner store.Store, client goredis.UniversalClient, config Config) (*Store, func(time.Duration)) {
	s, now := mustNew(t, inner, client, config), time.Now()
	s.checkpoints.cache.now = func() time.Time { return now }
	return s, func(by time.Duration) { now = now.Add(by) }
}

func TestKill_CallsSucceedAndBreakerOpens(t *testing.T) {
	server, inner := redistest.Start(t), newBaseStore()
	config := longTimeout
	config.Pause = time.Hour
	var errs []error // a missing Redis was not reported
	config.OnStateChange = func(err error) { errs = append(errs, err) }
	s, pass := withManualClock(t, inner, mustClient(t, server.URL()), config)
	mustSave(t, s, demo, 0, parts{"a": "0"}.delta())
	server.Kill(t)
	for base := int64(1); base <= 20; base++ {
		mustSave(t, s, demo, base, parts{"a": fmt.Sprint(base)}.delta())
		wantStored(t, s, demo, parts{"a": fmt.Sprint(base)}.at(base+1))
	}
	if stats := s.Stats(); stats.Errors != maxFailures || stats.Skipped != 40-maxFailures || !stats.Unavailable {
		t.Errorf("stats %+v; want %d errors and no later calls", stats, maxFailures)
	}
	if indexes := inner.digestCalls.Load(); indexes > maxFailures {
		t.Errorf("%d unnecessary Digests calls without Redis", indexes)
	}
	if err := s.Delete(t.Context(), store.Key{Run: "unknown"}); err != nil {
		t.Errorf("Delete without Redis: %v", err)
	}

	pass(time.Hour)
	wantStored(t, s, demo, parts{"a": "20"}.at(21)) // probes and fails
	if stats := s.Stats(); stats.Errors != maxFailures+1 || !stats.Unavailable {
		t.Errorf("after the pause: %+v; want one more probe", stats)
	}
	if len(errs) != 1 || errs[0] == nil {
		t.Errorf("reported %v; want one reason", errs)
	}
	server.Restart(t)
	pass(time.Hour)
	wantStored(t, s, demo, parts{"a": "20"}.at(21)) // probes and writes the parts back
	wantFromRedis(t, s, demo, parts{"a": "20"}.at(21))
	if len(errs) != 2 || errs[1] != nil {
		t.Errorf("reported %v; want one recovery", errs)
	}
}

// An error of Redis may repeat what it was sent.
func TestI7_ReportedErrorsDoNotContainSentData(t *testing.T) {
	for answer, want := range map[string]string{
		"-NOPERM this user may not HSET CANARY\r\n": "it says NOPERM",
		"$CANARY\r\n": "malformed reply",
	} {
		var errs []error
		config := longTimeout
		config.OnStateChange = func(err error) { errs = append(errs, err) }
		s := mustNew(t, newBaseStore(), mustClient(t, malformedServer(t, answer)), config)
		for base := range int64(maxFailures) {
			mustSave(t, s, demo, base, parts{"a": "b"}.delta())
		}
		if len(errs) != 1 || errs[0].Error() != want {
			t.Errorf("%q: errs %v, want %s", answer, errs, want)
		}
	}
}

// dialCounter counts connection attempts of a client.
type dialCounter struct{ count atomic.Int64 }

func (d *dialCounter) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		d.count.Add(1)
		return next(ctx, network, addr)
	}
}

func (d *dialCounter) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook { return next }

func (d *dialCounter) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// A retry takes longer than reading from the base store.
func TestNewClient_DoesNotRetry(t *testing.T) {
	server, inner, dials := redistest.Start(t), newBaseStore(), &dialCounter{}
	mustSave(t, inner, demo, 0, parts{"a": "1"}.delta())
	server.Kill(t)
	client := mustClient(t, server.URL())
	client.AddHook(dials)
	wantStored(t, mustNew(t, inner, client, longTimeout), demo, parts{"a": "1"}.at(1))
	if count := dials.count.Load(); count != 1 {
		t.Errorf("%d attempts to connect for one load; want 1", count)
	}
}

// Saves and loads of many runs while Redis is killed, restarted and emptied.
func TestCrash_RedisRestartsUnderLoad(t *testing.T) {
	const workers, rounds = 4, 100
	server, inner := redistest.Start(t), newBaseStore()
	s := mustNew(t, inner, mustClient(t, server.URL()), Config{Timeout: waitTimeout, Pause: time.Nanosecond})
	steps := make(chan struct{})
	var working sync.WaitGroup
	for worker := range workers {
		working.Go(func() {
			key := store.Key{Account: "acme", Run: fmt.Sprint(worker)}
			for base := range int64(rounds) {
				want := parts{"run": fmt.Sprint(key.Run, base), fmt.Sprint("node ", base): "new"}
				gone := fmt.Sprint("node ", base-1)
				if _, err := s.Save(t.Context(), key, base, want.delta(gone)); err != nil {
					t.Errorf("Save: %v", err)
				}
				if got, err := s.Load(t.Context(), key); err != nil || got.Version != base+1 || len(got.Parts) != 2 ||
					string(got.Parts["run"]) != want["run"] || string(got.Parts[fmt.Sprint("node ", base)]) != "new" {
					t.Errorf("Load: %+v, %v; want %v", got, err, want)
				}
				steps <- struct{}{}
			}
		})
	}
	for step := range workers * rounds {
		switch step % 100 {
		case 20:
			server.Kill(t)
		case 50:
			server.Restart(t)
		case 70, 80, 90:
			if err := mustClient(t, server.URL()).FlushAll(t.Context()).Err(); err != nil {
				t.Error(err)
			}
		}
		<-steps
	}
	working.Wait()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	// the client needs a moment to notice that Redis is back
	for deadline := time.After(waitTimeout); ; {
		before := s.Stats().Hits
		wantStored(t, s, store.Key{Account: "acme", Run: "0"}, parts{"run": "099", "node 99": "new"}.at(rounds))
		if s.Stats().Hits == before+2 {
			break
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("Redis is back but not used: %+v", s.Stats())
		}
	}
	if stats := s.Stats(); stats.Errors == 0 || stats.Misses == 0 {
		t.Errorf("stats %+v; Redis was never unavailable, or never emptied", stats)
	}
}

func TestMemory_EvictionCostsOnlySpeed(t *testing.T) {
	const runs, size = 100, 100_000
	server := redistest.Start(t)
	raw := mustClient(t, server.URL())
	limit(t, raw, "4mb", "allkeys-lru")
	s := mustNew(t, newBaseStore(), mustClient(t, server.URL()), longTimeout)
	data := func(run int) string { return strings.Repeat(fmt.Sprint(run%10), size) }
	for run := range runs {
		mustSave(t, s, store.Key{Run: fmt.Sprint(run)}, 0, parts{"a": data(run)}.delta())
	}
	for run := range runs {
		wantStored(t, s, store.Key{Run: fmt.Sprint(run)}, parts{"a": data(run)}.at(1))
	}
	info, err := raw.InfoMap(t.Context(), "stats").Result()
	if err != nil || info["Stats"]["evicted_keys"] == "0" {
		t.Errorf("evicted %s keys, %v; want some", info["Stats"]["evicted_keys"], err)
	}
	if stats := s.Stats(); stats.Misses == 0 || stats.Errors != 0 {
		t.Errorf("stats %+v; want misses and no errors", stats)
	}
}

func TestMemory_FullRedisDoesNotFailCalls(t *testing.T) {
	server := redistest.Start(t)
	limit(t, mustClient(t, server.URL()), "1", "noeviction")
	s := mustNew(t, newBaseStore(), mustClient(t, server.URL()), longTimeout)
	mustSave(t, s, demo, 0, parts{"a": "1"}.delta())
	wantStored(t, s, demo, parts{"a": "1"}.at(1))
	if stats := s.Stats(); stats.Errors != 2 {
		t.Errorf("stats %+v; want a save and a load that Redis has rejected", stats)
	}
}

func limit(t *testing.T, raw *goredis.Client, memory, policy string) {
	t.Helper()
	for name, value := range map[string]string{"maxmemory": memory, "maxmemory-policy": policy} {
		if err := raw.ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// Redis accepts a call and does not respond. Only the timeout of the Store ends the wait: the
// client has none, and the network is frozen until the end of the test.
func TestSlow_SilentRedisCostsOneTimeout(t *testing.T) {
	server := redistest.Start(t)
	p, addr := through(t, server.Addr())
	client := mustClient(t, strings.Replace(server.URL(), server.Addr(), addr, 1)+"?read_timeout=-1&write_timeout=-1")
	s, _ := withManualClock(t, newBaseStore(), client, Config{Timeout: 20 * time.Millisecond, Pause: time.Hour})
	for s.Stats().Hits == 0 { // on a slow machine the first connection may take longer
		if err := s.Delete(t.Context(), demo); err != nil {
			t.Fatal(err)
		}
		s.checkpoints.cache.breaker.succeeded()
		mustSave(t, s, demo, 0, parts{"a": "1"}.delta())
		wantStored(t, s, demo, parts{"a": "1"}.at(1))
	}
	s.checkpoints.cache.breaker.succeeded()
	before := s.Stats().Errors
	p.Freeze()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for base := int64(1); base <= 10; base++ {
			mustSave(t, s, demo, base, parts{"a": fmt.Sprint(base)}.delta())
			wantStored(t, s, demo, parts{"a": fmt.Sprint(base)}.at(base+1))
		}
	}()
	select {
	case <-done:
	case <-time.After(waitTimeout):
		t.Fatal("the calls wait for Redis")
	}
	if stats := s.Stats(); stats.Errors != before+maxFailures || !stats.Unavailable {
		t.Errorf("stats %+v after %d errors; want %d more and no later calls", stats, before, maxFailures)
	}
}

// A cancelled caller does not count as a failure of Redis.
func TestCancel_ByCallerDoesNotOpenBreaker(t *testing.T) {
	server := redistest.Start(t)
	p, addr := through(t, server.Addr())
	inner := newBaseStore()
	s := mustNew(t, inner, mustClient(t, strings.Replace(server.URL(), server.Addr(), addr, 1)), longTimeout)
	mustSave(t, s, demo, 0, parts{"a": "1"}.delta())
	p.Freeze()
	for range 2 * maxFailures {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if _, err := s.Load(ctx, demo); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Load: %v; want the caller's deadline, or the checkpoint of the base store", err)
		}
		cancel()
	}
	if stats := s.Stats(); stats.Errors != 0 || stats.Unavailable {
		t.Errorf("stats %+v; want no error", stats)
	}
	p.Unfreeze()
	wantStored(t, s, demo, parts{"a": "1"}.at(1))
}

// A connection lost during a write must not leave a checkpoint that never expires.
func TestPut_InterruptedWriteLeavesNothing(t *testing.T) {
	server := redistest.Start(t)
	p, addr := through(t, server.Addr())
	s := mustNew(t, newBaseStore(), mustClient(t, strings.Replace(server.URL(), server.Addr(), addr, 1)), longTimeout)
	p.cutBefore("pexpire")
	mustSave(t, s, demo, 0, parts{"a": "1"}.delta())
	if stats := s.Stats(); stats.Errors != 1 {
		t.Fatalf("stats %+v; want the interrupted write", stats)
	}
	if keys, err := mustClient(t, server.URL()).Keys(t.Context(), "*").Result(); err != nil || len(keys) != 0 {
		t.Errorf("half a write left %q, %v", keys, err)
	}
}

func TestGoroutines_NoneLeakAfterRedisIsLost(t *testing.T) {
	server := redistest.Start(t)
	p, addr := through(t, server.Addr())
	client := mustClient(t, strings.Replace(server.URL(), server.Addr(), addr, 1))
	s := mustNew(t, newBaseStore(), client, Config{Timeout: 10 * time.Millisecond})
	mustSave(t, s, demo, 0, parts{"a": "1"}.delta())
	p.Freeze()
	wantStored(t, s, demo, parts{"a": "1"}.at(1))
	server.Kill(t)
	wantStored(t, s, demo, parts{"a": "1"}.at(1))
	p.Unfreeze()
	client.Close()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(waitTimeout); ; {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		if !bytes.Contains(stacks, []byte("go-redis")) && !bytes.Contains(stacks, []byte("redis.(*cache)")) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("goroutines are left:\n%s", stacks)
		}
	}
}
