package redis

import (
	"bytes"
	"context"
	"crypto/sha256"
	"maps"
	"os"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/store/memory"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

var demo = store.Key{Account: "acme", Run: "demo-1"}

// parts is a short form of the parts of a checkpoint.
type parts map[string]string

func (p parts) delta(gone ...string) store.Delta {
	delta := store.Delta{Delete: gone}
	for name, data := range p {
		delta.Put = append(delta.Put, store.Part{Name: name, Data: []byte(data)})
	}
	return delta
}

func (p parts) at(version int64) store.Checkpoint {
	checkpoint := store.Checkpoint{Version: version, Parts: map[string][]byte{}}
	for name, data := range p {
		checkpoint.Parts[name] = []byte(data)
	}
	return checkpoint
}

// baseStore is a small store with digests that counts its calls.
type baseStore struct {
	*memory.Store
	digestCalls, loadCalls, partCalls atomic.Int64
	beforeParts                       func() // runs between Digests and LoadParts
}

func newBaseStore() *baseStore { return &baseStore{Store: memory.NewStore(nil)} }

func (b *baseStore) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	b.loadCalls.Add(1)
	return b.Store.Load(ctx, key)
}

func (b *baseStore) Digests(ctx context.Context, key store.Key) (store.CheckpointDigests, error) {
	b.digestCalls.Add(1)
	checkpoint, err := b.Store.Load(ctx, key)
	index := store.CheckpointDigests{Version: checkpoint.Version, Digests: map[string][32]byte{}}
	for name, data := range checkpoint.Parts {
		index.Digests[name] = sha256.Sum256(data)
	}
	return index, err
}

func (b *baseStore) LoadParts(ctx context.Context, key store.Key, version int64, names []string) (map[string][]byte, error) {
	b.partCalls.Add(1)
	if b.beforeParts != nil {
		b.beforeParts()
	}
	checkpoint, err := b.Store.Load(ctx, key)
	if err != nil {
		return nil, err
	}
	if checkpoint.Version != version {
		return nil, store.ErrStale
	}
	found := map[string][]byte{}
	for _, name := range names {
		if data, ok := checkpoint.Parts[name]; ok {
			found[name] = data
		}
	}
	return found, nil
}

func (b *baseStore) Fenced(lease store.Lease) store.Checkpoints {
	return fencedBase{b, b.Store.Fenced(lease)}
}

type fencedBase struct {
	*baseStore
	fenced store.Checkpoints
}

func (f fencedBase) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	return f.fenced.Save(ctx, key, base, delta)
}

func mustClient(t testing.TB, rawURL string) *goredis.Client {
	t.Helper()
	client, err := NewClient(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// longTimeout is for tests in which Redis responds, even on a slow machine.
var longTimeout = Config{Timeout: waitTimeout}

func mustNew(t testing.TB, inner store.Store, client goredis.UniversalClient, config Config) *Store {
	t.Helper()
	s, err := New(inner, client, config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustSave(t testing.TB, s store.Checkpoints, key store.Key, base int64, delta store.Delta) {
	t.Helper()
	if _, err := s.Save(t.Context(), key, base, delta); err != nil {
		t.Fatalf("Save on base %d: %v", base, err)
	}
}

func wantStored(t testing.TB, s store.Checkpoints, key store.Key, want store.Checkpoint) {
	t.Helper()
	got, err := s.Load(t.Context(), key)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	if got.Version != want.Version || !maps.EqualFunc(got.Parts, want.Parts, bytes.Equal) {
		t.Fatalf("the checkpoint is version %d with %.100q; want %d with %.100q", got.Version, got.Parts, want.Version, want.Parts)
	}
}

// wantFromRedis checks that a load takes everything from Redis.
func wantFromRedis(t testing.TB, s *Store, key store.Key, want store.Checkpoint) {
	t.Helper()
	before := s.Stats()
	wantStored(t, s, key, want)
	before.Hits += int64(len(want.Parts))
	if after := s.Stats(); after != before {
		t.Fatalf("after a load from Redis only the stats are %+v; want %+v", after, before)
	}
}
