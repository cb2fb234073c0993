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

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// errConnectionLost is what a call returns of which nobody knows whether it took effect.
var errConnectionLost = errors.New("crashpoint: the line went dead")

// call is something that a replica wants of the store or of the world outside, and waits for.
type call struct {
	by   *replica
	what string
	make func()
	done chan error
}

// replica is the passage of one process in a simulation: what it wants waits until the scheduler lets it happen.
type replica struct {
	sim    *sim
	number int
	slot   int
	exec   *executor.Executor // nil until it has started; guarded by sim.mu
	dead   bool               // guarded by sim.mu
	asleep time.Time          // until when nothing of it happens
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

// sim is a simulation: replicas on one store, people, and a scheduler that does one thing after the other, as the seed says. It lives in a bubble
// of package synctest, so time passes only when everybody waits, and a day takes no longer than a second.
//
// Between two calls the code of a replica runs alone with what it has; so what a seed leaves open is the order of calls of the same name that one
// replica makes at the same moment.
type sim struct {
	t       *testing.T
	rules   rules
	rng     *rand.Rand
	store   *memory.Store
	outside *externalTarget
	slots   [2]*replica
	born    int

	mu      sync.Mutex
	waiting []*call
	late    []*call // of dead processes, and still on their way
	log     []string
	tally   map[string]int // of what happened

	people
}

func newSim(t *testing.T, rules rules, seed uint64) *sim {
	s := &sim{t: t, rules: rules, rng: rand.New(rand.NewPCG(seed, 4711)), store: memory.NewStore(nil), outside: newExternalTarget(), tally: make(map[string]int)}
	s.people.sim = s
	s.outside.watch = s.onEffect
	for slot := range s.slots {
		s.boot(slot)
	}
	return s
}

// note writes down what happens, for the story of a seed that fails.
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
			return // it died of it
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if !r.dead {
			r.exec = e
			e.StartWorkers()
		}
	}()
}

// kill ends a process. What it waits for does not happen, but for one call that may still be on its way.
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

// stop ends an executor in the background: whatever it waits for has to be told first that it is dead.
func stop(t *testing.T, e *executor.Executor) {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	go func() {
		if err := e.Stop(now); err != nil {
			t.Error(err)
		}
	}()
}

// ready are the calls that may happen now, in an order that goes by what they are.
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

// take removes a call from those that wait.
func (s *sim) removeWaiting(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(other *call) bool { return other == c })
}

// let makes a call happen.
func (s *sim) executeCall(c *call) {
	s.removeWaiting(c)
	c.make()
	c.done <- nil
}

// hiccup has a call to the store fail: it takes effect or not, and whoever made it does not know. An effect that fails is up to the author.
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

// alive are the replicas that can be spoken to.
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

// maxFaults is how long faults go on, in steps of the scheduler.
const maxFaults = 200

// run lets a simulation happen: first with everything that can go wrong, then without, until everything has come to an end.
func (s *sim) run() {
	defer s.shutDown()
	for range maxFaults {
		s.step()
	}
	s.runUntilQuiet()
	s.verify()
}

// end ends everything that is left.
func (s *sim) shutDown() {
	for _, r := range s.slots {
		s.kill(r, nil, before)
	}
	if s.looker != nil {
		stop(s.t, s.looker)
	}
	time.Sleep(time.Hour) // some pause before they try again, and only then find out that they are dead
}

// step does one thing.
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
		s.note("a replica sleeps")
		s.tally["sleeps"]++
	case dice < 14 && len(s.late) > 0:
		s.arrive(s.rng.IntN(len(s.late)))
	default:
		s.next(ready[s.rng.IntN(len(ready))])
	}
}

// next lets a call happen, if all goes well. The worse the moment, the more often it does not.
func (s *sim) next(c *call) {
	risk := 6 // of a hundred
	switch {
	case reads[c.what]:
		risk = 1
	case c.what == "Begin" || c.what == "End" || c.what == "Rest" || strings.HasPrefix(c.what, "outside"):
		risk = 18
	}
	switch dice := s.rng.IntN(100); {
	case dice < risk:
		s.crashDuring(c, modes[s.rng.IntN(len(modes))])
	case dice < risk+2:
		s.failCall(c)
	case dice < risk+4 && !reads[c.what]:
		c.by.asleep = time.Now().Add(40 * time.Second) // just before it, and for longer than its lease
		s.tally["sleeps"]++
	default:
		s.executeCall(c)
	}
}

// dies has a process die in a call, and starts another one in its place.
func (s *sim) crashDuring(c *call, how mode) {
	s.note("death", string(how), c.what)
	s.tally["deaths"]++
	if how == after {
		c.make()
	}
	s.kill(c.by, c, how)
	s.boot(c.by.slot)
}

// pause lets time pass: moments, leases, or more than anybody waits for an answer.
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

// block sees to it that a call of a key that is still on its way does not arrive. Whoever says that something did not happen has done that.
func (s *sim) block(key string) {
	s.late = slices.DeleteFunc(s.late, func(c *call) bool { return strings.HasSuffix(c.what, key) })
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(c *call) bool {
		blocked := strings.HasPrefix(c.what, "outside") && strings.HasSuffix(c.what, key)
		if blocked {
			c.done <- errRefused
		}
		return blocked
	})
}

// maxQuietSteps is how many steps it may take until everything has come to an end, once nothing goes wrong any more.
const maxQuietSteps = 5000

// calm lets everything come to an end: everybody is awake, and people answer what is asked.
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
		case answered: // and what came of it did not take everybody further, as if it was too late
			answered = false
			time.Sleep(20 * time.Second)
		default:
			answered = true
			s.answerOne()
		}
	}
	s.t.Errorf("I17: it does not come to an end: %+v", s.runs())
}

// quiet reports whether every run waits for people, or is over, and nobody has said anything that is under way.
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

// runs are all that there are.
func (s *sim) runs() []store.Run {
	all, err := s.store.List(s.t.Context(), account, store.RunFilter{Limit: 1000})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// settled reports whether every run is over, and everybody has their answer.
func (s *sim) settled() bool {
	for _, run := range s.runs() {
		if run.Status.Active() {
			return false
		}
	}
	return s.allAnswered()
}
