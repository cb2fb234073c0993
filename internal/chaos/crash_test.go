//go:build unix

package chaos

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/simtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/testtier"
)

// soakRounds is the number of rounds in a soak, each with its own world.
const soakRounds = 50

// cycles returns how many replicas are killed in a world, 200 in total in make nightly. All kinds
// of faults occur in the first ten.
func cycles(nightly int) int { return testtier.Count(10, nightly, nightly) }

// settleTimeout is how long everything may take to settle without faults. Failed work is retried
// with increasing delays, so this is much longer than usually needed.
const settleTimeout = 2 * time.Minute

func TestCrash_OneProcessOnSQLite(t *testing.T) {
	t.Parallel()
	forEachSeed(t, func(t *testing.T) { onSQLite(t, 1, cycles(40)) })
}

func TestCrash_TwoProcessesOnSQLite(t *testing.T) {
	t.Parallel()
	forEachSeed(t, func(t *testing.T) { onSQLite(t, 2, cycles(60)) })
}

func TestCrash_ThreeReplicasOnPostgreSQL(t *testing.T) {
	t.Parallel()
	forEachSeed(t, func(t *testing.T) {
		for world := range testtier.Count(1, 2, 2) {
			t.Run(fmt.Sprintf("world %d", world+1), func(t *testing.T) {
				t.Parallel()
				onPostgreSQL(t, 3, cycles(50))
			})
		}
	})
}

// forEachSeed runs a test once, or many times in a soak, until it fails.
func forEachSeed(t *testing.T, test func(t *testing.T)) {
	if !testtier.IsSoak() {
		test(t)
		return
	}
	for round := 1; round <= soakRounds && !t.Failed(); round++ {
		t.Run(fmt.Sprintf("round %d", round), test)
	}
}

func onSQLite(t *testing.T, processes, cycles int) {
	file := filepath.Join(t.TempDir(), "fermata.db")
	w := newWorld(t, plan{protocol: protocolFermata, slots: processes, store: func(int) string { return file }, errands: 8})
	crashLoop(t, w, newNemesis(w), file, cycles)
}

// onPostgreSQL gives each replica its own connection to the database, so that one of them can be
// cut off.
func onPostgreSQL(t *testing.T, replicas, cycles int) {
	cluster := pgtest.Start(t)
	database := cluster.Database(t)
	proxies, ways := throughProxies(t, database, replicas)
	w := newWorld(t, plan{protocol: protocolFermata, slots: replicas, store: func(slot int) string { return ways[slot] }, errands: 8})
	n := newNemesis(w)
	n.cluster, n.proxies = cluster, proxies
	crashLoop(t, w, n, database, cycles)
}

// crashLoop lets people work while replicas are killed, waits until everything has settled, and
// then compares all sources.
func crashLoop(t *testing.T, w *world, n *nemesis, name string, cycles int) {
	t.Helper()
	settled := w.populate(6)
	n.run(cycles)
	t.Logf("%6.1fs  %s; settling", w.now().Seconds(), n)
	n.settle(settled, settleTimeout)
	w.fleet.killAll()
	s, err := openStore(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	runs, err := simtest.Histories(t.Context(), s, account)
	if err != nil {
		t.Fatal(err)
	}
	found := newStoreCheck(evidence{w.history.all(), w.sink.log()}, runs).check()
	w.report(found, runs, func() { t.Log(w.summary(n, len(found))) })
	for _, missing := range n.missing(cycles, runs) {
		t.Errorf("the result is not significant: %s", missing)
	}
}

// missing lists what should have happened in so many cycles and did not.
func (n *nemesis) missing(cycles int, runs []store.History) (list []string) {
	want := func(what string, got, least int) {
		if got < least {
			list = append(list, fmt.Sprintf("%d %s, want at least %d", got, what, least))
		}
	}
	want("replicas killed", n.all, cycles)
	for _, at := range n.phases {
		want("kills at "+string(at), n.kills[at], cycles/100)
	}
	want("stops", int(n.stops.Load()), 1+cycles/50)
	if n.cluster != nil {
		want("network faults", int(n.disturbed.Load()), 1+cycles/50)
		want("database crashes", n.crashes, 1)
	}
	verdicts, doubts := make(map[store.Verdict]int), 0
	for _, h := range runs {
		for _, i := range h.Interrupts {
			verdicts[i.Verdict]++
			if i.Kind == fermata.EffectInDoubt.Name() {
				doubts++
			}
		}
	}
	for _, verdict := range []store.Verdict{store.VerdictApprove, store.VerdictReject, store.VerdictAnswer, store.VerdictExpire} {
		want("decisions to "+string(verdict), verdicts[verdict], cycles/50)
	}
	want("effects in doubt", doubts, cycles/100)
	want("effects done", len(n.sink.log()), cycles/10)
	want("orders settled", n.board.settled, cycles/50)
	return list
}
