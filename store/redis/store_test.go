package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/fermata-go/fermata/internal/redistest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/storetest"
	"github.com/fermata-go/fermata/store/memory"
)

// The suites on a store without I/O, so that only Redis differs.
func TestStore_OverMemory(t *testing.T) {
	client, opened := mustClient(t, redistest.Start(t).URL()), 0
	storetest.Store(t, func(t *testing.T) store.Store {
		opened++
		config := longTimeout
		config.Prefix = fmt.Sprint("suite ", opened, ":")
		return mustNew(t, newBaseStore(), client, config)
	})
}

func TestStore_OverMemoryWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	client := mustClient(t, server.URL())
	server.Kill(t)
	storetest.Store(t, func(t *testing.T) store.Store { return mustNew(t, newBaseStore(), client, Config{}) })
}

// digestsOnly has digests, but not for the owner of a run.
type digestsOnly struct{ *baseStore }

func (i digestsOnly) Fenced(lease store.Lease) store.Checkpoints { return i.Store.Fenced(lease) }

func TestNew_UnsupportedStoreReturnsError(t *testing.T) {
	obedient := mustClient(t, "redis://127.0.0.1:1")
	deaf := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:1"})
	deafCluster := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	deafRing := goredis.NewRing(&goredis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	for _, client := range []goredis.UniversalClient{deaf, deafCluster, deafRing} {
		t.Cleanup(func() { client.Close() })
	}
	for name, test := range map[string]struct {
		inner  store.Store
		client goredis.UniversalClient
		config Config
		want   error
		says   string
	}{
		"no digests":            {memory.NewStore(nil), obedient, Config{}, ErrNoDigests, "*memory.Store"},
		"no digests for owners": {digestsOnly{newBaseStore()}, obedient, Config{}, ErrNoDigests, "Fenced"},
		"no store":              {nil, obedient, Config{}, ErrNoDigests, "<nil>"},
		"no client":             {newBaseStore(), nil, Config{}, ErrConfig, "no client"},
		"a deaf client":         {newBaseStore(), deaf, Config{}, ErrConfig, "ContextTimeoutEnabled"},
		"a deaf cluster":        {newBaseStore(), deafCluster, Config{}, ErrConfig, "ContextTimeoutEnabled"},
		"a deaf ring":           {newBaseStore(), deafRing, Config{}, ErrConfig, "ContextTimeoutEnabled"},
		"negative TTL":          {newBaseStore(), obedient, Config{TTL: -1}, ErrConfig, "TTL"},
		"TTL too short for it":  {newBaseStore(), obedient, Config{TTL: time.Microsecond}, ErrConfig, "TTL"},
		"negative timeout":      {newBaseStore(), obedient, Config{Timeout: -1}, ErrConfig, "timeout"},
		"negative size":         {newBaseStore(), obedient, Config{MaxPart: -1}, ErrConfig, "-1 bytes"},
		"negative pause":        {newBaseStore(), obedient, Config{Pause: -1}, ErrConfig, "pause"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(test.inner, test.client, test.config)
			if s != nil || !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("New = %v, %v; want %v that says %q", s, err, test.want, test.says)
			}
		})
	}
}

func TestI7_NewClientErrorsDoNotContainTheURL(t *testing.T) {
	for _, rawURL := range []string{
		"redis://user:s3cret@host:port", "s3cret", "http://s3cret@host", "redis://:s3cr%et@host", "redis://host/s3cret", "redis://host/0?s3cret=1",
	} {
		if client, err := NewClient(rawURL); client != nil || !errors.Is(err, ErrConfig) || strings.Contains(err.Error(), "s3cr") {
			t.Errorf("NewClient(%q) = %v, %v; want ErrConfig that does not quote it", rawURL, client, err)
		}
	}
}

