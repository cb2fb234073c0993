//go:build unix

package peers

import (
	"os"
	"testing"

	"github.com/fermata-go/fermata/app"
	"github.com/fermata-go/fermata/internal/sample"
)

// asProgram is a variable with which the test binary is the program.
const asProgram = "FERMATA_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		graphs, err := sample.Graphs()
		if err != nil {
			panic(err)
		}
		os.Exit(app.Main(app.Graphs(graphs...)))
	}
	os.Exit(m.Run())
}
