package redis

import (
	"context"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/fermata-go/fermata/internal/store"
)

var _ store.Store = (*Store)(nil)

// Store is a store with a Redis cache for its checkpoints. Use New to create one. All methods are
// safe for concurrent use.
//
// It needs no Close: the caller closes the base store and the client.
type Store struct {
	store.Store // the base store; only checkpoints use Redis
	checkpoints checkpoints
}

// New adds a Redis cache to a store. The store, and what its Fenced returns, must implement
// [store.DigestCheckpoints]; otherwise the error is [ErrNoDigests]. The client must respect
// timeouts, like those of [NewClient]; otherwise the error is [ErrConfig]. Redis need not be
// available.
func New(inner store.Store, client goredis.UniversalClient, config Config) (*Store, error) {
	config = config.withDefaults()
	if err := config.check(); err != nil {
		return nil, err
	}
	if err := checkClient(client); err != nil {
		return nil, err
	}
	indexed, ok := inner.(store.DigestCheckpoints)
	if !ok {
		return nil, fmt.Errorf("%w: %T", ErrNoDigests, inner)
	}
	fenced := inner.Fenced(store.Lease{})
	if _, ok := fenced.(store.DigestCheckpoints); !ok {
		return nil, fmt.Errorf("%w: %T, which Fenced returns", ErrNoDigests, fenced)
	}
	c := &cache{client: client, config: config, now: time.Now, breaker: breaker{pause: config.Pause}}
	return &Store{Store: inner, checkpoints: checkpoints{indexed, c}}, nil
}

// Load returns the newest checkpoint, or [store.ErrNotFound]. The version and the digests come from
// the base store; the bytes come from Redis if they match.
func (s *Store) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	return s.checkpoints.Load(ctx, key)
}

// Save applies the delta in the base store, see [store.Checkpoints], and then updates Redis.
func (s *Store) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	return s.checkpoints.Save(ctx, key, base, delta)
}

// Delete removes the checkpoint from the base store and then from Redis.
func (s *Store) Delete(ctx context.Context, key store.Key) error {
	return s.checkpoints.Delete(ctx, key)
}

// Fenced returns the checkpoints of a run for its owner; see [store.Runs].
func (s *Store) Fenced(lease store.Lease) store.Checkpoints {
	fenced := s.Store.Fenced(lease)
	if indexed, ok := fenced.(store.DigestCheckpoints); ok {
		return checkpoints{indexed, s.checkpoints.cache}
	}
	return fenced // New has seen another type; without digests only the base store is used
}

// CheckWritable asks the base store if it implements [store.WriteChecker].
func (s *Store) CheckWritable(ctx context.Context) error {
	if behind, knows := s.Store.(store.WriteChecker); knows {
		return behind.CheckWritable(ctx)
	}
	return nil
}

// EndExecution ends an execution in the base store, see [store.Runs], and then updates or removes
// the checkpoint in Redis.
func (s *Store) EndExecution(ctx context.Context, lease store.Lease, end store.ExecutionEnd) (store.Status, error) {
	status, err := s.Store.EndExecution(ctx, lease, end)
	if err != nil || end.Checkpoint == nil {
		return status, err
	}
	cache := s.checkpoints.cache
	turn := cache.newCall(store.Key{Account: lease.Account, Run: lease.Run})
	if end.Checkpoint.Drop {
		cache.drop(ctx, turn)
	} else {
		cache.put(ctx, turn, end.Checkpoint.Delta)
	}
	return status, nil
}

// DeleteRun deletes a run from the base store, see [store.Maintenance], and then its checkpoint
// from Redis.
func (s *Store) DeleteRun(ctx context.Context, account, run string, writes store.Writes) error {
	err := s.Store.DeleteRun(ctx, account, run, writes)
	if err == nil {
		key := store.Key{Account: account, Run: run}
		s.checkpoints.cache.drop(ctx, s.checkpoints.cache.newCall(key))
	}
	return err
}

// Stats returns the counters.
func (s *Store) Stats() Stats {
	stats := s.checkpoints.cache.stats()
	stats.Unavailable = s.checkpoints.cache.breaker.isOpen(s.checkpoints.cache.now())
	return stats
}
