package season

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
	seasons(t, keptInMemory, pace{racing: stay{40, 14}, usual: stay{450, 42}, soak: stay{500, 56}, total: 95_000})
}

func TestProperty_MonthsOfApprovalsInAFile(t *testing.T) {
	seasons(t, keptInFile, pace{racing: stay{6, 1}, usual: stay{200, 21}, soak: stay{500, 21}, total: 5_000})
}

// stay is how many requests a season has, and for how many days runs are started.
type stay struct{ requests, days int }

// pace is how long seasons are, and how many requests there are in all seasons of a soak.
type pace struct {
	racing, usual, soak stay
	total               int
}

// seasons plays one season, or in a soak as many as it takes.
func seasons(t *testing.T, where func(*testing.T) kept, p pace) {
	seed := number(t, "FERMATA_SEASON_SEED", int(rand.Uint32()))
	one := p.usual
	if racing {
		one = p.racing
	}
	if os.Getenv("FERMATA_SOAK") == "" || os.Getenv("FERMATA_SEASON_SEED") != "" {
		play(t, uint64(seed), number(t, "FERMATA_SEASON_SIZE", one.requests), number(t, "FERMATA_SEASON_DAYS", one.days), where)
		return
	}
	var played, requests atomic.Int64
	begun, total := time.Now(), number(t, "FERMATA_SEASON_TOTAL", p.total)
	for worker := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprintf("worker %d", worker), func(t *testing.T) {
			t.Parallel()
			for requests.Load() < int64(total) && !t.Failed() {
				n := played.Add(1)
				all := requests.Add(int64(play(t, uint64(seed)+uint64(n), p.soak.requests, p.soak.days, where)))
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
