package crashpoint

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata/internal/simtest"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/internal/testtier"
)

// seedVariable is the environment variable for repeating one schedule.
const seedVariable = "FERMATA_CRASHPOINT_SEED"

// seeds returns the range of seeds: as many as time allows. A soak starts at a new seed.
func seeds(t *testing.T) (first, count uint64) {
	if text := os.Getenv(seedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return seed, 1
	}
	switch {
	case soak:
		return uint64(time.Now().Unix()) << 24, 1_000_000
	case simtest.RaceEnabled:
		return 0, 200
	}
	return 0, uint64(testtier.Count(400, 4_000, 0))
}

// In any order of events, with any crashes, pauses and errors, the replies, the executed calls and
// the final state agree. FERMATA_CRASHPOINT_SEED repeats one schedule.
func TestProperty_AnySchedule(t *testing.T) {
	first, count := seeds(t)
	rules := loadRules(t, anyone)
	var tried atomic.Uint64
	var mu sync.Mutex
	tally := make(map[string]int)
	t.Run("seeds", func(t *testing.T) {
		for n := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				for !t.Failed() && !outOfTime(t) {
					n := tried.Add(1) - 1
					if n >= count {
						return
					}
					happened := schedule(t, rules, first+n)
					mu.Lock()
					for what, times := range happened {
						tally[what] += times
					}
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%d seeds from %d", min(tried.Load(), count), first)
	for _, what := range slices.Sorted(maps.Keys(tally)) {
		t.Logf("%8d %s", tally[what], what)
	}
}

// outOfTime reports whether the tests must end soon.
func outOfTime(t *testing.T) bool {
	deadline, ok := t.Deadline()
	return ok && time.Until(deadline) < time.Minute
}

func schedule(t *testing.T, rules simtest.FixedPolicy, seed uint64) (happened map[string]int) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, rules, seed)
		happened = s.tally
		defer func() {
			if t.Failed() {
				t.Logf("seed %d:\n%s", seed, strings.Join(s.log, "\n"))
			}
		}()
		s.run()
	})
	return happened
}
