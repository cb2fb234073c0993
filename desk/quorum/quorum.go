// Package quorum says whether the people who said yes are enough: so many of each group, and nobody counts twice.
//
// Where groups overlap, counting people off against groups one after the other refuses what is enough: if ann is in both
// groups and bob in the first only, ann has to count for the second. So people are matched with places by augmenting paths.
package quorum

// Result says who counts where, and what is missing.
type Result struct {
	// Of has for each person the group that they count for; -1 for those who are not needed.
	Of []int
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
	for _, g := range r.Of {
		if g >= 0 {
			n++
		}
	}
	return n
}

// Fill puts people into groups. Group g needs counts[g] people, and person p may count for group g if in[p][g]. As many people
// count as can at all; the first ones count in any case.
func Fill(counts []int, in [][]bool) Result {
	f := filling{counts: counts, in: in, of: make([]int, len(in)), filled: make([]int, len(counts))}
	for p := range f.of {
		f.of[p] = -1
	}
	for p := range in {
		f.place(p, make([]bool, len(counts)))
	}
	missing := make([]int, len(counts))
	for g := range counts {
		missing[g] = max(0, counts[g]-f.filled[g])
	}
	return Result{Of: f.of, Missing: missing}
}

type filling struct {
	counts []int
	in     [][]bool
	of     []int
	filled []int
}

// place finds a group for person p, who has none, and if need be another group for somebody who is in p's way. Each group is
// tried once.
func (f *filling) place(p int, tried []bool) bool {
	for g := range f.counts {
		if tried[g] || !f.in[p][g] {
			continue
		}
		tried[g] = true
		if f.filled[g] < f.counts[g] {
			f.of[p] = g
			f.filled[g]++
			return true
		}
		for other, at := range f.of {
			if at == g && f.place(other, tried) { // other has moved on, and left its place in g
				f.of[p] = g
				return true
			}
		}
	}
	return false
}
