package quorum_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fermata-go/fermata/internal/desk/quorum"
)

func TestAssign_ReassignsOverlappingMembers(t *testing.T) {
	// Both groups need one person. Ann is in both, bob only in the first. Counting ann for the
	// first group fails.
	r := quorum.Assign([]int{1, 1}, [][]bool{{true, true}, {true, false}})
	if !r.Met() || !slices.Equal(r.GroupOf, []int{1, 0}) {
		t.Errorf("%+v, want ann in the second group and bob in the first", r)
	}
}

func TestAssign_OnePersonCountsOnce(t *testing.T) {
	r := quorum.Assign([]int{1, 1}, [][]bool{{true, true}})
	if r.Met() || r.Have() != 1 {
		t.Errorf("%+v: one person counts twice", r)
	}
}

func TestAssign_MatchesBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SliceOfN(rapid.IntRange(1, 3), 1, 3).Draw(t, "counts")
		in := rapid.SliceOfN(rapid.SliceOfN(rapid.Bool(), len(counts), len(counts)), 0, 6).Draw(t, "in")
		r := quorum.Assign(counts, in)
		if want := most(slices.Clone(counts), in); r.Have() != want {
			t.Fatalf("%d people count, %d could: %+v", r.Have(), want, r)
		}
		missing := slices.Clone(counts)
		for p, g := range r.GroupOf {
			if g < 0 {
				continue
			}
			if !in[p][g] {
				t.Fatalf("person %d counts for group %d but is not a member", p, g)
			}
			missing[g]--
		}
		if !slices.Equal(missing, r.Missing) || slices.Min(missing) < 0 {
			t.Fatalf("missing %v, want %v", r.Missing, missing)
		}
		if need := sum(counts); r.Met() != (r.Have() == need) {
			t.Fatalf("met = %v with %d of %d", r.Met(), r.Have(), need)
		}
	})
}

// most tries every assignment of people to groups.
func most(left []int, in [][]bool) int {
	if len(in) == 0 {
		return 0
	}
	best := most(left, in[1:])
	for g := range left {
		if in[0][g] && left[g] > 0 {
			left[g]--
			best = max(best, 1+most(left, in[1:]))
			left[g]++
		}
	}
	return best
}

func sum(counts []int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

func ExampleAssign() {
	// One of dba (ann, bob) and one of finops (ann).
	r := quorum.Assign([]int{1, 1}, [][]bool{
		{true, true},  // ann
		{true, false}, // bob
	})
	fmt.Println(r.Met(), r.GroupOf)
	// Output: true [1 0]
}
