package redis

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/fermata-go/fermata/internal/store"
)

// checkpoints are the checkpoints of the base store with Redis as a cache.
type checkpoints struct {
	store.DigestCheckpoints
	cache *cache
}

// maxAttempts is how often a load restarts because of concurrent saves. Then it reads everything
// from the base store.
const maxAttempts = 3

// errVersionChanged is returned if two reads do not belong to the same version.
var errVersionChanged = errors.New("redis: the checkpoint has changed")

func (c checkpoints) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	if c.cache.unavailable() {
		return c.DigestCheckpoints.Load(ctx, key)
	}
	t := c.cache.newCall(key)
	for range maxAttempts {
		checkpoint, err := c.assemble(ctx, t)
		if !errors.Is(err, errVersionChanged) {
			return checkpoint, err
		}
	}
	return c.DigestCheckpoints.Load(ctx, key)
}

// assemble builds the checkpoint of one set of digests. Every part has the expected digest, from
// either source, so the result is the state of the run at the time of the digests.
func (c checkpoints) assemble(ctx context.Context, t *callBudget) (store.Checkpoint, error) {
	index, err := c.Digests(ctx, t.key)
	if err != nil {
		return store.Checkpoint{}, err
	}
	parts, missing, answered := c.cache.get(ctx, t, index)
	if len(missing) == 0 {
		return store.Checkpoint{Version: index.Version, Parts: parts}, nil
	}
	if len(parts) == 0 { // one statement reads everything consistently
		checkpoint, err := c.DigestCheckpoints.Load(ctx, t.key)
		if err == nil && answered {
			c.cache.put(ctx, t, putAll(checkpoint.Parts))
		}
		return checkpoint, err
	}
	rest, err := c.loadMissing(ctx, t.key, index, missing)
	if err != nil {
		return store.Checkpoint{}, err
	}
	c.cache.put(ctx, t, putAll(rest))
	for name, data := range rest {
		parts[name] = data
	}
	return store.Checkpoint{Version: index.Version, Parts: parts}, nil
}

// loadMissing returns parts of a version from the base store. The version alone does not prove that
// they match the digests: a checkpoint that was deleted and recreated has the same versions, and
// re-encryption keeps the version.
func (c checkpoints) loadMissing(ctx context.Context, key store.Key, index store.CheckpointDigests, names []string) (map[string][]byte, error) {
	parts, err := c.LoadParts(ctx, key, index.Version, names)
	if errors.Is(err, store.ErrStale) {
		return nil, errVersionChanged
	}
	if err != nil {
		return nil, err
	}
	rest := make(map[string][]byte, len(names))
	for _, name := range names {
		data, ok := parts[name]
		if !ok || sha256.Sum256(data) != index.Digests[name] {
			return nil, errVersionChanged
		}
		rest[name] = data
	}
	return rest, nil
}

func (c checkpoints) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	version, err := c.DigestCheckpoints.Save(ctx, key, base, delta)
	if err == nil {
		c.cache.put(ctx, c.cache.newCall(key), delta)
	}
	return version, err
}

func (c checkpoints) Delete(ctx context.Context, key store.Key) error {
	err := c.DigestCheckpoints.Delete(ctx, key)
	if err == nil {
		c.cache.drop(ctx, c.cache.newCall(key))
	}
	return err
}

func putAll(parts map[string][]byte) (delta store.Delta) {
	for name, data := range parts {
		delta.Put = append(delta.Put, store.Part{Name: name, Data: data})
	}
	return delta
}
