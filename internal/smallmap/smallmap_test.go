package smallmap_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/fermata-go/fermata/internal/smallmap"
)

func TestMap_NilIsEmpty(t *testing.T) {
	var m *smallmap.Map[int, int]
	for range m.All() {
		t.Error("the map is not empty")
	}
	if m.Len() != 0 || m.Get(1) != 0 || m.Ptr(1) != nil {
		t.Error("the map is not empty")
	}
}

func TestMap_BehavesLikeAMapAtAnySize(t *testing.T) {
	for _, size := range []int{0, 1, 8, 9, 10, 1000} {
		var m smallmap.Map[int, int]
		want := map[int]int{}
		var order []int
		for i := range size {
			key := i * 7 % 1009
			m.Set(key, i)
			*m.GetOrAdd(key)++
			want[key] = i + 1
			order = append(order, key)
		}
		if got := maps.Collect(m.All()); !maps.Equal(got, want) || m.Len() != size {
			t.Fatalf("%d entries: got %v, want %v", m.Len(), got, want)
		}
		var keys []int
		for key, value := range m.All() {
			keys = append(keys, key)
			if found, ok := m.Lookup(key); !ok || found != value || m.Get(key) != value {
				t.Fatalf("key %d: got %d, %t, want %d", key, found, ok, value)
			}
		}
		if !slices.Equal(keys, order) {
			t.Fatalf("got the order %v, want %v", keys, order)
		}
		if value, ok := m.Lookup(-1); ok || value != 0 {
			t.Fatalf("a missing key has the value %d", value)
		}
		m.Clear()
		if m.Len() != 0 || m.Get(0) != 0 {
			t.Fatal("the map is not empty after Clear")
		}
	}
}

func TestMap_DeleteAtAnySize(t *testing.T) {
	for _, size := range []int{1, 2, 8, 9, 100} {
		var m smallmap.Map[int, int]
		want := map[int]int{}
		for i := range size {
			m.Set(i, i)
			want[i] = i
		}
		for i := range size {
			key := i * 7 % size
			m.Delete(key)
			m.Delete(-1)
			delete(want, key)
			if got := maps.Collect(m.All()); !maps.Equal(got, want) || m.Len() != len(want) {
				t.Fatalf("of %d, without %d: got %v, want %v", size, key, got, want)
			}
			if _, ok := m.Lookup(key); ok {
				t.Fatalf("%d was not deleted", key)
			}
		}
		m.Set(3, 4)
		if m.Len() != 1+len(want) || m.Get(3) != 4 {
			t.Fatalf("after deleting, 3 is %d", m.Get(3))
		}
	}
}
