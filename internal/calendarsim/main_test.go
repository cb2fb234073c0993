package calendarsim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/simtest"
	"github.com/fermata-go/fermata/internal/testtier"
)

// One simulation, or as many as a soak needs, with the same people, rules and faults on both
// stores.

func TestProperty_MonthsOfApprovalsInMemory(t *testing.T) {
	runSimulations(t, memoryStorage, workload{racing: scale{40, 14}, commit: scale{112, 14}, nightly: scale{450, 42}, soak: scale{500, 56}, total: 95_000})
}

func TestProperty_MonthsOfApprovalsInSQLite(t *testing.T) {
	runSimulations(t, fileStorage, workload{racing: scale{6, 1}, commit: scale{50, 7}, nightly: scale{200, 21}, soak: scale{500, 21}, total: 5_000})
}

// scale is the number of requests of a simulation, and the number of days on which runs are
// started.
type scale struct{ requests, days int }

// workload is the scale of a simulation, and the total number of requests of a soak.
type workload struct {
	racing, commit, nightly, soak scale
	total                         int
}

// runSimulations runs one simulation, or in a soak as many as needed.
func runSimulations(t *testing.T, where func(*testing.T) storage, p workload) {
	seed, one := 1, p.commit
	if testtier.IsNightly() {
		seed, one = int(rand.Uint32()), p.nightly
	}
	if simtest.RaceEnabled {
		one = p.racing
	}
	seed = number(t, "FERMATA_CALENDARSIM_SEED", seed)
	if !testtier.IsSoak() || os.Getenv("FERMATA_CALENDARSIM_SEED") != "" {
		runSimulation(t, uint64(seed), number(t, "FERMATA_CALENDARSIM_SIZE", one.requests), number(t, "FERMATA_CALENDARSIM_DAYS", one.days), where)
		return
	}
	var played, requests atomic.Int64
	begun, total := time.Now(), number(t, "FERMATA_CALENDARSIM_TOTAL", p.total)
	for worker := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprintf("worker %d", worker), func(t *testing.T) {
			t.Parallel()
			for requests.Load() < int64(total) && !t.Failed() {
				n := played.Add(1)
				all := requests.Add(int64(runSimulation(t, uint64(seed)+uint64(n), p.soak.requests, p.soak.days, where)))
				fmt.Fprintf(os.Stderr, "%s: %d simulations, %d of %d requests, %s\n", t.Name(), n, all, total, time.Since(begun).Round(time.Second))
			}
		})
	}
}

// number returns a number from the environment, or a default.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
