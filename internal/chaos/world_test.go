//go:build unix

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
)

// world is a test: replicas, people and the sink.
type world struct {
	t       *testing.T
	seed    uint64
	began   time.Time
	fleet   *fleet
	sink    *sink
	board   taskBoard
	doubts  doubts
	history history
	client  *http.Client

	over context.Context // closed when nothing is waited for any more
	end  context.CancelFunc

	phases []phase // in which replicas are hit
	traps  map[phase]chan *replica

	mu     sync.Mutex
	due    []time.Time // deadlines that were seen
	faulty []string    // errors during the test
}

// plan is the configuration of a test.
type plan struct {
	protocol protocol
	slots    int
	store    func(slot int) string // the store name for the replica of a slot
	errands  int                   // parallel tasks
	accounts []string              // the accounts of the tasks; defaults to account
	phases   []phase               // in which replicas are hit; defaults to those of orders
}

// lease is the lease duration of a replica. Everything else is scaled to it.
const lease = 400 * time.Millisecond

func newWorld(t *testing.T, p plan) *world {
	t.Helper()
	w := &world{
		t: t, seed: seedOf(t), began: time.Now(), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}},
		board: taskBoard{wanted: p.errands, accounts: p.accounts, busy: make(map[*task]bool), seen: make(map[desk.Outcome]int)}, phases: p.phases, doubts: doubts{upTo: make(map[string]int64)}, traps: make(map[phase]chan *replica),
	}
	if w.phases == nil {
		w.phases = phasesOfOrders
	}
	for _, at := range w.phases {
		w.traps[at] = make(chan *replica)
	}
	w.over, w.end = context.WithCancel(context.Background())
	w.sink = newSink(t, w.now, 3*lease)
	trips := func(at phase) func(life int64) {
		return func(life int64) {
			if l := w.fleet.find(life); l != nil {
				w.trip(at, l)
			}
		}
	}
	w.sink.called, w.sink.heard = trips(duringEffect), trips(duringNotice)
	dice := w.random(1 << 32)
	w.fleet = newFleet(t, p.slots, func(slot int) replicaConfig {
		config := replicaConfig{Protocol: p.protocol, Store: p.store(slot), Sink: w.sink.server.URL, Lease: lease, Timeout: time.Hour}
		// requests of such a replica are soon past their deadline
		if dice.IntN(3) == 0 && p.protocol != protocolDesk {
			config.Timeout = 2 * lease
		}
		return config
	})
	t.Cleanup(w.client.CloseIdleConnections)
	t.Cleanup(w.end)
	return w
}

// seedOf returns the seed of all random choices of a test.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("FERMATA_CHAOS_SEED")
	if text == "" {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("FERMATA_CHAOS_SEED: %v", err)
	}
	return seed
}

// random returns the random choices of one participant.
func (w *world) random(who uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, who)) }

// now returns the time since the start of the test.
func (w *world) now() time.Duration { return time.Since(w.began) }

// fault records an error during the test.
func (w *world) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faulty = append(w.faulty, fmt.Sprintf(format, args...))
}

// deadlines records deadlines, for people who act near them.
func (w *world) deadlines(open []question) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range open {
		if left := time.Until(q.Deadline); left > 0 && left < 4*lease {
			w.due = append(w.due, q.Deadline)
		}
	}
	w.due = w.due[max(0, len(w.due)-20):]
}

// nextDeadline returns a deadline that has not passed yet.
func (w *world) nextDeadline() (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.due {
		if time.Until(at) > 0 {
			return at, true
		}
	}
	return time.Time{}, false
}

// populate lets people work. The returned function waits until all tasks are settled, or the test
// has ended.
func (w *world) populate(people int) (wait func()) {
	var working sync.WaitGroup
	for n := range people {
		p := &person{world: w, name: fmt.Sprintf("person-%d", n+1), rng: w.random(uint64(n + 1))}
		working.Go(p.work)
	}
	return working.Wait
}
