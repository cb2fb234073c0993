package redis

import (
	"context"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/fermata-go/fermata/store"
)

var _ store.Store = (*Store)(nil)

// Store is a store with Redis in front of its checkpoints. Make one with New; all methods may be called at once from any goroutine.
//
// It has nothing to close: the store behind and the client are whoever's that made them.
type Store struct {
	store.Store // the one behind; everything but checkpoints is its alone
	checkpoints checkpoints
}

// New puts Redis in front of a store. The store has to be a [store.DigestCheckpoints], and so has what its Fenced returns: [ErrNoDigests]. The client
// has to obey timeouts, as those of [NewClient] do: [ErrConfig]. Redis need not be there, now or ever.
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

// Load returns the newest checkpoint, or [store.ErrNotFound]. The version and what it holds are always those of the store behind; the
// bytes are those of Redis, if they are the right ones.
func (s *Store) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	return s.checkpoints.Load(ctx, key)
}

// Save applies the delta if base is the stored version; see [store.Checkpoints]. ave applies the
// delta in the store behind, see [store.Checkpoints], and then tells Redis.
func (s *Store) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	return s.checkpoints.Save(ctx, key, base, delta)
}

// Delete removes the checkpoint from the store behind, and then from Redis.
func (s *Store) Delete(ctx context.Context, key store.Key) error {
	return s.checkpoints.Delete(ctx, key)
}

// Fenced returns the checkpoints of a run for its owner; see [store.Runs].
func (s *Store) Fenced(lease store.Lease) store.Checkpoints {
	fenced := s.Store.Fenced(lease)
	if indexed, ok := fenced.(store.DigestCheckpoints); ok {
		return checkpoints{indexed, s.checkpoints.cache}
	}
	return fenced // New has seen another type; without an index there is only the store behind
}

// Writable asks the store behind, if it knows; see [store.WriteChecker].
func (s *Store) CheckWritable(ctx context.Context) error {
	if behind, knows := s.Store.(store.WriteChecker); knows {
		return behind.CheckWritable(ctx)
	}
	return nil
}

// EndExecution ends an execution; see [store.Runs]. est gives a run back in the store behind, see
// [store.Runs], and then tells Redis of the state that was saved with it, or went.
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

// DeleteRun deletes a run that has ended; see [store.Maintenance]. orget deletes a run from the
// store behind, see [store.Maintenance], and then its checkpoint from Redis.
func (s *Store) DeleteRun(ctx context.Context, account, run string, writes store.Writes) error {
	err := s.Store.DeleteRun(ctx, account, run, writes)
	if err == nil {
		key := store.Key{Account: account, Run: run}
		s.checkpoints.cache.drop(ctx, s.checkpoints.cache.newCall(key))
	}
	return err
}

// Stats says what Redis was good for.
func (s *Store) Stats() Stats {
	stats := s.checkpoints.cache.stats()
	stats.Unavailable = s.checkpoints.cache.breaker.isOpen(s.checkpoints.cache.now())
	return stats
}
