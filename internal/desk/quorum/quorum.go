// Package quorum decides whether the voters satisfy all groups, where each person counts once.
//
// If groups overlap, a greedy assignment can fail although enough people voted: if ann is in both
// groups and bob only in the first, ann must count for the second. So people are assigned to groups
// by augmenting paths.
package quorum

// Result is an assignment of people to groups.
type Result struct {
	// GroupOf has the group of each person, or -1 for people who are not needed.
	GroupOf []int
	// Missing has the number of people that each group still needs.
	Missing []int
}

// Met reports whether no one is missing.
func (r Result) Met() bool {
	for _, m := range r.Missing {
		if m > 0 {
			return false
		}
	}
	return true
}

// Have returns the number of people that count.
func (r Result) Have() int {
	n := 0
	for _, g := range r.GroupOf {
		if g >= 0 {
			n++
		}
	}
	return n
}

// Assign assigns people to groups. Group g needs counts[g] people, and person p may count for group
// g if in[p][g]. As many people as possible count; earlier people are preferred.
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

// assign finds a group for person p. If necessary, it moves another person to another group. Each
// group is tried once.
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
			if at == g && f.assign(other, tried) { // other has moved to another group
				f.groupOf[p] = g
				return true
			}
		}
	}
	return false
}
