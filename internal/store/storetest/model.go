package storetest

import (
	"errors"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/fermata-go/fermata/internal/store"
)

// model is a minimal implementation of the port for one caller.
type model map[store.Key]store.Checkpoint

func (m model) save(key store.Key, base int64, delta store.Delta) (int64, error) {
	if key.Run == "" {
		return 0, store.ErrInvalid
	}
	if m[key].Version != base {
		return 0, store.ErrStale
	}
	next := store.Checkpoint{Version: base + 1, Parts: map[string][]byte{}}
	maps.Copy(next.Parts, m[key].Parts)
	for _, name := range delta.Delete {
		delete(next.Parts, name)
	}
	for _, part := range delta.Put {
		next.Parts[part.Name] = part.Data
	}
	m[key] = next
	return next.Version, nil
}

// Few keys and names, so that histories repeat them.
var (
	anyKey = rapid.Custom(func(t *rapid.T) store.Key {
		return store.Key{
			Account: rapid.SampledFrom([]string{"", "a", "a\x00"}).Draw(t, "account"),
			Run:     rapid.SampledFrom([]string{"r", "\x00r", "\xff", ""}).Draw(t, "run"),
		}
	})
	anyNames = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "A", "a\x00", "\xfe", "é", "run"}), 0, 6, rapid.ID[string])
	anyData  = rapid.SliceOfN(rapid.Byte(), 0, 40)
)

// anyDelta puts some names and deletes others.
func anyDelta(t *rapid.T) store.Delta {
	names := anyNames.Draw(t, "names")
	puts := rapid.IntRange(0, len(names)).Draw(t, "puts")
	delta := store.Delta{Delete: names[puts:]}
	for _, name := range names[:puts] {
		delta.Put = append(delta.Put, store.Part{Name: name, Data: anyData.Draw(t, "data")})
	}
	return delta
}

// testModel runs random histories on the store and on the model and compares every result.
func testModel(t *testing.T, s store.Checkpoints) {
	ctx := t.Context()
	used := map[store.Key]bool{}
	rapid.Check(t, func(t *rapid.T) {
		for key := range used { // each history begins with an empty store
			if err := s.Delete(ctx, key); err != nil {
				t.Fatalf("Delete(%q): %v", key, err)
			}
		}
		m := model{}
		wantLoad := func(t *rapid.T, key store.Key) {
			got, err := s.Load(ctx, key)
			want, ok := m[key]
			if ok == errors.Is(err, store.ErrNotFound) || (ok && err != nil) {
				t.Fatalf("Load(%q): %v; the model has it: %t", key, err, ok)
			}
			wantEqual(t, got, want)
		}
		t.Repeat(map[string]func(*rapid.T){
			"save": func(t *rapid.T) {
				key := anyKey.Draw(t, "key")
				base := m[key].Version
				if rapid.IntRange(0, 4).Draw(t, "luck") == 0 {
					base = rapid.Int64Range(-1, 6).Draw(t, "base")
				}
				delta := anyDelta(t)
				used[key] = true
				version, err := s.Save(ctx, key, base, delta)
				wantVersion, wantErr := m.save(key, base, delta)
				if version != wantVersion || !errors.Is(err, wantErr) {
					t.Fatalf("Save(%q, %d) = %d, %v; want %d, %v", key, base, version, err, wantVersion, wantErr)
				}
				wantLoad(t, key)
			},
			"delete": func(t *rapid.T) {
				key := anyKey.Draw(t, "key")
				delete(m, key)
				if err := s.Delete(ctx, key); err != nil {
					t.Fatalf("Delete(%q): %v", key, err)
				}
			},
			"load": func(t *rapid.T) { wantLoad(t, anyKey.Draw(t, "key")) },
		})
		for key := range used {
			wantLoad(t, key)
		}
	})
}
