//go:build unix

package chaos

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-go/fermata/internal/pgtest"
)

// phase is a point at which a replica can be hit.
type phase string

const (
	duringStart        = phase(doStart)
	duringDecide       = phase(doDecide)
	duringAct          = phase(doAct)
	duringEffect phase = "effect"
	duringNotice phase = "notice"
	duringTimer  phase = "timer"
	duringBoot   phase = "boot"
	whenever     phase = "whenever"
)

var (
	phasesOfOrders = []phase{duringStart, duringDecide, duringEffect, duringTimer, duringBoot, whenever}
	phasesOfDesk   = []phase{duringStart, duringDecide, duringAct, duringEffect, duringNotice, duringTimer, duringBoot, whenever}
)

// trip tells a waiting nemesis that a replica has reached a phase.
func (w *world) trip(at phase, l *replica) {
	select {
	case w.traps[at] <- l:
	default:
	}
}

// nemesis injects faults into processes, databases and networks.
type nemesis struct {
	*world
	rng     *rand.Rand
	cluster *pgtest.Cluster // nil for SQLite
	proxies []*proxy        // by slot
	calm    time.Duration   // the maximum time between two faults

	mu   sync.Mutex
	cuts []cut

	kills               map[phase]int
	all, terms, crashes int
	stops, disturbed    atomic.Int64
}

func newNemesis(w *world) *nemesis {
	n := &nemesis{world: w, rng: w.random(1 << 33), calm: lease, kills: make(map[phase]int)}
	if len(w.fleet.slots) == 1 { // only one fault at a time
		n.calm = 2 * lease
	}
	return n
}

// cut is a period in which the replica of a slot had no reliable database; all of them, if the slot
// is everywhere.
type cut struct {
	slot     int
	from, to time.Duration // since the start of the test
}

const everywhere = -1

// cutConnection records that a replica is cut off from now on. The returned function ends that.
func (n *nemesis) cutConnection(slot int) (end func()) {
	from := n.now()
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.cuts = append(n.cuts, cut{slot, from, n.now()})
	}
}

// run kills so many replicas. In parallel, others are stopped, and the network has faults. It
// begins with one fault of each kind; the others are random.
func (n *nemesis) run(cycles int) {
	stops, disturbances := &side{do: n.stop, rng: n.random(1 << 34)}, &side{do: n.disturb, rng: n.random(1 << 35)}
	defer stops.wait()
	defer disturbances.wait()
	first := n.eachKind(stops, disturbances)
	report := time.Now()
	for n.all < cycles && !n.t.Failed() {
		if len(first) > 0 {
			first[0]()
			first = first[1:]
			continue
		}
		switch dice := n.rng.IntN(100); {
		case dice < 6:
			n.term()
		case dice < 10 && n.cluster != nil:
			n.crash()
		default:
			n.kill(n.phases[n.rng.IntN(len(n.phases))])
		}
		if n.rng.IntN(100) < 25 {
			stops.begin()
		}
		if n.proxies != nil && n.rng.IntN(100) < 60 {
			disturbances.begin()
		}
		if time.Since(report) > 10*time.Second {
			report = time.Now()
			n.t.Logf("%6.1fs  %s", n.now().Seconds(), n)
			if alive, trouble := n.history.alive(); !alive && n.now() > settleTimeout {
				n.t.Fatalf("no replies: %s\n%s", trouble, n.fleet.notes.of(""))
			}
		}
	}
}

// eachKind returns one fault of each kind, in random order.
func (n *nemesis) eachKind(stops, disturbances *side) []func() {
	faults := []func(){n.term, stops.begin}
	if n.cluster != nil {
		faults = append(faults, n.crash)
	}
	if n.proxies != nil {
		faults = append(faults, disturbances.begin)
	}
	for _, at := range n.phases {
		faults = append(faults, func() { n.kill(at) })
	}
	n.rng.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	return faults
}

// side is a fault in parallel to the kills, one at a time.
type side struct {
	do   func(rng *rand.Rand)
	rng  *rand.Rand
	done chan struct{}
}

// begin starts it, unless it is still in progress.
func (s *side) begin() {
	if s.done != nil {
		select {
		case <-s.done:
		default:
			return
		}
	}
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		s.do(s.rng)
	}()
}

func (s *side) wait() {
	if s.done != nil {
		<-s.done
	}
}

func (n *nemesis) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d kills (", n.all)
	for i, at := range n.phases {
		fmt.Fprintf(&text, "%s%s %d", map[bool]string{true: ", "}[i > 0], at, n.kills[at])
	}
	fmt.Fprintf(&text, "), %d stops, %d terms, %d database crashes, %d network faults", n.stops.Load(), n.terms, n.crashes, n.disturbed.Load())
	return text.String()
}

// sleepUpTo lets people work for a while.
func sleepUpTo(rng *rand.Rand, d time.Duration) { time.Sleep(time.Duration(rng.Int64N(int64(d)))) }

// kill kills a replica at a point that is wanted, and starts the next.
func (n *nemesis) kill(wanted phase) {
	l, at := n.ambush(n.rng, wanted, n.patience(wanted))
	l.kill()
	n.kills[at]++
	n.all++
	n.fleet.boot(l.slot)
	n.waitForTraffic()
}

