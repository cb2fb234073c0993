package analytics

import (
	"maps"
	"slices"
)

// otherRow is the name of the row for everything that has no row of its own.
const otherRow = "(all others)"

// groups counts by name, up to a limit of different names. Names come from graphs, rules and users,
// so their number must be limited.
type groups[T any] struct {
	byName   map[string]*T
	limit    int
	newGroup func() *T
	reserved string // always has a row of its own; "" for none
}

func newGroups[T any](most int, empty func() *T, sure ...string) groups[T] {
	t := groups[T]{byName: make(map[string]*T), limit: most, newGroup: empty}
	if len(sure) > 0 {
		t.reserved = sure[0]
	}
	return t
}

// add counts a value under a name. Values without a name are ignored.
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

// rows returns the rows, sorted by name.
func rows[T, R any](t groups[T], row func(string, *T) R) []R {
	all := make([]R, 0, len(t.byName))
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		all = append(all, row(name, t.byName[name]))
	}
	return all
}
