package storetest

import (
	"errors"
	"math"
	"testing"

	"github.com/fermata-go/fermata/internal/store"
)

var demo = store.Key{Account: "acme", Run: "demo-1"}

func testLoadUnknown(t *testing.T, s store.Checkpoints) {
	mustSave(t, s, demo, 0, parts{"run": "x"}.delta())
	for _, key := range []store.Key{
		{Account: "acme", Run: "demo-2"},
		{Account: "acme", Run: "demo"},
		{Account: "", Run: "demo-1"},
		{Account: "acme", Run: ""},
		{},
	} {
		checkpoint, err := s.Load(t.Context(), key)
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Load(%q) = %v, %v; want ErrNotFound", key, checkpoint, err)
		}
	}
}

func testCreate(t *testing.T, s store.Checkpoints) {
	want := parts{"run": "head", "node/draft": `{"text":"…"}`}
	mustSave(t, s, demo, 0, want.delta())
	wantStored(t, s, demo, want.checkpoint(1))
	wantStored(t, s, demo, want.checkpoint(1)) // loading changes nothing
}

func testEmptyDelta(t *testing.T, s store.Checkpoints) {
	mustSave(t, s, demo, 0, store.Delta{})
	wantStored(t, s, demo, parts{}.checkpoint(1))
	mustSave(t, s, demo, 1, parts{"run": "x"}.delta())
	mustSave(t, s, demo, 2, store.Delta{})
	wantStored(t, s, demo, parts{"run": "x"}.checkpoint(3))
}

func testDelta(t *testing.T, s store.Checkpoints) {
	mustSave(t, s, demo, 0, parts{"a": "1", "b": "1", "c": "1"}.delta())
	mustSave(t, s, demo, 1, parts{"b": "22", "d": "2"}.delta("c", "never there"))
	wantStored(t, s, demo, parts{"a": "1", "b": "22", "d": "2"}.checkpoint(2))
	mustSave(t, s, demo, 2, parts{"c": "3"}.delta("a")) // a name may be used again
	wantStored(t, s, demo, parts{"b": "22", "c": "3", "d": "2"}.checkpoint(3))
	mustSave(t, s, demo, 3, parts{}.delta("b", "c", "d"))
	wantStored(t, s, demo, parts{}.checkpoint(4))
}

func testStale(t *testing.T, s store.Checkpoints) {
	missing := store.Key{Account: "acme", Run: "missing"}
	kept := parts{"a": "kept", "b": "kept"}
	for base := range int64(3) {
		mustSave(t, s, demo, base, kept.delta())
	}
	for _, test := range []struct {
		name string
		key  store.Key
		base int64
	}{
		{"lower", demo, 2},
		{"much lower", demo, 1},
		{"higher", demo, 4},
		{"much higher", demo, math.MaxInt64},
		{"negative", demo, -1},
		{"create what exists", demo, 0},
		{"advance what does not exist", missing, 1},
		{"negative on what does not exist", missing, -1},
	} {
		version, err := s.Save(t.Context(), test.key, test.base, parts{"a": "new", "c": "new"}.delta("b"))
		if !errors.Is(err, store.ErrStale) {
			t.Errorf("%s: Save on base %d = %d, %v; want ErrStale", test.name, test.base, version, err)
		}
	}
	wantStored(t, s, demo, kept.checkpoint(3))
	if _, err := s.Load(t.Context(), missing); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a rejected save created its checkpoint: Load = %v", err)
	}
}

func testEmptyNames(t *testing.T, s store.Checkpoints) {
	kept := parts{"a": "kept", "b": "kept"}
	mustSave(t, s, demo, 0, kept.delta())
	for _, test := range []struct {
		name  string
		key   store.Key
		base  int64
		delta store.Delta
	}{
		{"no run", store.Key{Account: "acme"}, 0, parts{"a": "new"}.delta()},
		{"nothing at all", store.Key{}, 0, store.Delta{}},
		{"put without a name", demo, 1, store.Delta{
			Put:    []store.Part{{Name: "a", Data: []byte("new")}, {Data: []byte("x")}},
			Delete: []string{"b"},
		}},
		{"delete without a name", demo, 1, store.Delta{
			Put:    []store.Part{{Name: "a", Data: []byte("new")}},
			Delete: []string{"b", ""},
		}},
	} {
		version, err := s.Save(t.Context(), test.key, test.base, test.delta)
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: Save = %d, %v; want ErrKey", test.name, version, err)
		}
	}
	wantStored(t, s, demo, kept.checkpoint(1))
	if _, err := s.Load(t.Context(), store.Key{Account: "acme"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a checkpoint without a run: Load = %v; want ErrNotFound", err)
	}
}

func testDelete(t *testing.T, s store.Checkpoints) {
	other := store.Key{Account: "acme", Run: "demo-2"}
	if err := s.Delete(t.Context(), demo); err != nil {
		t.Fatalf("Delete of what does not exist: %v", err)
	}
	mustSave(t, s, demo, 0, parts{"a": "old", "b": "old"}.delta())
	mustSave(t, s, demo, 1, parts{"a": "older"}.delta())
	mustSave(t, s, other, 0, parts{"a": "other"}.delta())

	if err := s.Delete(t.Context(), demo); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	if _, err := s.Load(t.Context(), demo); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Load after Delete: %v; want ErrNotFound", err)
	}
	if _, err := s.Save(t.Context(), demo, 2, parts{"a": "late"}.delta()); !errors.Is(err, store.ErrStale) {
		t.Errorf("Save on the version before Delete: %v; want ErrStale", err)
	}
	wantStored(t, s, other, parts{"a": "other"}.checkpoint(1))

	mustSave(t, s, demo, 0, parts{"c": "new"}.delta())
	wantStored(t, s, demo, parts{"c": "new"}.checkpoint(1)) // without the old parts
}

func testAccounts(t *testing.T, s store.Checkpoints) {
	// Pairs that a naive concatenation of account and run would confuse.
	keys := []store.Key{
		{Account: "", Run: "r"},
		{Account: "a", Run: "r"},
		{Account: "ar", Run: "r"},
		{Account: "a", Run: "rr"},
		{Account: "a/", Run: "r"},
		{Account: "a", Run: "/r"},
		{Account: "a\x00", Run: "r"},
		{Account: "a", Run: "\x00r"},
		{Account: "A", Run: "r"},
		{Account: "a ", Run: "r"},
	}
	for i, key := range keys {
		mustSave(t, s, key, 0, parts{"of": string(rune('0' + i))}.delta())
	}
	for i, key := range keys {
		wantStored(t, s, key, parts{"of": string(rune('0' + i))}.checkpoint(1))
	}
	if err := s.Delete(t.Context(), keys[1]); err != nil {
		t.Fatal(err)
	}
	mustSave(t, s, keys[2], 1, parts{"of": "changed"}.delta())
	for i, key := range keys {
		if i != 1 && i != 2 {
			wantStored(t, s, key, parts{"of": string(rune('0' + i))}.checkpoint(1))
		}
	}
}
