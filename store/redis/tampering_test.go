package redis

import (
	"context"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/fermata-go/fermata/internal/redistest"
	"github.com/fermata-go/fermata/internal/store"
)

// tamperer changes the content of Redis.
type tamperer struct {
	t     *testing.T
	redis *goredis.Client
	cache *cache
}

func (l *tamperer) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *tamperer) get(key store.Key, name string) string {
	l.t.Helper()
	value, err := l.redis.HGet(l.t.Context(), l.cache.key(key), l.cache.field(name)).Result()
	l.must(err)
	return value
}

func (l *tamperer) set(key store.Key, name, value string) {
	l.t.Helper()
	l.must(l.redis.HSet(l.t.Context(), l.cache.key(key), l.cache.field(name), value).Err())
}

// replace puts a value of any type under the key of a run.
func (l *tamperer) replace(key store.Key, put func(ctx context.Context, key string) error) {
	l.t.Helper()
	l.must(l.redis.Del(l.t.Context(), l.cache.key(key)).Err())
	l.must(put(l.t.Context(), l.cache.key(key)))
}

// copyTo copies the cached checkpoint of one run to another.
func (l *tamperer) copyTo(from, to store.Key) {
	l.t.Helper()
	l.must(l.redis.Copy(l.t.Context(), l.cache.key(from), l.cache.key(to), 0, true).Err())
}

func TestI8_TamperedCacheStillLoadsTheSavedCheckpoint(t *testing.T) {
	sibling, foreign := store.Key{Account: "acme", Run: "demo-2"}, store.Key{Account: "evil", Run: "demo-1"}
	older, newer := parts{"a": "older a", "b": "older b", "gone": "x"}, parts{"a": "newer a", "b": "newer b", "same": "same"}
	tests := map[string]struct {
		lie func(l *tamperer, old string)
		ok  bool // a load can still take everything from Redis
	}{
		"parts swapped": {lie: func(l *tamperer, _ string) {
			a, b := l.get(demo, "a"), l.get(demo, "b")
			l.set(demo, "a", b)
			l.set(demo, "b", a)
		}},
		"truncated":            {lie: func(l *tamperer, _ string) { l.set(demo, "a", l.get(demo, "a")[:3]) }},
		"emptied":              {lie: func(l *tamperer, _ string) { l.set(demo, "a", "") }},
		"longer":               {lie: func(l *tamperer, _ string) { l.set(demo, "a", l.get(demo, "a")+"\x00") }},
		"a bit flipped":        {lie: func(l *tamperer, _ string) { l.set(demo, "a", "oewer a") }},
		"run swapped":          {lie: func(l *tamperer, _ string) { l.copyTo(sibling, demo) }},
		"account swapped":      {lie: func(l *tamperer, _ string) { l.copyTo(foreign, demo) }},
		"one part rolled back": {lie: func(l *tamperer, _ string) { l.set(demo, "b", "older b") }},
		"all rolled back": {lie: func(l *tamperer, old string) {
			l.must(l.redis.RestoreReplace(l.t.Context(), l.cache.key(demo), 0, old).Err())
		}},
		"a deleted part is back":      {lie: func(l *tamperer, _ string) { l.set(demo, "gone", "x") }, ok: true},
		"a part that was never there": {lie: func(l *tamperer, _ string) { l.set(demo, "never", "x") }, ok: true},
		"one part lost": {lie: func(l *tamperer, _ string) {
			l.must(l.redis.HDel(l.t.Context(), l.cache.key(demo), l.cache.field("a")).Err())
		}},
		"all lost":                     {lie: func(l *tamperer, _ string) { l.must(l.redis.Del(l.t.Context(), l.cache.key(demo)).Err()) }},
		"everything lost":              {lie: func(l *tamperer, _ string) { l.must(l.redis.FlushAll(l.t.Context()).Err()) }},
		"a string instead of the hash": {lie: func(l *tamperer, _ string) { l.replace(demo, l.putString) }},
		"a list instead of the hash":   {lie: func(l *tamperer, _ string) { l.replace(demo, l.putList) }},
	}
	server := redistest.Start(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			config := longTimeout
			config.Prefix = name + ":"
			s := mustNew(t, newBaseStore(), mustClient(t, server.URL()), config)
			l := &tamperer{t, mustClient(t, server.URL()), s.checkpoints.cache}
			mustSave(t, s, sibling, 0, parts{"a": "sibling's", "b": "sibling's", "same": "sibling's"}.delta())
			mustSave(t, s, foreign, 0, parts{"a": "foreign", "b": "foreign", "same": "foreign"}.delta())
			mustSave(t, s, demo, 0, older.delta())
			old, err := l.redis.Dump(t.Context(), l.cache.key(demo)).Result()
			l.must(err)
			mustSave(t, s, demo, 1, newer.delta("gone"))
			wantFromRedis(t, s, demo, newer.at(2))

			test.lie(l, old)
			if !test.ok {
				before := s.Stats()
				wantStored(t, s, demo, newer.at(2))
				if after := s.Stats(); after.Corrupt+after.Misses == before.Corrupt+before.Misses || after.Errors != 0 {
					t.Errorf("the stats went from %+v to %+v; want corrupt or missing parts counted and no error", before, after)
				}
			}
			wantFromRedis(t, s, demo, newer.at(2)) // it is repaired
			wantStored(t, s, foreign, parts{"a": "foreign", "b": "foreign", "same": "foreign"}.at(1))
		})
	}
}

func (l *tamperer) putString(ctx context.Context, key string) error {
	return l.redis.Set(ctx, key, "x", 0).Err()
}

func (l *tamperer) putList(ctx context.Context, key string) error {
	return l.redis.RPush(ctx, key, "x").Err()
}

// A save over a foreign value succeeds, and the next load repairs it.
func TestSave_ForeignValueUnderTheKeyIsReplaced(t *testing.T) {
	server := redistest.Start(t)
	s := mustNew(t, newBaseStore(), mustClient(t, server.URL()), longTimeout)
	l := &tamperer{t, mustClient(t, server.URL()), s.checkpoints.cache}
	l.replace(demo, l.putList)
	mustSave(t, s, demo, 0, parts{"a": "1"}.delta())
	wantStored(t, s, demo, parts{"a": "1"}.at(1))
	wantFromRedis(t, s, demo, parts{"a": "1"}.at(1))
}

// Reencrypt changes the bytes of parts without a new version. A later load must return the new
// ones, because the old key may be gone.
func TestLoad_AfterReencryptReturnsNewBytes(t *testing.T) {
	s := mustNew(t, newBaseStore(), mustClient(t, redistest.Start(t).URL()), longTimeout)
	mustSave(t, s, demo, 0, parts{"a": "sealed once", "b": "sealed once, too"}.delta())
	wantFromRedis(t, s, demo, parts{"a": "sealed once", "b": "sealed once, too"}.at(1))
	_, err := s.Reencrypt(t.Context(), "", 100, func(value store.SealedValue) ([]byte, error) {
		if value.Part == "a" {
			return []byte("re-encrypted"), nil
		}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	reencrypted := parts{"a": "re-encrypted", "b": "sealed once, too"}.at(1)
	wantStored(t, s, demo, reencrypted)
	wantFromRedis(t, s, demo, reencrypted)
}
