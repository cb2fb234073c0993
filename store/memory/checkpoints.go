// Package memory keeps everything in the memory of the process: for tests, benchmarks and programs whose runs need
// not outlive them.
//
//	checkpoints := memory.New()
//	version, err := checkpoints.Save(ctx, store.Key{Run: "demo-1"}, 0, store.Delta{
//		Put: []store.Part{{Name: "run", Data: head}},
//	})
//
// New is for checkpoints alone, which is all that a graph needs; NewStore is everything that an executor keeps, [store.Store].
//
// It behaves in every way like the stores that write to disk (it passes the same suite, store/storetest), except that
// everything is gone with the process. Use store/sqlite where a person may be waited for longer than a deploy.
package memory

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/fermata-go/fermata/internal/smallmap"
	"github.com/fermata-go/fermata/store"
)

var _ store.Checkpoints = (*Checkpoints)(nil)

// Checkpoints keeps checkpoints in a map. Make one with New.
type Checkpoints struct {
	mu   sync.Mutex
	runs map[store.Key]*checkpoint
}

// checkpoint is one checkpoint.
type checkpoint struct {
	version int64
	parts   smallmap.Map[string, []byte]
}

// New returns an empty store.
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

// save is called with the lock held.
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
		r.parts.Set(part.Name, slices.Clip(part.Data)) // so that nobody who appends to it writes where others read
	}
	r.version++
	return r.version, nil
}

// version is that of a checkpoint, 0 if there is none. It is called with the lock held.
func (s *Checkpoints) version(key store.Key) int64 {
	if r := s.runs[key]; r != nil {
		return r.version
	}
	return 0
}

// Delete forgets the checkpoint, if there is one.
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
