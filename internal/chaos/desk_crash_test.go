//go:build unix

package chaos

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/simtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/testtier"
)

// The number of replicas that are killed while people decide against the clock. In a soak it is
// fifty times as many.
var (
	cyclesDeskPG     = testtier.Count(3, 15, 15)
	cyclesDeskSQLite = testtier.Count(2, 10, 10)
)

// deskAccounts are the accounts of the payments.
var deskAccounts = []string{account, "globex"}

// The desk tests run alone: they depend on timing, and twelve processes are enough for two cores.
func TestCrash_DeskOfFourProcessesOnSQLite(t *testing.T) {
	forEachSeed(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "fermata.db")
		deskLoop(t, plan{slots: fewerReplicas(4), store: func(int) string { return file }}, &nemesis{}, file, cyclesDeskSQLite)
	})
}

func TestCrash_DeskOfEightReplicasOnPostgreSQL(t *testing.T) {
	forEachSeed(t, func(t *testing.T) {
		cluster := pgtest.Start(t)
		database := cluster.Database(t)
		proxies, ways := throughProxies(t, database, fewerReplicas(8))
		deskLoop(t, plan{slots: len(ways), store: func(slot int) string { return ways[slot] }}, &nemesis{cluster: cluster, proxies: proxies}, database, cyclesDeskPG)
	})
}

// fewerReplicas reduces the number of replicas under the race detector, which finds races inside of
// replicas.
func fewerReplicas(replicas int) int {
	if simtest.RaceEnabled {
		return 1 + replicas/4
	}
	return replicas
}

