package encrypted

import (
	"context"

	"github.com/fermata-go/fermata/internal/store"
)

// Load returns the decrypted checkpoint.
func (s *Store) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	return s.load(ctx, s.Store, key)
}

// Save encrypts the parts.
func (s *Store) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	return s.Store.Save(ctx, key, base, s.delta(key, delta))
}

// Fenced returns checkpoints that are encrypted as those of the store are.
func (s *Store) Fenced(lease store.Lease) store.Checkpoints {
	return &checkpoints{s.Store.Fenced(lease), s}
}

// checkpoints encrypts the parts of fenced checkpoints.
type checkpoints struct {
	store.Checkpoints
	store *Store
}

func (c *checkpoints) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	return c.store.load(ctx, c.Checkpoints, key)
}

func (c *checkpoints) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	return c.Checkpoints.Save(ctx, key, base, c.store.delta(key, delta))
}

func (s *Store) load(ctx context.Context, from store.Checkpoints, key store.Key) (store.Checkpoint, error) {
	checkpoint, err := from.Load(ctx, key)
	if err != nil {
		return checkpoint, err
	}
	for name, sealed := range checkpoint.Parts {
		//mutate:part-decrypted
		if checkpoint.Parts[name], err = s.open(key.Account, store.SealedPart, key.Run, name, sealed); err != nil {
			return store.Checkpoint{}, err
		}
	}
	return checkpoint, nil
}

// delta encrypts the parts of a delta. A part without data is encrypted as an empty one, because a
// sealer does not encrypt nil.
func (s *Store) delta(key store.Key, delta store.Delta) store.Delta {
	put := make([]store.Part, len(delta.Put))
	for i, part := range delta.Put {
		data := part.Data
		if data == nil {
			data = []byte{}
		}
		//mutate:part-encrypted
		put[i] = store.Part{Name: part.Name, Data: s.seal(key.Account, store.SealedPart, key.Run, part.Name, data)}
	}
	return store.Delta{Put: put, Delete: delta.Delete}
}
