//go:build unix

package sqlite

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// seedVariable names the seed of the run that is to be repeated.
const seedVariable = "FERMATA_POWER_SEED"

// newPowerSeed returns the seed to begin with, and tells it. It is always the same, but in a soak, which is to find what is new.
func newPowerSeed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(1)
	if soak() {
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

func soak() bool { return os.Getenv("FERMATA_SOAK") != "" }

// scaledCount is how often something is done.
func scaledCount(times, inSoak int) int {
	if soak() {
		return inSoak
	}
	return times
}

// The race detector makes SQLite, which is C in the clothes of Go, some thirty times slower, and there is nothing for it to
// find here: one goroutine at a time does it all. So under it these tests run in a process of their own, without it.
func TestCrash_PowerTestsWithoutTheRaceDetector(t *testing.T) {
	if !raceDetector {
		t.Skip("they run by themselves")
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

// skipUnderRace skips a test that runs in the process without the race detector.
func skipUnderRace(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("runs in TestCrash_PowerTestsWithoutTheRaceDetector")
	}
}
