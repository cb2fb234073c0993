// Package testtier selects tests by what they need, so that "make check" can leave out the tests
// that need more than Go.
//
//	func TestClient(t *testing.T) {
//		testtier.Needs(t, "Node")
//		...
//	}
//
// By default nothing is left out: a missing program is a failure and not a skip, because a test
// that never ran would look as if it had passed.
package testtier

import (
	"os"
	"testing"
)

// Variable is the environment variable that selects the tier. [Fast] is its only value with a
// meaning.
const (
	Variable = "FERMATA_TEST"
	Fast     = "fast"
)

// Needs skips the test in the fast tier, with the reason. what names the program or server that
// the test needs, for example "PostgreSQL".
func Needs(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(Variable) == Fast {
		t.Skip("needs " + what + "; run make test")
	}
}
