package analytics

import (
	"maps"
	"slices"
)

// others is the name of the row in which everything counts that has no row of its own.
const others = "(all others)"

// tally counts by name, up to so many different names. Names come from graphs, rules and whoever speaks: nobody may fill the memory with them.
type tally[T any] struct {
	of   map[string]*T
	most int
	make func() *T
	sure string // has a row of its own, however many there are; "" for none
}

func newTally[T any](most int, empty func() *T, sure ...string) tally[T] {
	t := tally[T]{of: make(map[string]*T), most: most, make: empty}
	if len(sure) > 0 {
		t.sure = sure[0]
	}
	return t
}

// take counts something under a name. What has no name is left out.
func (t *tally[T]) take(name string, count func(*T)) {
	if name == "" {
		return
	}
	one := t.of[name]
	if one == nil && len(t.of) >= t.most && name != t.sure {
		name = others
		one = t.of[name]
	}
	if one == nil {
		one = t.make()
		t.of[name] = one
	}
	count(one)
}

// rows are what was counted, in the order of the names.
func rows[T, R any](t tally[T], row func(string, *T) R) []R {
	all := make([]R, 0, len(t.of))
	for _, name := range slices.Sorted(maps.Keys(t.of)) {
		all = append(all, row(name, t.of[name]))
	}
	return all
}
