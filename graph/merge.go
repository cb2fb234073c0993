package graph

import (
	"fmt"
	"reflect"
)

// merge is the merge function of a field.
type merge struct {
	field string
	value reflect.Type
	// apply receives base, the current value and the new one, all of the field's type.
	apply func(base, a, b reflect.Value) (reflect.Value, error)
}

// MergeField registers a merge function for a field that two nodes changed without seeing each
// other's changes: base is the value both nodes received, a the current value, b the additional
// one. It may modify and return a, but must not modify base or b. Without it, such a change is a
// [ConflictError]. The field is named as in JSON; T must be its type.
func MergeField[T, S any](g *Graph[S], field string, combine func(base, a, b T) (T, error)) {
	g.merges = append(g.merges, merge{
		field: field,
		value: reflect.TypeFor[T](),
		apply: func(base, a, b reflect.Value) (reflect.Value, error) {
			merged, err := combine(base.Interface().(T), a.Interface().(T), b.Interface().(T))
			return reflect.ValueOf(&merged).Elem(), err
		},
	})
}

// Append is a merge function for [MergeField]: if both sides appended to a list, the merged list
// has both additions.
func Append[L ~[]E, E any](base, a, b L) (L, error) {
	if len(a) < len(base) || len(b) < len(base) {
		return nil, fmt.Errorf("a list of %d was shortened to %d: cannot append", len(base), min(len(a), len(b)))
	}
	return append(a, b[len(base):]...), nil
}

// Sum is a merge function for [MergeField]: the merged number includes both changes.
func Sum[N ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~float32 | ~float64](base, a, b N) (N, error) {
	return a + b - base, nil
}
