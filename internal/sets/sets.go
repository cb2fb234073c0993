// Package sets combines short lists that are used as sets. The results keep the order of the first
// list.
package sets

import "slices"

// Union returns the distinct elements of b after those of a.
func Union[T comparable](a, b []T) []T {
	all := slices.Clone(a)
	for _, x := range b {
		if !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	return all
}

// Intersect returns the elements of a that are in b, or nil.
func Intersect[T comparable](a, b []T) []T {
	var common []T
	for _, x := range a {
		if slices.Contains(b, x) {
			common = append(common, x)
		}
	}
	return common
}

// Subtract returns the elements of a that are not in b.
func Subtract[T comparable](a, b []T) []T {
	return slices.DeleteFunc(slices.Clone(a), func(x T) bool { return slices.Contains(b, x) })
}

// Equal reports whether both lists have the same elements, in any order.
func Equal[T comparable](a, b []T) bool { return len(Subtract(a, b)) == 0 && len(Subtract(b, a)) == 0 }
