//go:build unix

package peers

import (
	"os"
	"testing"

	"github.com/fermata-go/fermata/app"
)

// asProgram is a variable with which the test binary is the program.
const asProgram = "FERMATA_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(app.Main())
	}
	os.Exit(m.Run())
}
