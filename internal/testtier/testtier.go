// Package testtier selects how much the tests do. The environment variable FERMATA_TEST names the
// tier:
//
//	fast     make check: tests that need more than Go are skipped
//	(empty)  make test: every mechanism runs, with small counts
//	nightly  make nightly: campaigns, with large counts
//	soak     make soak: as many cases as there is time for
//
// Tests ask for what differs:
//
//	func TestClient(t *testing.T) {
//		testtier.Needs(t, "Node")
//		kills := testtier.Count(10, 200, 10_000)
//		...
//	}
//
// Except in the fast tier nothing is left out: a missing program is a failure and not a skip,
// because a test that never ran would look as if it had passed.
package testtier

import (
	"os"
	"testing"
)

// Variable is the environment variable that selects the tier.
const Variable = "FERMATA_TEST"

// The values of [Variable]. Any other value selects the tier of make test.
const (
	Fast    = "fast"
	Nightly = "nightly"
	Soak    = "soak"
)

// Needs skips the test in the fast tier, with the reason. what names the program or server that
// the test needs, for example "PostgreSQL".
func Needs(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(Variable) == Fast {
		t.Skip("needs " + what + "; run make test")
	}
}

// Count returns how many cases a test runs in this tier: commit for make check and make test.
func Count(commit, nightly, soak int) int {
	switch os.Getenv(Variable) {
	case Nightly:
		return nightly
	case Soak:
		return soak
	}
	return commit
}

// IsNightly reports whether large counts are wanted: in the tiers nightly and soak.
func IsNightly() bool { return Count(0, 1, 1) == 1 }

// IsSoak reports whether the tests run as long as they have time.
func IsSoak() bool { return Count(0, 0, 1) == 1 }