// waitForTraffic lets people get some replies before the next fault.
func (n *nemesis) waitForTraffic() {
	for deadline := time.Now().Add(2 * openTimeout); n.anyReplica(n.rng) == nil; {
		if time.Now().After(deadline) {
			_, trouble := n.history.alive()
			n.t.Fatalf("no replica becomes ready: %s\n%s", trouble, n.fleet.notes.of(""))
		}
	}
	before, deadline := n.history.told(), time.Now().Add(4*lease)
	sleepUpTo(n.rng, n.calm)
	for n.history.told() < before+minReplies && time.Now().Before(deadline) {
		time.Sleep(lease / 20) // on a slow machine they need more time
	}
}

// minReplies is the number of replies that people should get between two faults.
const minReplies = 10

// patience returns how long to wait for a phase before a kill. Phases that were rarely hit get more
// time, because on a slow machine they are rare, and a test without them is not significant.
func (n *nemesis) patience(wanted phase) time.Duration {
	if n.kills[wanted] <= n.all/100 {
		return 25 * lease
	}
	return lease
}

// ambush waits until a replica has reached a phase, with a timeout, and returns it with the phase
// in which it is hit.
func (n *nemesis) ambush(rng *rand.Rand, wanted phase, patience time.Duration) (l *replica, at phase) {
	slot := rng.IntN(len(n.fleet.slots))
	switch wanted {
	case duringStart, duringDecide, duringAct, duringEffect, duringNotice:
		select {
		case l := <-n.traps[wanted]:
			sleepUpTo(rng, 25*time.Millisecond)
			return n.fleet.current(l.slot), wanted
		case <-time.After(patience):
		}
	case duringTimer:
		for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(lease / 20) {
			if due, ok := n.nextDeadline(); ok {
				time.Sleep(time.Until(due))
				sleepUpTo(rng, 60*time.Millisecond)
				return n.fleet.current(slot), wanted
			}
		}
	case duringBoot: // the next process is hit before it is ready
		n.fleet.current(slot).kill()
		n.kills[whenever]++
		n.all++
		l := n.fleet.boot(slot)
		sleepUpTo(rng, 150*time.Millisecond)
		return l, wanted
	case whenever:
	}
	return n.fleet.current(slot), whenever
}

// stop freezes a replica for longer than its lease, like a busy host or a suspended laptop.
func (n *nemesis) stop(rng *rand.Rand) {
	l, _ := n.ambush(rng, []phase{duringStart, duringDecide, duringEffect, whenever}[rng.IntN(4)], lease)
	n.stops.Add(1)
	if err := l.freeze(lease + time.Duration(rng.Int64N(int64(2*lease)))); err != nil {
		n.fault("%v", err)
	}
}

// term terminates a replica, like a deployment.
func (n *nemesis) term() {
	l := n.fleet.current(n.rng.IntN(len(n.fleet.slots)))
	<-l.ready
	l.terminate()
	n.terms++
	n.fleet.boot(l.slot)
}

// crash kills the database.
func (n *nemesis) crash() {
	defer n.cutConnection(everywhere)()
	n.cluster.Kill(n.t)
	n.crashes++
	sleepUpTo(n.rng, lease)
	n.cluster.Restart(n.t)
	sleepUpTo(n.rng, 2*lease)
}

// disturb injects network faults between one replica and the database for a while.
func (n *nemesis) disturb(rng *rand.Rand) {
	slot := rng.IntN(len(n.proxies))
	defer n.cutConnection(slot)()
	p := n.proxies[slot]
	n.disturbed.Add(1)
	switch rng.IntN(5) {
	case 0:
		p.reset()
		return
	case 1:
		p.set(networkFaults{latency: time.Duration(rng.Int64N(int64(lease / 4)))})
	case 2:
		p.set(networkFaults{latency: time.Millisecond, slice: 1 + rng.IntN(40)})
	case 3:
		// delayed data arrives later, when another replica may have the run
		p.set(networkFaults{hole: true})
	case 4:
		p.set(networkFaults{refuse: true})
		p.reset()
	}
	sleepUpTo(rng, 4*lease)
	if rng.IntN(2) == 0 {
		p.reset() // data in transit is lost
	}
	p.set(networkFaults{})
}

// settle stops all faults and waits until every task is settled. Sometimes all replicas are
// replaced: while a replica lives that might still execute an effect in doubt, people cannot say
// that it did not happen.
func (n *nemesis) settle(settled func(), patience time.Duration) {
	n.board.close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		settled()
	}()
	deadline := time.After(patience)
	for {
		select {
		case <-done:
			return
		case <-deadline:
			n.fault("I17: not settled after %s without faults: %s", patience, strings.Join(n.board.left(), ", "))
			n.end()
			<-done
			return
		case <-time.After(6 * lease):
			n.replaceSuspects()
		}
	}
}

// replaceSuspects replaces the replicas that people wait for to be gone.
func (n *nemesis) replaceSuspects() {
	n.doubts.mu.Lock()
	var upTo int64
	for _, last := range n.doubts.upTo {
		upTo = max(upTo, last)
	}
	n.doubts.mu.Unlock()
	for slot := range n.fleet.slots {
		if l := n.fleet.current(slot); l.number <= upTo {
			l.kill()
			n.fleet.boot(slot)
		}
	}
}
