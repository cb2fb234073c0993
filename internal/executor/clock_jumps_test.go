package executor_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/testtier"
)

// The route of requests that are asked while the clock jumps.
const (
	jumpsEnd   = 4 * time.Hour
	jumpsGrace = 30 * time.Minute
	jumpsPoll  = 30 * time.Second
	jumpsMost  = 12 * time.Hour
)

// jumping is a set of replicas whose store clock is set wrong now and then, sometimes for so long
// that it is trusted.
type jumping struct {
	t     *testing.T
	rng   *rand.Rand
	ahead atomic.Int64 // of the store's clock
	store *memory.Store
	dropper
	replicas [2]*executor.Executor
	asked    map[string]*waiting
	story    []string
}

// waiting is an open request.
type waiting struct {
	at    time.Time // true time of the question
	jumps int       // of the clock since then
	over  bool
}

func (j *jumping) tell(format string, args ...any) {
	j.story = append(j.story, fmt.Sprintf("%s %+v: ", time.Now().Format("02 15:04:05"), time.Duration(j.ahead.Load()))+fmt.Sprintf(format, args...))
}

func (j *jumping) boot(slot int) {
	j.replicas[slot] = j.executor(j.t, j.store, func(c *executor.Config) {
		quick(jumpsEnd, jumpsGrace)(c)
		c.Poll = jumpsPoll
	})
	j.replicas[slot].StartWorkers()
}

func (j *jumping) jump(to time.Duration) {
	if to.Abs() < 2*time.Minute {
		to = 0
	}
	j.ahead.Store(int64(to))
	for _, w := range j.asked {
		w.jumps++
	}
	j.tell("the clock jumps")
	// until the guard has read the clock: a jump that is not read has no effect
	time.Sleep(jumpsPoll + time.Second)
}

func (j *jumping) ask() {
	key := fmt.Sprint("drop-", len(j.asked)+1)
	j.asked[key] = &waiting{at: time.Now()}
	waits(j.t, began(j.t, j.replicas[j.rng.IntN(2)], key, "inproc:drop", `{"table":"users"}`))
	j.tell("%s is asked", key)
}

// decide approves an open request. By a wrong clock this may be too late; then the request stays
// open.
func (j *jumping) decide(n int) {
	for _, key := range slices.Sorted(maps.Keys(j.asked)) {
		w := j.asked[key]
		if w.over {
			continue
		}
		e := j.replicas[j.rng.IntN(2)]
		request := decision(fmt.Sprint(key, "-", n), "approve")
		request.StateKey = key
		outcome, err := e.Run(j.t.Context(), addressed(j.t, e, request))
		refused, late := errors.AsType[*executor.RefusedError](err)
		switch {
		case late && refused.Result == store.ResultExpired:
			j.tell("%s: the approval is too late", key)
		case err != nil:
			j.t.Fatalf("%s: %v", key, err)
		default:
			_, w.over = outcome.(fermata.Completed)
			j.tell("%s: yes", key)
		}
		return
	}
}

// check verifies that nothing expired before its time, or before its grace period if the clock has
// jumped since.
func (j *jumping) check() {
	synctest.Wait()
	for key, w := range j.asked {
		run, err := j.store.Get(j.t.Context(), "acme", key)
		if err != nil {
			j.t.Fatal(err)
		}
		if w.over || run.Status == store.StatusWaiting {
			continue
		}
		least := jumpsEnd
		if w.jumps > 0 {
			least = jumpsGrace
		}
		w.over = true
		j.tell("%s is %s", key, run.Status)
		if open := time.Since(w.at); run.Status != store.StatusFailed || open < least-time.Minute {
			j.t.Errorf("I10: %s is %s after %s", key, run.Status, open)
		}
	}
}

func (j *jumping) step(n int) {
	switch j.rng.IntN(8) {
	case 0, 1:
		j.ask()
	case 2:
		j.jump(0)
	case 3:
		ahead := min(time.Duration(j.rng.ExpFloat64()*float64(4*time.Hour)), jumpsMost)
		j.jump([]time.Duration{ahead, -ahead}[j.rng.IntN(2)])
	case 4:
		slot := j.rng.IntN(2)
		if err := j.replicas[slot].Stop(j.t.Context()); err != nil {
			j.t.Fatal(err)
		}
		j.boot(slot)
		j.tell("a replica is replaced")
	case 5:
		j.decide(n)
	default:
		time.Sleep(time.Duration(j.rng.Int64N(int64(40 * time.Minute))))
	}
}

// Whatever the store's clock does, no request expires before people had time to decide it. Once the
// clock is right, every request expires in the end. FERMATA_JUMPS_SEED repeats one sequence.
func TestProperty_ClockJumps(t *testing.T) {
	first, seeds := uint64(0), uint64(5)
	if text := os.Getenv("FERMATA_JUMPS_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, seeds = n, 1
	} else if testtier.IsSoak() {
		seeds = 20_000 // or as many as the tests have time for
	}
	tried := uint64(0)
	for deadline, limited := t.Deadline(); tried < seeds && !t.Failed() && !(limited && time.Until(deadline) < time.Minute); tried++ {
		synctest.Test(t, func(t *testing.T) { jumps(t, first+tried) })
	}
	t.Logf("%d seeds", tried)
}

func jumps(t *testing.T, seed uint64) {
	j := &jumping{t: t, rng: rand.New(rand.NewPCG(seed, 7)), asked: make(map[string]*waiting)}
	j.store = memory.NewStore(func() time.Time { return time.Now().Add(time.Duration(j.ahead.Load())) })
	defer func() {
		if t.Failed() {
			t.Logf("FERMATA_JUMPS_SEED=%d\n%s", seed, strings.Join(j.story, "\n"))
		}
	}()
	j.boot(0)
	j.boot(1)
	for n := range 60 {
		j.step(n)
		j.check()
	}
	j.jump(0)
	time.Sleep(jumpsMost + jumpsEnd + 2*time.Hour)
	j.check()
	for key, w := range j.asked {
		if !w.over {
			t.Errorf("I17: %s is still open", key)
		}
	}
}
