// Package few holds a map for what is nearly always a handful and may be thousands.
//
// Most nodes ask one question, and most runs wait at one place. A map of Go costs two allocations and a few hundred bytes
// to hold that; there were a dozen of them in a wait.
package smallmap

import "iter"

// indexThreshold is from how many entries on a list is slower to look through than a map.
const indexThreshold = 9

// Map is a map that keeps the order in which keys came. The zero value is empty and ready for use; once it was used it must
// not be copied. A nil map can be read, and is empty.
type Map[K comparable, V any] struct {
	entries []entry[K, V]
	inline  [2]entry[K, V] // for the first entries
	index   map[K]int      // nil as long as there are few
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// Len is how many there are.
func (m *Map[K, V]) Len() int {
	if m == nil {
		return 0
	}
	return len(m.entries)
}

func (m *Map[K, V]) find(key K) int {
	if m == nil {
		return -1
	}
	if m.index != nil {
		if i, ok := m.index[key]; ok {
			return i
		}
		return -1
	}
	for i := range m.entries {
		if m.entries[i].key == key {
			return i
		}
	}
	return -1
}

// Get returns the value of a key, or the zero value.
func (m *Map[K, V]) Get(key K) V {
	value, _ := m.Lookup(key)
	return value
}

// Lookup returns the value of a key and whether it is there.
func (m *Map[K, V]) Lookup(key K) (value V, ok bool) {
	if i := m.find(key); i >= 0 {
		return m.entries[i].value, true
	}
	return value, false
}

// Find returns where the value of a key is kept, until the next call that changes the map, or nil.
func (m *Map[K, V]) Ptr(key K) *V {
	if i := m.find(key); i >= 0 {
		return &m.entries[i].value
	}
	return nil
}

// At returns where the value of a key is kept, until the next call that changes the map. A key that is not there is added.
func (m *Map[K, V]) GetOrAdd(key K) *V {
	if i := m.find(key); i >= 0 {
		return &m.entries[i].value
	}
	i := len(m.entries)
	if m.entries == nil {
		m.entries = m.inline[:0]
	}
	m.entries = append(m.entries, entry[K, V]{key: key})
	if m.index != nil {
		m.index[key] = i
	} else if len(m.entries) >= indexThreshold {
		m.index = make(map[K]int, 2*indexThreshold)
		for i := range m.entries {
			m.index[m.entries[i].key] = i
		}
	}
	return &m.entries[i].value
}

// Set gives a key its value.
func (m *Map[K, V]) Set(key K, value V) { *m.GetOrAdd(key) = value }

// Delete removes a key. The last one takes its place in the order.
func (m *Map[K, V]) Delete(key K) {
	i := m.find(key)
	if i < 0 {
		return
	}
	last := len(m.entries) - 1
	m.entries[i] = m.entries[last]
	if m.index != nil {
		m.index[m.entries[i].key] = i
		delete(m.index, key)
	}
	clear(m.entries[last:])
	m.entries = m.entries[:last]
}

// Clear removes everything.
func (m *Map[K, V]) Clear() {
	clear(m.entries)
	m.entries, m.index = m.entries[:0], nil
}

// All lists keys and values in the order in which the keys came. The map must not be changed meanwhile.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for i := range m.Len() {
			if !yield(m.entries[i].key, m.entries[i].value) {
				return
			}
		}
	}
}
