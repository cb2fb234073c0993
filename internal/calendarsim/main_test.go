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
)

// One season and as many as a soak wants; with the same people, rules and mishaps on both kinds of stores.

func TestProperty_MonthsOfApprovalsInMemory(t *testing.T) {
	runSimulations(t, memoryStorage, workload{racing: scale{40, 14}, usual: scale{450, 42}, soak: scale{500, 56}, total: 95_000})
}

func TestProperty_MonthsOfApprovalsInSQLite(t *testing.T) {
	runSimulations(t, fileStorage, workload{racing: scale{6, 1}, usual: scale{200, 21}, soak: scale{500, 21}, total: 5_000})
}

// scale is how many requests a season has, and for how many days runs are started.
type scale struct{ requests, days int }

// workload is how long seasons are, and how many requests there are in all seasons of a soak.
type workload struct {
	racing, usual, soak scale
	total               int
}

// runSimulations plays one season, or in a soak as many as it takes.
func runSimulations(t *testing.T, where func(*testing.T) storage, p workload) {
	seed := number(t, "FERMATA_SEASON_SEED", int(rand.Uint32()))
	one := p.usual
	if raceEnabled {
		one = p.racing
	}
	if os.Getenv("FERMATA_SOAK") == "" || os.Getenv("FERMATA_SEASON_SEED") != "" {
		runSimulation(t, uint64(seed), number(t, "FERMATA_SEASON_SIZE", one.requests), number(t, "FERMATA_SEASON_DAYS", one.days), where)
		return
	}
	var played, requests atomic.Int64
	begun, total := time.Now(), number(t, "FERMATA_SEASON_TOTAL", p.total)
	for worker := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprintf("worker %d", worker), func(t *testing.T) {
			t.Parallel()
			for requests.Load() < int64(total) && !t.Failed() {
				n := played.Add(1)
				all := requests.Add(int64(runSimulation(t, uint64(seed)+uint64(n), p.soak.requests, p.soak.days, where)))
				fmt.Fprintf(os.Stderr, "%s: %d seasons, %d of %d requests, %s\n", t.Name(), n, all, total, time.Since(begun).Round(time.Second))
			}
		})
	}
}

// number is one from the environment, or another one.
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