// The digests would hide that two runs share a key: they would only replace each other.
func TestI8_EveryRunHasItsOwnKey(t *testing.T) {
	s := mustNew(t, newBaseStore(), mustClient(t, redistest.Start(t).URL()), longTimeout)
	var keys []store.Key
	for _, account := range []string{"", "a", "ab", "a/", "a:", "a\x00", "\xff", strings.Repeat("a", 10_000)} {
		for _, run := range []string{"r", "br", "/r", ":r", "\x00r", "\xff", "{r}", strings.Repeat("a", 10_000)} {
			keys = append(keys, store.Key{Account: account, Run: run})
		}
	}
	for i, key := range keys {
		mustSave(t, s, key, 0, parts{"of": fmt.Sprint(i), "\x00": "", "of ": "another"}.delta())
	}
	for i, key := range keys {
		wantFromRedis(t, s, key, parts{"of": fmt.Sprint(i), "\x00": "", "of ": "another"}.at(1))
	}
}

func TestPut_EveryWriteSetsAnExpiry(t *testing.T) {
	const ttl = 90 * time.Minute
	config := longTimeout
	config.TTL = ttl
	server := redistest.Start(t)
	s := mustNew(t, newBaseStore(), mustClient(t, server.URL()), config)
	l := &tamperer{t, mustClient(t, server.URL()), s.checkpoints.cache}
	expires := func(when string) {
		t.Helper()
		left, err := l.redis.PTTL(t.Context(), l.cache.key(demo)).Result()
		if err != nil || left <= ttl/2 || left > ttl {
			t.Errorf("%s: it expires in %s, %v; want %s", when, left, err, ttl)
		}
		// so that the next one has to renew it
		l.must(l.redis.PExpire(t.Context(), l.cache.key(demo), time.Minute).Err())
	}
	mustSave(t, s, demo, 0, parts{"a": "1", "b": "1"}.delta())
	expires("after the first save")
	mustSave(t, s, demo, 1, parts{"a": "2"}.delta())
	expires("after the next save")
	mustSave(t, s, demo, 2, parts{}.delta("b"))
	expires("after a save that only deletes")
	l.must(l.redis.Del(t.Context(), l.cache.key(demo)).Err())
	wantStored(t, s, demo, parts{"a": "2"}.at(3))
	expires("after a load")
}

