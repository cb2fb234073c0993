//go:build unix

package sqlite

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/fermata-go/fermata/internal/testtier"
)

// seedVariable is the environment variable with the seed to repeat.
const seedVariable = "FERMATA_POWER_SEED"

// newPowerSeed returns the first seed and logs it. It is constant except in a soak, which searches
// new histories.
func newPowerSeed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(1)
	if testtier.IsSoak() {
		seed = rand.Uint64() >> 20
	}
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	t.Logf("%s=%d", seedVariable, seed)
	return seed
}

// The race detector makes SQLite, which is C translated to Go, about thirty times slower, and there
// is nothing to find: everything runs on one goroutine. So these tests run in a child process
// without it.
func TestCrash_PowerTestsWithoutTheRaceDetector(t *testing.T) {
	if !raceDetector {
		t.Skip("they run in this process")
	}
	binary := filepath.Join(t.TempDir(), "sqlite.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-race=false", "-c", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), binary, "-test.v", "-test.run", "^TestCrash_Power").CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

// skipUnderRace skips a test that runs in the child process without the race detector.
func skipUnderRace(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("runs in TestCrash_PowerTestsWithoutTheRaceDetector")
	}
}
