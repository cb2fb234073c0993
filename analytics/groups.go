package analytics

import (
	"maps"
	"slices"
)

// otherRow is the name of the row in which everything counts that has no row of its own.
const otherRow = "(all others)"

// groups counts by name, up to so many different names. Names come from graphs, rules and whoever speaks: nobody may fill the memory with them.
type groups[T any] struct {
	byName   map[string]*T
	limit    int
	newGroup func() *T
	reserved string // has a row of its own, however many there are; "" for none
}

func newGroups[T any](most int, empty func() *T, sure ...string) groups[T] {
	t := groups[T]{byName: make(map[string]*T), limit: most, newGroup: empty}
	if len(sure) > 0 {
		t.reserved = sure[0]
	}
	return t
}

// take counts something under a name. What has no name is left out.
func (t *groups[T]) add(name string, count func(*T)) {
	if name == "" {
		return
	}
	one := t.byName[name]
	if one == nil && len(t.byName) >= t.limit && name != t.reserved {
		name = otherRow
		one = t.byName[name]
	}
	if one == nil {
		one = t.newGroup()
		t.byName[name] = one
	}
	count(one)
}

// rows are what was counted, in the order of the names.
func rows[T, R any](t groups[T], row func(string, *T) R) []R {
	all := make([]R, 0, len(t.byName))
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		all = append(all, row(name, t.byName[name]))
	}
	return all
}