func TestDelete_AndDeleteRunLeaveNothingInRedis(t *testing.T) {
	server := redistest.Start(t)
	s := mustNew(t, newBaseStore(), mustClient(t, server.URL()), longTimeout)
	raw := mustClient(t, server.URL())
	for name, end := range map[string]func(lease store.Lease, key store.Key) error{
		"Delete":        func(_ store.Lease, key store.Key) error { return s.Delete(t.Context(), key) },
		"Fenced.Delete": func(lease store.Lease, key store.Key) error { return s.Fenced(lease).Delete(t.Context(), key) },
		"DeleteRun": func(lease store.Lease, key store.Key) error {
			if err := s.DeleteRun(t.Context(), key.Account, key.Run, store.Writes{}); !errors.Is(err, store.ErrRunActive) {
				t.Errorf("DeleteRun of an active run: %v", err)
			}
			wantFromRedis(t, s, key, parts{"a": "1"}.at(1))
			if _, err := s.EndExecution(t.Context(), lease, store.ExecutionEnd{Status: store.StatusCompleted}); err != nil {
				t.Fatal(err)
			}
			return s.DeleteRun(t.Context(), key.Account, key.Run, store.Writes{})
		},
		"EndExecution that drops it": func(lease store.Lease, key store.Key) error {
			_, err := s.EndExecution(t.Context(), lease, store.ExecutionEnd{Status: store.StatusCompleted, Checkpoint: &store.CheckpointSave{BaseVersion: 1, Drop: true}})
			return err
		},
	} {
		lease, err := s.Create(t.Context(), store.NewRun{Account: "acme", ID: name, StateKey: name, Owner: "a", Lease: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		key := store.Key{Account: "acme", Run: name}
		mustSave(t, s.Fenced(lease), key, 0, parts{"a": "1"}.delta())
		wantFromRedis(t, s, key, parts{"a": "1"}.at(1))
		if err := end(lease, key); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if keys, err := raw.Keys(t.Context(), "*").Result(); err != nil || len(keys) != 0 {
			t.Errorf("%s leaves %q, %v", name, keys, err)
		}
	}
}

func TestI16_FencedOwnerWritesNothingToRedis(t *testing.T) {
	server := redistest.Start(t)
	s := mustNew(t, newBaseStore(), mustClient(t, server.URL()), longTimeout)
	first, err := s.Create(t.Context(), store.NewRun{Account: demo.Account, ID: demo.Run, StateKey: "k", Owner: "a", Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	mustSave(t, s.Fenced(first), demo, 0, parts{"a": "first"}.delta())
	if err := s.Release(t.Context(), first, store.Release{}); err != nil {
		t.Fatal(err)
	}
	work, err := s.Claim(t.Context(), store.Claim{Owner: "b", Lease: time.Hour})
	if err != nil || work == nil {
		t.Fatal(work, err)
	}
	mustSave(t, s.Fenced(work.Lease), demo, 1, parts{"a": "second"}.delta())
	if _, err := s.Fenced(first).Save(t.Context(), demo, 2, parts{"a": "late"}.delta()); !errors.Is(err, store.ErrFenced) {
		t.Errorf("Save of the first owner: %v; want ErrFenced", err)
	}
	wantFromRedis(t, s, demo, parts{"a": "second"}.at(2))
	if _, err := s.Save(t.Context(), demo, 1, parts{"a": "stale"}.delta()); !errors.Is(err, store.ErrStale) {
		t.Errorf("Save on an old version: %v; want ErrStale", err)
	}
	wantFromRedis(t, s, demo, parts{"a": "second"}.at(2))
}

func TestMaxPart_LargerPartsAreNotCached(t *testing.T) {
	server := redistest.Start(t)
	config := longTimeout
	config.MaxPart = 10
	inner := newBaseStore()
	s := mustNew(t, inner, mustClient(t, server.URL()), config)
	l := &tamperer{t, mustClient(t, server.URL()), s.checkpoints.cache}
	holds := func(want ...string) {
		t.Helper()
		values, err := l.redis.HVals(t.Context(), l.cache.key(demo)).Result()
		slices.Sort(values)
		if err != nil || !slices.Equal(values, want) {
			t.Fatalf("Redis holds %q, %v; want %q", values, err, want)
		}
	}
	mustSave(t, s, demo, 0, parts{"a": "0123456789", "b": "1", "c": "0123456789!"}.delta())
	holds("0123456789", "1")
	wantStored(t, s, demo, parts{"a": "0123456789", "b": "1", "c": "0123456789!"}.at(1))
	holds("0123456789", "1") // the load does not write back a large part
	mustSave(t, s, demo, 1, parts{"a": "grown too large"}.delta())
	holds("1") // the former value is removed
	wantStored(t, s, demo, parts{"a": "grown too large", "b": "1", "c": "0123456789!"}.at(2))
	if fetches := inner.partCalls.Load(); fetches != 2 {
		t.Errorf("parts were fetched %d times; want once a load", fetches)
	}
}

func TestStats_ZeroWithoutRedis(t *testing.T) {
	s := mustNew(t, newBaseStore(), mustClient(t, redistest.Start(t).URL()), longTimeout)
	mustSave(t, s, demo, 0, store.Delta{})
	wantFromRedis(t, s, demo, parts{}.at(1))
	if _, err := s.Load(t.Context(), store.Key{Run: "unknown"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Load of an unknown run: %v", err)
	}
	if stats := s.Stats(); stats != (Stats{}) {
		t.Errorf("counted %+v; want nothing", stats)
	}
}

// readOnlyStore is a store that rejects writes.
type readOnlyStore struct{ *baseStore }

func (readOnlyStore) CheckWritable(context.Context) error { return errLocked }

var errLocked = errors.New("read-only")

// Readiness must not depend on the cache.
func TestCheckWritable_AsksTheBaseStore(t *testing.T) {
	client := mustClient(t, "redis://127.0.0.1:1")
	for _, c := range []struct {
		behind store.Store
		want   error
	}{{readOnlyStore{newBaseStore()}, errLocked}, {newBaseStore(), nil}} {
		if err := mustNew(t, c.behind, client, Config{}).CheckWritable(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("%T: %v, want %v", c.behind, err, c.want)
		}
	}
}
