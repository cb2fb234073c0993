package crashpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
	"github.com/fermata-go/fermata/store/postgres"
	"github.com/fermata-go/fermata/store/sqlite"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

var soak = os.Getenv("FERMATA_SOAK") != ""

// environment is a store, as several processes have it.
type environment struct {
	t *testing.T
	// processes are the store as the first process has it, and as those after it do.
	processes [2]store.Store
	look      store.Store // for those who look
	watcher   *executor.Executor
	rules     rules
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

// variant is a story without its death.
type variant struct {
	target  target
	verdict verdict
}

// variants are all that differ: what a rejected payment would have been paid by does not matter. What people say matters until the effect is begun
// and the target from then on, so the first four have everything; the others are for a soak.
func variants() []variant {
	all := []variant{
		{idempotent, approves}, {fencing, edits}, {nonIdempotent, approves}, {nonIdempotent, rejects}, {fencing, approves}, {idempotent, edits}, {nonIdempotent, edits},
	}
	if soak {
		return all
	}
	return all[:4]
}

// points are where a process can die. In a call that only reads it makes no difference whether it takes effect, and to die in it is to die after
// the call before; so only a soak dies there, too.
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
	"Load": true, "Get": true, "List": true, "Resumed": true, "Interrupts": true, "Now": true, "Events": true, "Feed": true, "Asked": true, "Question": true,
	"Pending": true, "Waits": true, "Paper": true, "Papers": true, "Due": true, "AuditHead": true, "AuditAccounts": true, "AuditLines": true, "Finished": true,
	"History": true, "Size": true, "Credential": true, "Credentials": true,
}

// tell tells one story in an account of its own, and checks it. It returns what the first process called.
func (s *environment) runScenario(t *testing.T, v variant, death point) *scenario {
	t.Helper()
	s.stories++
	st := &scenario{site: s, account: fmt.Sprint("account-", s.stories), verdict: v.verdict, processHost: &processHost{
		t: t, outside: newExternalTarget(), rules: s.rules, target: v.target,
		inner: func(n int) store.Store { return s.processes[min(n, 1)] },
	}}
	defer st.close()
	st.run(death)
	st.check()
	return st
}

// crashes tells a story with a death at every point, or at every nth.
func (s *environment) crashes(t *testing.T, v variant, nth, offset int) int {
	t.Helper()
	trace := s.runScenario(t, v, point{}).first.trace
	if t.Failed() {
		t.Fatalf("it fails without a death; the calls are %q", trace)
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

// dies tells a story with one death.
func (s *environment) runWithCrash(t *testing.T, v variant, trace []string, death point) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Fatalf("%s, %s: death in call %d, %s, %s it takes effect; before that %q", v.target, v.verdict, death.at, trace[death.at-1], death.mode, trace[:death.at-1])
		}
	}()
	s.runScenario(t, v, death).asExpected(trace, death)
}

// asExpected: a person is asked whether it happened exactly if nobody else can know: the effect was begun, its end was not written down, and the
// target knows neither keys nor fences. One that can be asked is asked exactly then.
func (s *scenario) asExpected(trace []string, death point) {
	s.t.Helper()
	begin, end := slices.Index(trace, "Begin")+1, slices.Index(trace, "End")+1
	doubtful := death.at > begin && death.at < end || death.at == begin && death.mode == after || death.at == end && death.mode == before
	if s.verdict == rejects {
		doubtful = false
	} else if begin == 0 || end < begin {
		s.t.Errorf("I4: the ledger is not asked before, or not told after: %q", trace)
	}
	if (s.doubts > 0) != (doubtful && s.target == nonIdempotent) {
		s.t.Errorf("I4: somebody was asked %d times whether it happened; nobody can know: %v", s.doubts, doubtful)
	}
	if s.refusals != 1 && !unrecorded(trace, death) {
		s.t.Errorf("I12: %d lines of the one refusal", s.refusals)
	}
	if (s.outside.looks > 0) != (doubtful && s.target == fencing) && !strings.HasPrefix(trace[death.at-1], "outside look") {
		s.t.Errorf("I4: the target was asked %d times whether it happened; nobody can know: %v", s.outside.looks, doubtful)
	}
}

// unrecorded reports whether a refusal may be missing in the audit log: it is kept by the store, and its line is written after it.
func unrecorded(trace []string, death point) bool {
	for n := range len(trace) - 2 {
		if slices.Equal(trace[n:n+3], []string{"Decide", "Interrupts", "Amend"}) {
			decide, amend := n+1, n+3
			return death.at == decide && death.mode == after || death.at > decide && death.at < amend || death.at == amend && death.mode == before
		}
	}
	return false
}

// share is how many of all points a store gets: each nth. The race detector makes everything ten times as slow, and where a process dies is all
// the same to it.
type share struct{ nth, offset int }

func shareOf(name string) share {
	switch {
	case name == "postgres" && !soak:
		return share{30, 0}
	case !raceEnabled || soak:
		return share{1, 0}
	case name == "sqlite":
		return share{6, 1}
	}
	return share{3, 0}
}

// In one process after the other: whatever call the first one dies in, the second one goes on as if nothing had happened.
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
		rounds := 1
		if soak {
			rounds = 100
		}
		crashAtEveryCall(t, shareOf("postgres"), rounds, func() store.Store {
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
