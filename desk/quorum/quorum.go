// Package quorum says whether the people who said yes are enough: so many of each group, and nobody counts twice.
//
// Where groups overlap, counting people off against groups one after the other refuses what is enough: if ann is in both
// groups and bob in the first only, ann has to count for the second. So people are matched with places by augmenting paths.
package quorum

// Result says who counts where, and what is missing.
type Result struct {
	// Of has for each person the group that they count for; -1 for those who are not needed.
	GroupOf []int
	// Missing has for each group how many people it still needs.
	Missing []int
}

// Met reports whether nobody is missing.
func (r Result) Met() bool {
	for _, m := range r.Missing {
		if m > 0 {
			return false
		}
	}
	return true
}

// Have is how many people count.
func (r Result) Have() int {
	n := 0
	for _, g := range r.GroupOf {
		if g >= 0 {
			n++
		}
	}
	return n
}

// Assign puts people into groups. Group g needs counts[g] people, and person p may count for group g if in[p][g]. As many people
// count as can at all; the first ones count in any case.
func Assign(counts []int, in [][]bool) Result {
	f := assignment{counts: counts, in: in, groupOf: make([]int, len(in)), filled: make([]int, len(counts))}
	for p := range f.groupOf {
		f.groupOf[p] = -1
	}
	for p := range in {
		f.assign(p, make([]bool, len(counts)))
	}
	missing := make([]int, len(counts))
	for g := range counts {
		missing[g] = max(0, counts[g]-f.filled[g])
	}
	return Result{GroupOf: f.groupOf, Missing: missing}
}

type assignment struct {
	counts  []int
	in      [][]bool
	groupOf []int
	filled  []int
}

// place finds a group for person p, who has none, and if need be another group for somebody who is in p's way. Each group is
// tried once.
func (f *assignment) assign(p int, tried []bool) bool {
	for g := range f.counts {
		if tried[g] || !f.in[p][g] {
			continue
		}
		tried[g] = true
		if f.filled[g] < f.counts[g] {
			f.groupOf[p] = g
			f.filled[g]++
			return true
		}
		for other, at := range f.groupOf {
			if at == g && f.assign(other, tried) { // other has moved on, and left its place in g
				f.groupOf[p] = g
				return true
			}
		}
	}
	return false
}
