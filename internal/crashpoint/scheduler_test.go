package crashpoint

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/simtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// errConnectionLost is the error of a call with an unknown result.
var errConnectionLost = errors.New("crashpoint: connection lost")

// call is a call of a replica to the store or a target that waits for the scheduler.
type call struct {
	by   *replica
	what string
	make func()
	done chan error
}

// replica is the passage of one process in a simulation: its calls wait until the scheduler
// executes them.
type replica struct {
	sim    *sim
	number int
	slot   int
	exec   *executor.Executor // nil until it has started; guarded by sim.mu
	dead   bool               // guarded by sim.mu
	asleep time.Time          // no calls are executed until then
}

func (r *replica) do(what string, make_ func()) error {
	c := &call{r, what, make_, make(chan error, 1)}
	r.sim.mu.Lock()
	if r.dead {
		r.sim.mu.Unlock()
		return errDead
	}
	r.sim.waiting = append(r.sim.waiting, c)
	r.sim.mu.Unlock()
	return <-c.done
}

// sim is a simulation: replicas on one store, people, and a scheduler that does one step at a time,
// as the seed says. It runs in a synctest bubble, so time passes only when all goroutines wait.
//
// Between two calls the code of a replica runs alone. A seed does not determine the order of calls
// with the same name that one replica makes at the same time.
type sim struct {
	t       *testing.T
	rules   simtest.FixedPolicy
	rng     *rand.Rand
	store   *memory.Store
	outside *target
	slots   [2]*replica
	born    int

	mu      sync.Mutex
	waiting []*call
	late    []*call // of dead processes, in transit
	log     []string
	tally   map[string]int // of events

	people
}

func newSim(t *testing.T, rules simtest.FixedPolicy, seed uint64) *sim {
	s := &sim{t: t, rules: rules, rng: rand.New(rand.NewPCG(seed, 4711)), store: memory.NewStore(nil), outside: new(target), tally: make(map[string]int)}
	s.people.sim = s
	s.outside.Executed = s.onEffect
	for slot := range s.slots {
		s.boot(slot)
	}
	return s
}

// note logs an event, for the report of a failing seed.
func (s *sim) note(words ...string) { s.log = append(s.log, strings.Join(words, " ")) }

// boot starts a new process.
func (s *sim) boot(slot int) {
	r := &replica{sim: s, number: s.born, slot: slot}
	s.born++
	s.slots[slot] = r
	h := &effectClient{outside: s.outside, way: r}
	c := config(s.t, &port{inner: s.store, way: r}, h.flows(s.t))
	c.Desk.Policy, c.Lease, c.Poll, c.RequestTimeout = s.rules, 30*time.Second, 20*time.Second, 20*time.Minute
	c.SaveDelay = []time.Duration{-1, 25 * time.Millisecond, time.Hour}[s.rng.IntN(3)]
	go func() {
		e, err := executor.New(c)
		for errors.Is(err, errConnectionLost) {
			e, err = executor.New(c)
		}
		if err != nil {
			return // it crashed at startup
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if !r.dead {
			r.exec = e
			e.StartWorkers()
		}
	}()
}

// kill kills a process. Its waiting calls do not take effect, except one that may be in transit.
func (s *sim) kill(r *replica, last *call, how mode) {
	s.mu.Lock()
	r.dead = true
	var rest []*call
	for _, c := range s.waiting {
		switch {
		case c.by != r:
			rest = append(rest, c)
		case c == last && how == late:
			s.late = append(s.late, c)
			c.done <- errDead
		default:
			c.done <- errDead
		}
	}
	s.waiting = rest
	e := r.exec
	s.mu.Unlock()
	if e != nil {
		stop(s.t, e)
	}
}

// stop stops an executor in the background: its waiting calls must first learn that it is dead.
func stop(t *testing.T, e *executor.Executor) {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	go func() {
		if err := e.Stop(now); err != nil {
			t.Error(err)
		}
	}()
}

// ready returns the calls that can be executed now, in a deterministic order.
func (s *sim) ready() []*call {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*call
	for _, c := range s.waiting {
		if !c.by.asleep.After(time.Now()) {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b *call) int {
		return cmp.Or(cmp.Compare(a.by.number, b.by.number), cmp.Compare(a.what, b.what))
	})
	return all
}

// removeWaiting removes a call from the waiting ones.
func (s *sim) removeWaiting(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(other *call) bool { return other == c })
}

// executeCall executes a call.
func (s *sim) executeCall(c *call) {
	s.removeWaiting(c)
	c.make()
	c.done <- nil
}

// failCall fails a call to the store: it takes effect or not, and the caller does not know. A
// failing effect is up to the author.
func (s *sim) failCall(c *call) {
	if strings.HasPrefix(c.what, "outside") {
		return
	}
	s.note("hiccup", c.what)
	s.tally["hiccups"]++
	s.removeWaiting(c)
	if s.rng.IntN(2) == 0 {
		c.make()
	}
	c.done <- errConnectionLost
}

// alive returns the running replicas.
func (s *sim) alive() (all []*replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.slots {
		if r.exec != nil && !r.dead {
			all = append(all, r)
		}
	}
	return all
}

