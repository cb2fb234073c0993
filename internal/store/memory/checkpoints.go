// Package memory stores everything in the memory of the process: for tests, benchmarks and programs
// whose runs need not outlive them.
//
//	checkpoints := memory.New()
//	version, err := checkpoints.Save(ctx, store.Key{Run: "demo-1"}, 0, store.Delta{
//		Put: []store.Part{{Name: "run", Data: head}},
//	})
//
// New stores only checkpoints, which is enough for a graph. NewStore implements the complete
// [store.Store] of an executor.
//
// The stores behave like those that write to disk and pass the same suite, store/storetest. They
// are lost with the process. Use store/sqlite if a run may wait longer than the process lives.
package memory

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/fermata-go/fermata/internal/smallmap"
	"github.com/fermata-go/fermata/internal/store"
)

var _ store.Checkpoints = (*Checkpoints)(nil)

// Checkpoints stores checkpoints in a map. Use New to create one.
type Checkpoints struct {
	mu   sync.Mutex
	runs map[store.Key]*checkpoint
}

// checkpoint is the stored form of a checkpoint.
type checkpoint struct {
	version int64
	parts   smallmap.Map[string, []byte]
}

// New returns an empty checkpoint store.
func New() *Checkpoints {
	return &Checkpoints{runs: make(map[store.Key]*checkpoint)}
}

// Load returns the newest checkpoint, or [store.ErrNotFound].
func (s *Checkpoints) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	if err := ctx.Err(); err != nil {
		return store.Checkpoint{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.runs[key]
	if !ok {
		return store.Checkpoint{}, store.ErrNotFound
	}
	parts := make(map[string][]byte, r.parts.Len())
	maps.Insert(parts, r.parts.All())
	return store.Checkpoint{Version: r.version, Parts: parts}, nil
}

// Save applies the delta if base is the stored version; see [store.Checkpoints].
func (s *Checkpoints) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if !validNames(key, delta) {
		return 0, store.ErrInvalid
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.save(key, base, delta)
}

// save applies a delta. The caller holds the lock.
func (s *Checkpoints) save(key store.Key, base int64, delta store.Delta) (int64, error) {
	r, ok := s.runs[key]
	switch {
	case !ok && base == 0:
		r = new(checkpoint)
		s.runs[key] = r
	case !ok || r.version != base: //mutate:memory-save-version
		return 0, store.ErrStale
	}
	for _, name := range delta.Delete {
		r.parts.Delete(name)
	}
	for _, part := range delta.Put {
		// a caller that appends must not write into shared memory
		r.parts.Set(part.Name, slices.Clip(part.Data))
	}
	r.version++
	return r.version, nil
}

// version returns the version of a checkpoint, or 0 if there is none. The caller holds the lock.
func (s *Checkpoints) version(key store.Key) int64 {
	if r := s.runs[key]; r != nil {
		return r.version
	}
	return 0
}

// Delete removes the checkpoint, if there is one.
func (s *Checkpoints) Delete(ctx context.Context, key store.Key) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, key)
	return nil
}

func validNames(key store.Key, delta store.Delta) bool {
	if key.Run == "" {
		return false
	}
	for _, part := range delta.Put {
		if part.Name == "" {
			return false
		}
	}
	for _, name := range delta.Delete {
		if name == "" {
			return false
		}
	}
	return true
}