// deskLoop lets people decide against the clock while replicas are killed, waits until everything
// has settled and is delivered, and then compares all sources.
func deskLoop(t *testing.T, p plan, with *nemesis, name string, cycles int) {
	t.Helper()
	p.protocol, p.errands, p.accounts, p.phases = protocolDesk, 2*p.slots, deskAccounts, phasesOfDesk
	w := newWorld(t, p)
	n := newNemesis(w)
	n.cluster, n.proxies, n.calm = with.cluster, with.proxies, lease/2
	for slot := range w.fleet.slots {
		<-w.fleet.current(slot).ready // they start at the same time, which takes a while
	}
	settled := w.populateDesk(p.errands + 2)
	n.run(cycles)
	// on a slow machine some outcomes may not have occurred yet
	deadline := time.Now().Add(settleTimeout)
	for !w.board.hasSeen(1+cycles/10, desk.OutcomeApproved, desk.OutcomeRejected, desk.OutcomeExpired) || !w.board.hasSeen(leastLeft(), outcomeHadLeft) {
		if time.Now().After(deadline) {
			break
		}
		time.Sleep(lease)
	}
	t.Logf("%6.1fs  %s; settling", w.now().Seconds(), n)
	n.settle(settled, settleTimeout)
	w.fleet.killAll()
	s, err := openStore(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rest := w.drainNotices(s)
	w.fleet.killAll()
	w.checkDesk(n, s, rest, cycles)
}

// outcomeHadLeft counts requests in which a vote no longer counted, whatever the outcome.
const outcomeHadLeft desk.Outcome = "had left"

// leastLeft returns how many of them there should be. A short test may have too few requests.
func leastLeft() int { return testtier.Count(0, 1, 1) }

// least returns how often everything should happen in so many cycles.
func least(cycles int) int { return leastLeft() + cycles/10 }

// drainNotices delivers all remaining notices. A crashed replica holds a notice for a minute. The
// test does not wait for that: all replicas are dead, so it releases the notices. It returns the
// replica that delivers them.
func (w *world) drainNotices(s store.Store) int64 {
	w.t.Helper()
	// the minute is longer than any delivery; without it, the test must wait for that
	if !w.sink.isIdle(settleTimeout) {
		w.t.Errorf("deliveries of dead replicas are still in progress after %s", settleTimeout)
	}
	left := w.releaseParked(s)
	w.t.Logf("%6.1fs  %d notices were held by dead replicas", w.now().Seconds(), left)
	l := w.fleet.boot(0)
	for deadline := time.Now().Add(settleTimeout); left > 0; time.Sleep(lease / 4) {
		if left = len(w.undeliveredNotices(s)); time.Now().After(deadline) {
			w.fault("I17: %d notices are not delivered after %s without faults", left, settleTimeout)
			break
		}
	}
	return l.number
}

// undeliveredNotices returns the notices and deliveries that are not completed yet.
func (w *world) undeliveredNotices(s store.Store) (list []store.Document) {
	w.t.Helper()
	for _, account := range deskAccounts {
		list = append(list, w.dueDocuments(s, account, noticeDocument)...)
		list = append(list, w.dueDocuments(s, account, deliveryDocument)...)
	}
	return list
}

func (w *world) dueDocuments(s store.Store, account string, kind store.DocumentKind) (list []store.Document) {
	w.t.Helper()
	for after := ""; ; {
		page, err := s.Documents(w.t.Context(), account, kind, store.DocumentFilter{After: after, Limit: 1000})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, paper := range page {
			if after = paper.ID; !paper.DueAt.IsZero() {
				list = append(list, paper)
			}
		}
		if len(page) < 1000 {
			return list
		}
	}
}

// releaseParked makes all notices due that dead replicas hold, and returns their number.
func (w *world) releaseParked(s store.Store) int {
	w.t.Helper()
	list := w.undeliveredNotices(s)
	now, err := s.Now(w.t.Context())
	for _, paper := range list {
		if err == nil {
			change := store.DocumentChange{Kind: paper.Kind, ID: paper.ID, BaseRevision: paper.Revision, Body: paper.Body, Index: paper.Index, DueAt: now}
			err = s.CommitWrites(w.t.Context(), paper.Account, store.Writes{Documents: []store.DocumentChange{change}})
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return len(list)
}

// checkDesk reads everything and checks it.
func (w *world) checkDesk(n *nemesis, s store.Store, rest int64, cycles int) {
	w.t.Helper()
	e := evidence{w.history.all(), w.sink.log()}
	told := w.sink.receivedNotices()
	found := e.doneOnce()
	found = append(found, e.askedFor()...)
	var all []*requestRecord
	for _, account := range deskAccounts {
		dockets, err := readRequestRecords(w.t.Context(), s, account, e, told)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, d := range dockets {
			d.world = w.began
		}
		broken, err := audited(w.t.Context(), s, account, dockets)
		if err != nil {
			w.t.Fatal(err)
		}
		all, found = append(all, dockets...), append(found, broken...)
	}
	var runs []store.History
	for _, d := range all {
		runs = append(runs, d.run)
		found = append(found, d.check()...)
	}
	failed := func(life int64, key string) bool {
		return w.fleet.notes.has(fmt.Sprintf("life %d: ", life), "notice not delivered", key)
	}
	excused, again := (&faultLog{ends: w.fleet.fates, cuts: n.cuts, rest: rest, failed: failed}).twice(all)
	found = append(found, again...)
	tally := w.deskTally(all, told, excused)
	w.report(found, runs, func() {
		w.logRequestRecords(found, all)
		w.t.Log(w.summary(n, len(found)))
		w.t.Log(tally)
	})
	for _, missing := range tally.missing(n, cycles) {
		w.t.Errorf("the result is not significant: %s", missing)
	}
}

// logRequestRecords logs the first requests with violations.
func (w *world) logRequestRecords(found []violation, all []*requestRecord) {
	shown := make(map[string]bool)
	for _, v := range found {
		for _, d := range all {
			if d.key() == v.key && !shown[v.key] && len(shown) < maxDescriptions {
				shown[v.key] = true
				w.t.Log(d.describe())
			}
		}
	}
}

// deskTally has the numbers of a test.
type deskTally struct {
	requests, steps, papers, tellings, pages, left int
	ends                                           map[desk.Outcome]int
	refused                                        map[store.DecisionResult]int
	excused                                        map[string]int
	// decisions within 50 ms before the deadline, and refusals as too late
	close       int
	missedSteps []string
}

// muchTooLate is how long a step may be overdue at the decision without being reported.
const muchTooLate = 500 * time.Millisecond

func (w *world) deskTally(all []*requestRecord, told []receivedNotice, excused map[string]int) deskTally {
	t := deskTally{requests: len(all), tellings: len(told), ends: make(map[desk.Outcome]int), refused: make(map[store.DecisionResult]int), excused: excused}
	for _, d := range all {
		if d.doc.Decision != nil {
			t.ends[d.doc.Decision.Outcome]++
			if left := d.doc.Deadline.Sub(d.doc.Decision.At); left > 0 && left < 50*time.Millisecond {
				t.close++
			}
		}
		t.left += len(d.doc.VoteProgress.Uncounted)
		t.papers += len(d.notices)
		t.pages += len(d.doc.RouteProgress.Paged)
		for _, e := range d.doc.Log {
			if e.Type == desk.EventRouteStep {
				t.steps++
			}
		}
		t.missedSteps = append(t.missedSteps, d.missed(muchTooLate)...)
		for _, s := range d.submissions() {
			if s.answer != nil && s.answer.answer.Kind == saidRefused {
				t.refused[s.answer.answer.Result]++
			}
		}
	}
	return t
}

func (t deskTally) String() string {
	return fmt.Sprintf("    %d requests: %v, %d of them decided within 50 ms before the deadline; refused votes: %v; %d votes of former members\n    %d steps, %d never fired although overdue by %s; %d notices, delivered %d times, again because of %v; %d paged",
		t.requests, t.ends, t.close, t.refused, t.left, t.steps, len(t.missedSteps), muchTooLate, t.papers, t.tellings, t.excused, t.pages)
}

// missing lists what should have happened and did not.
func (t deskTally) missing(n *nemesis, cycles int) (list []string) {
	want := func(what string, got, least int) {
		if got < least {
			list = append(list, fmt.Sprintf("%d %s, want at least %d", got, what, least))
		}
	}
	want("replicas killed", n.all, cycles)
	for _, outcome := range []desk.Outcome{desk.OutcomeApproved, desk.OutcomeRejected, desk.OutcomeExpired} {
		want("requests with outcome "+string(outcome), t.ends[outcome], 1+cycles/10)
	}
	want("votes that were too late", t.refused[store.ResultExpired]+t.refused[store.ResultAlreadyDecided], least(cycles))
	want("votes of former members", t.left, leastLeft())
	want("people paged", t.pages, least(cycles))
	want("notices told", t.tellings, 1+cycles)
	return list
}
