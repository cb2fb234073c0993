package graph

import (
	"fmt"
	"reflect"
)

// merge is how two values of one field become one.
type merge struct {
	field string
	value reflect.Type
	// apply gets base, the value already there and the new one, all of the field's type.
	apply func(base, a, b reflect.Value) (reflect.Value, error)
}

// MergeField says how a field is merged when two nodes that did not see each other's work both changed it: base is what
// both had seen, a what is there now, b what comes in addition. It may change a and return it, but neither base nor b.
// Without it such a change is a [ConflictError]. The field is named as in JSON; T must be its type.
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

// Append is for [MergeField]: both sides only appended to a list, and the merged list has what both appended.
func Append[L ~[]E, E any](base, a, b L) (L, error) {
	if len(a) < len(base) || len(b) < len(base) {
		return nil, fmt.Errorf("a list of %d was shortened to %d: cannot append", len(base), min(len(a), len(b)))
	}
	return append(a, b[len(base):]...), nil
}

// Sum is for [MergeField]: the merged number has what both sides added.
func Sum[N ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~float32 | ~float64](base, a, b N) (N, error) {
	return a + b - base, nil
}
