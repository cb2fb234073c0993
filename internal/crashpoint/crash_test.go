package crashpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/simtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/postgres"
	"github.com/fermata-go/fermata/internal/store/sqlite"
	"github.com/fermata-go/fermata/internal/testtier"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

var soak = testtier.IsSoak()

// environment is a store, as several processes use it.
type environment struct {
	t *testing.T
	// processes are the store for the first process, and for later ones.
	processes [2]store.Store
	look      store.Store // for observers
	watcher   *executor.Executor
	rules     simtest.FixedPolicy
	stories   int
}

func newEnvironment(t *testing.T, open func() store.Store) *environment {
	s := &environment{t: t, processes: [2]store.Store{open(), open()}, look: open(), rules: loadRules(t, twoPeople)}
	c := config(t, s.look, (&effectClient{}).flows(t))
	var err error
	if s.watcher, err = executor.New(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.watcher.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *scenario) observer() *executor.Executor { return s.site.watcher }

// variant is a scenario without a crash.
type variant struct {
	target  simtest.TargetKind
	verdict verdict
}

// variants returns all relevant combinations. For a rejected payment the target does not matter.
// The decision matters until the effect begins, and the target from then on. So the first four
// cover everything; the others are for a soak.
func variants() []variant {
	all := []variant{
		{simtest.Idempotent, approves}, {simtest.Fencing, edits}, {simtest.NonIdempotent, approves}, {simtest.NonIdempotent, rejects},
		{simtest.Fencing, approves}, {simtest.Idempotent, edits}, {simtest.NonIdempotent, edits},
	}
	if soak {
		return all
	}
	return all[:4]
}

// points returns where a process can crash. For a read it makes no difference whether the call
// takes effect, and a crash in it is like a crash after the call before. So only a soak crashes
// there too.
func points(trace []string) (all []point) {
	for n, call := range trace {
		switch {
		case !reads[call]:
			all = append(all, point{n + 1, before}, point{n + 1, after}, point{n + 1, late})
		case soak:
			all = append(all, point{n + 1, before}, point{n + 1, after})
		}
	}
	return all
}

// reads are the calls that change nothing.
var reads = map[string]bool{
	"Load": true, "Get": true, "List": true, "Receipt": true, "Interrupts": true, "Now": true, "Events": true, "Feed": true, "InboxItems": true, "InboxItem": true,
	"CountPending": true, "PendingByKind": true, "Document": true, "Documents": true, "DueDocuments": true, "AuditHead": true, "AuditAccounts": true, "AuditLines": true, "FinishedRuns": true,
	"History": true, "RunSnapshot": true, "Size": true, "Credential": true, "Credentials": true,
}

// runScenario runs one scenario in its own account, and checks it. It returns the calls of the
// first process.
func (s *environment) runScenario(t *testing.T, v variant, death point) *scenario {
	t.Helper()
	s.stories++
	st := &scenario{site: s, account: fmt.Sprint("account-", s.stories), verdict: v.verdict, processHost: &processHost{
		t: t, outside: new(target), rules: s.rules, target: v.target,
		inner: func(n int) store.Store { return s.processes[min(n, 1)] },
	}}
	defer st.close()
	st.run(death)
	st.check()
	return st
}

// crashes runs a scenario with a crash at every point, or at every nth.
func (s *environment) crashes(t *testing.T, v variant, nth, offset int) int {
	t.Helper()
	trace := s.runScenario(t, v, point{}).first.trace
	if t.Failed() {
		t.Fatalf("it fails without a crash; the calls are %q", trace)
	}
	deaths := 0
	for n, death := range points(trace) {
		if (n+offset)%nth != 0 {
			continue
		}
		deaths++
		s.runWithCrash(t, v, trace, death)
	}
	return deaths
}

// runWithCrash runs a scenario with one crash.
func (s *environment) runWithCrash(t *testing.T, v variant, trace []string, death point) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Fatalf("%s, %s: crash in call %d, %s, %s it takes effect; before that %q", v.target, v.verdict, death.at, trace[death.at-1], death.mode, trace[:death.at-1])
		}
	}()
	s.runScenario(t, v, death).asExpected(trace, death)
}

// asExpected checks that a person is asked about an effect in doubt only if there is no other way
// to know: the effect was begun, its end was not recorded, and the target supports neither keys nor
// fences. A target that supports a query is queried only then.
func (s *scenario) asExpected(trace []string, death point) {
	s.t.Helper()
	begin, end := slices.Index(trace, "BeginEffect")+1, slices.Index(trace, "EndEffect")+1
	doubtful := death.at > begin && death.at < end || death.at == begin && death.mode == after || death.at == end && death.mode == before
	if s.verdict == rejects {
		doubtful = false
	} else if begin == 0 || end < begin {
		s.t.Errorf("I4: the ledger was not read before, or not written after: %q", trace)
	}
	if (s.doubts > 0) != (doubtful && s.target == simtest.NonIdempotent) {
		s.t.Errorf("I4: a person was asked %d times about the effect; in doubt: %v", s.doubts, doubtful)
	}
	if s.refusals != 1 && !unrecorded(trace, death) {
		s.t.Errorf("I12: %d records of the one refusal", s.refusals)
	}
	_, queries := s.outside.Counts()
	if (queries > 0) != (doubtful && s.target == simtest.Fencing) && !strings.HasPrefix(trace[death.at-1], "outside look") {
		s.t.Errorf("I4: the target was queried %d times; in doubt: %v", queries, doubtful)
	}
}

// unrecorded reports whether a refusal may be missing in the audit log: the store keeps it, and its
// record is written later.
func unrecorded(trace []string, death point) bool {
	for n := range len(trace) - 2 {
		if slices.Equal(trace[n:n+3], []string{"Decide", "Interrupts", "CommitWrites"}) {
			decide, amend := n+1, n+3
			return death.at == decide && death.mode == after || death.at > decide && death.at < amend || death.at == amend && death.mode == before
		}
	}
	return false
}

// share is the part of all points that a store gets: each nth. The race detector makes everything
// ten times slower, and does not depend on where a process crashes.
type share struct{ nth, offset int }

func shareOf(name string) share {
	switch {
	case soak:
		return share{1, 0}
	case name == "postgres":
		return share{30, 0}
	case !simtest.RaceEnabled && name == "sqlite":
		return share{testtier.Count(4, 1, 1), 0}
	case !simtest.RaceEnabled:
		return share{1, 0}
	case name == "sqlite":
		return share{6, 1}
	}
	return share{3, 0}
}

// One process after the other: in whatever call the first one crashes, the second one continues
// correctly.
func TestCrash_AtEveryCall(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		s := memory.NewStore(nil)
		crashAtEveryCall(t, shareOf("memory"), 1, func() store.Store { return s })
	})
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "fermata.db")
		crashAtEveryCall(t, shareOf("sqlite"), 1, func() store.Store {
			s, err := sqlite.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		})
	})
	t.Run("postgres", func(t *testing.T) {
		database := pgtest.New(t)
		crashAtEveryCall(t, shareOf("postgres"), testtier.Count(1, 1, 100), func() store.Store {
			s, err := postgres.Open(t.Context(), database, postgres.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		})
	})
}

func crashAtEveryCall(t *testing.T, of share, rounds int, open func() store.Store) {
	s := newEnvironment(t, open)
	deaths := 0
	for round := 0; round < rounds && !outOfTime(t); round++ {
		for n, v := range variants() {
			deaths += s.crashes(t, v, of.nth, of.offset+n)
		}
	}
	t.Logf("%d deaths", deaths)
}
