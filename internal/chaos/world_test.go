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

	"github.com/fermata-go/fermata/desk"
)

// world is a test: replicas, people and the outside.
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

	over context.Context // outcomeResults when nobody waits for anything any more
	end  context.CancelFunc

	phases []phase // at which replicas are hit
	traps  map[phase]chan *replica

	mu     sync.Mutex
	due    []time.Time // deadlines that somebody has seen
	faulty []string    // what was wrong on the way
}

// plan is how a world is made.
type plan struct {
	protocol protocol
	slots    int
	store    func(slot int) string // what the replica of a slot opens
	errands  int                   // at a time
	accounts []string              // whose errands they are; none is account
	phases   []phase               // at which replicas are hit; none is those of orders
}

// lease is how long a replica keeps a run without a word. Everything else is scaled to it.
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
		if dice.IntN(3) == 0 && p.protocol != protocolDesk { // what such a replica asks is soon over its deadline
			config.Timeout = 2 * lease
		}
		return config
	})
	t.Cleanup(w.client.CloseIdleConnections)
	t.Cleanup(w.end)
	return w
}

// seedOf is what all choices of a test begin with.
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

// dice are the choices of one who takes part.
func (w *world) random(who uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, who)) }

// now is the time since the world began.
func (w *world) now() time.Duration { return time.Since(w.began) }

// fault notes that something is wrong already.
func (w *world) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faulty = append(w.faulty, fmt.Sprintf(format, args...))
}

// deadlines notes when something is due, for those who like to be there.
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

// soon is a deadline that has not passed yet.
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

// populate lets people work. The function that it returns waits until all errands are settled, or the world is over.
func (w *world) populate(people int) (wait func()) {
	var working sync.WaitGroup
	for n := range people {
		p := &person{world: w, name: fmt.Sprintf("person-%d", n+1), rng: w.random(uint64(n + 1))}
		working.Go(p.work)
	}
	return working.Wait
}
