package app

import (
	"os"
	"testing"

	"github.com/fermata-go/fermata/internal/pgtest"
)

// asProgram is a variable with which the test binary is the program, for tests in which another
// program runs it.
const asProgram = "FERMATA_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(Main())
	}
	os.Exit(pgtest.Main(m))
}