// maxFaults is the number of scheduler steps with faults.
const maxFaults = 200

// run runs a simulation: first with faults, then without, until everything has ended.
func (s *sim) run() {
	defer s.shutDown()
	for range maxFaults {
		s.step()
	}
	s.runUntilQuiet()
	s.verify()
}

// shutDown stops everything that is left.
func (s *sim) shutDown() {
	for _, r := range s.slots {
		s.kill(r, nil, before)
	}
	if s.looker != nil {
		stop(s.t, s.looker)
	}
	time.Sleep(time.Hour) // some wait before a retry and only then learn that they are dead
}

// step does one step.
func (s *sim) step() {
	ready := s.ready()
	dice := s.rng.IntN(100)
	switch {
	case dice < 4 || s.quiet() && dice < 70:
		s.act()
	case len(ready) == 0 || dice < 8:
		s.pause()
	case dice < 9:
		r := ready[s.rng.IntN(len(ready))].by
		r.asleep = time.Now().Add(time.Duration(s.rng.IntN(120)) * time.Second)
		s.note("a replica pauses")
		s.tally["sleeps"]++
	case dice < 14 && len(s.late) > 0:
		s.arrive(s.rng.IntN(len(s.late)))
	default:
		s.next(ready[s.rng.IntN(len(ready))])
	}
}

// next executes a call, unless a fault is injected. Faults are more likely at critical calls.
func (s *sim) next(c *call) {
	risk := 6 // percent
	switch {
	case reads[c.what]:
		risk = 1
	case c.what == "BeginEffect" || c.what == "EndEffect" || c.what == "EndExecution" || strings.HasPrefix(c.what, "outside"):
		risk = 18
	}
	switch dice := s.rng.IntN(100); {
	case dice < risk:
		s.crashDuring(c, modes[s.rng.IntN(len(modes))])
	case dice < risk+2:
		s.failCall(c)
	case dice < risk+4 && !reads[c.what]:
		// just before the call, for longer than its lease
		c.by.asleep = time.Now().Add(40 * time.Second)
		s.tally["sleeps"]++
	default:
		s.executeCall(c)
	}
}

// crashDuring crashes a process in a call, and starts another one.
func (s *sim) crashDuring(c *call, how mode) {
	s.note("death", string(how), c.what)
	s.tally["deaths"]++
	if how == after {
		c.make()
	}
	s.kill(c.by, c, how)
	s.boot(c.by.slot)
}

// pause lets time pass: moments, leases, or more than a request timeout.
func (s *sim) pause() {
	pauses := []time.Duration{time.Second, 5 * time.Second, 20 * time.Second, 35 * time.Second, 35 * time.Second, 40 * time.Second, 8 * time.Minute, 21 * time.Minute}
	time.Sleep(pauses[s.rng.IntN(len(pauses))])
}

// arrive lets a call of a dead process arrive.
func (s *sim) arrive(n int) {
	c := s.late[n]
	s.late = slices.Delete(s.late, n, n+1)
	s.note("late", c.what)
	s.tally["late calls"]++
	c.make()
}

// block makes sure that a call with a key that is in transit does not arrive. A person who says
// that an effect did not happen has done this.
func (s *sim) block(key string) {
	s.late = slices.DeleteFunc(s.late, func(c *call) bool { return strings.HasSuffix(c.what, key) })
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(c *call) bool {
		blocked := strings.HasPrefix(c.what, "outside") && strings.HasSuffix(c.what, key)
		if blocked {
			c.done <- simtest.ErrRefused
		}
		return blocked
	})
}

// maxQuietSteps is the maximum number of steps without faults until everything has ended.
const maxQuietSteps = 5000

// runUntilQuiet runs without faults until everything has ended: all replicas work, and people
// answer.
func (s *sim) runUntilQuiet() {
	for len(s.late) > 0 {
		s.arrive(0)
	}
	for _, r := range s.slots {
		r.asleep = time.Time{}
	}
	answered := false
	for range maxQuietSteps {
		ready := s.ready()
		switch {
		case len(ready) > 0:
			s.executeCall(ready[0])
		case s.settled():
			return
		case answered: // and the run did not continue, as if it was too late
			answered = false
			time.Sleep(20 * time.Second)
		default:
			answered = true
			s.answerOne()
		}
	}
	s.t.Errorf("I17: it does not end: %+v", s.runs())
}

// quiet reports whether every run waits for people or has ended, and no submission is in progress.
func (s *sim) quiet() bool {
	if s.underWay() {
		return false
	}
	for _, run := range s.runs() {
		if run.Status == store.StatusReady || run.Status == store.StatusRunning {
			return false
		}
	}
	return true
}

// runs returns all runs.
func (s *sim) runs() []store.Run {
	all, err := s.store.List(s.t.Context(), account, store.RunFilter{Limit: 1000})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// settled reports whether every run has ended and every submission has a reply.
func (s *sim) settled() bool {
	for _, run := range s.runs() {
		if run.Status.Active() {
			return false
		}
	}
	return s.allAnswered()
}
