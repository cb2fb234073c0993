// Package smallmap provides a map that is optimized for a few entries and also works for thousands.
//
// Most nodes ask one question, and most runs wait at one place. A Go map needs two allocations and
// a few hundred bytes for that, and a wait needed a dozen of them.
package smallmap

import "iter"

// indexThreshold is the number of entries from which a Go map is faster than a linear search.
const indexThreshold = 9

// Map is a map that keeps insertion order. The zero value is empty and ready to use. It must not be
// copied after first use. A nil Map can be read and is empty.
type Map[K comparable, V any] struct {
	entries []entry[K, V]
	inline  [2]entry[K, V] // storage of the first entries
	index   map[K]int      // nil while there are only a few entries
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// Len returns the number of entries.
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

// Lookup returns the value of a key and whether the key exists.
func (m *Map[K, V]) Lookup(key K) (value V, ok bool) {
	if i := m.find(key); i >= 0 {
		return m.entries[i].value, true
	}
	return value, false
}

// Ptr returns a pointer to the value of a key, or nil. It is valid until the next change of the
// map.
func (m *Map[K, V]) Ptr(key K) *V {
	if i := m.find(key); i >= 0 {
		return &m.entries[i].value
	}
	return nil
}

// GetOrAdd returns a pointer to the value of a key, and adds the key if needed. It is valid until
// the next change of the map.
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

// Set sets the value of a key.
func (m *Map[K, V]) Set(key K, value V) { *m.GetOrAdd(key) = value }

// Delete removes a key. The last entry takes its position.
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

// Clear removes all entries.
func (m *Map[K, V]) Clear() {
	clear(m.entries)
	m.entries, m.index = m.entries[:0], nil
}

// All iterates over the entries in insertion order. The map must not be changed during the
// iteration.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for i := range m.Len() {
			if !yield(m.entries[i].key, m.entries[i].value) {
				return
			}
		}
	}
}
