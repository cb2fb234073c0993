// Package memory keeps checkpoints in the memory of the process: for tests, benchmarks and programs whose runs need
// not outlive them.
//
//	checkpoints := memory.New()
//	version, err := checkpoints.Save(ctx, store.Key{Run: "demo-1"}, 0, store.Delta{
//		Put: []store.Part{{Name: "run", Data: head}},
//	})
//
// It behaves in every way like the stores that write to disk (it passes the same suite, store/storetest), except that
// everything is gone with the process. Use store/sqlite where a person may be waited for longer than a deploy.
package memory

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/fermata-go/fermata/store"
)

var _ store.Checkpoints = (*Store)(nil)

// Store keeps checkpoints in a map. Make one with New.
type Store struct {
	mu   sync.Mutex
	runs map[store.Key]*run
}

// run is one checkpoint. The bytes of a part are never written to once they are in the map; a save puts others in their
// place. That is what allows Load to copy them after it has let go of the lock.
type run struct {
	version int64
	parts   map[string][]byte
}

// New returns an empty store.
func New() *Store {
	return &Store{runs: make(map[store.Key]*run)}
}

// Load returns a copy of the newest checkpoint, or [store.ErrNotFound].
func (s *Store) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	if err := ctx.Err(); err != nil {
		return store.Checkpoint{}, err
	}
	var few [16]store.Part
	version, shared, ok := s.snapshot(key, few[:0])
	if !ok {
		return store.Checkpoint{}, store.ErrNotFound
	}
	size := 0
	for _, part := range shared {
		size += len(part.Data)
	}
	// One allocation carries the copies of all parts. Each is cut off at its own end, so that a caller who appends to one
	// part does not write into the next.
	backing := make([]byte, 0, size)
	parts := make(map[string][]byte, len(shared))
	for _, part := range shared {
		start := len(backing)
		backing = append(backing, part.Data...)
		parts[part.Name] = backing[start:len(backing):len(backing)]
	}
	return store.Checkpoint{Version: version, Parts: parts}, nil
}

// snapshot appends the parts to buf; their bytes are still those of the store. Copying them is left to the caller: a big
// checkpoint must not hold up every other run.
func (s *Store) snapshot(key store.Key, buf []store.Part) (version int64, parts []store.Part, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.runs[key]
	if !ok {
		return 0, nil, false
	}
	parts = slices.Grow(buf, len(r.parts))
	for name, data := range r.parts {
		parts = append(parts, store.Part{Name: name, Data: data})
	}
	return r.version, parts, true
}

// Save applies the delta if base is the stored version; see [store.Checkpoints].
func (s *Store) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if !wellNamed(key, delta) {
		return 0, store.ErrKey
	}
	// Copied before the lock is taken, for the same reason as in Load. Each part has an allocation of its own: in a shared
	// one, a small part that stays would keep the memory of a big one that has long been replaced.
	var few [8][]byte
	copies := few[:0]
	for _, part := range delta.Put {
		copies = append(copies, bytes.Clone(part.Data))
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.runs[key]
	switch {
	case !ok && base == 0:
		r = &run{parts: make(map[string][]byte, len(delta.Put))}
		s.runs[key] = r
	case !ok || r.version != base:
		return 0, store.ErrStale
	}
	for _, name := range delta.Delete {
		delete(r.parts, name)
	}
	for i, part := range delta.Put {
		r.parts[part.Name] = copies[i]
	}
	r.version++
	return r.version, nil
}

// Delete forgets the checkpoint, if there is one.
func (s *Store) Delete(ctx context.Context, key store.Key) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, key)
	return nil
}

func wellNamed(key store.Key, delta store.Delta) bool {
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
