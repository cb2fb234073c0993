package main

import (
	"io"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/chain"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
)

// A copy has the documents of its original, under its own names: a decision changes its request and
// is audited.
func TestFill_CopyHasItsDocuments(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db database) {
		l, err := newParkedDatabase(t.Context(), db, 3)
		if err != nil {
			t.Fatal(err)
		}
		st, err := db.open(t.Context(), l.place)
		if err != nil {
			t.Fatal(err)
		}
		e, err := newExecutorSide(executor.Config{Store: st, Sealer: plainSealer{}}, reviewWorkload(parkedText), st.Close)
		if err != nil {
			t.Fatal(err)
		}
		defer e.close()
		run, err := st.Get(t.Context(), benchAccount, parkedKey(2))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.decide(t.Context(), parkedKey(2)); err != nil {
			t.Fatal(err)
		}
		for kind, want := range map[store.DocumentKind]int64{"run": 1, store.RequestDocument: 2, "vote": 1} {
			papers, err := st.Documents(t.Context(), benchAccount, kind, store.DocumentFilter{Run: run.ID})
			if err != nil || len(papers) != 1 || papers[0].Revision != want {
				t.Errorf("documents of kind %s: %v, %v; want one of revision %d", kind, papers, err, want)
			}
		}
		head, err := st.AuditHead(t.Context(), benchAccount)
		// two of the original, two of the decision
		if err != nil || head.Seq != 4 || head.Hash == (chain.Head{}).Hash {
			t.Errorf("the log ends with %d, %v; want 4", head.Seq, err)
		}
	})
}

// Expiring runs are spread over accounts; each has some.
func TestFill_ExpiringRunsSpanAccounts(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db database) {
		const runs = 300
		l, err := newParkedDatabase(t.Context(), db, runs)
		if err != nil {
			t.Fatal(err)
		}
		st, err := db.open(t.Context(), l.place)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		for n := range tenantCount(runs) {
			waiting, err := st.List(t.Context(), expiringKey(n), store.RunFilter{})
			want := perTenant
			if n == 1 { // the first run is the original, in our own account
				want--
			}
			if err != nil || len(waiting) != want {
				t.Errorf("%s has %d runs, %v; want %d", expiringKey(n), len(waiting), err, want)
			}
		}
	})
}

// With ten thousand waiting runs the process is hardly larger than with none. Each of the copies
// can be decided.
func TestI15_MemoryDoesNotGrowWithParkedRuns(t *testing.T) {
	for _, on := range []string{onSQLite, onPostgres} {
		t.Run(on, func(t *testing.T) {
			plan := parkedQuick
			plan.many = 10_000
			found, err := plan.measure(t.Context(), on, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s empty, %s with %d runs, %s while some are decided; the database has %s", mebibytes(found.EmptyIdle), mebibytes(found.ManyIdle),
				found.Many, mebibytes(found.ManyBusy), mebibytes(found.Bytes))
			if found.Decisions != plan.rounds*plan.decisions || found.EmptyIdle == 0 || found.ManyIdle == 0 {
				t.Errorf("%d decisions, and memory of %d and %d bytes", found.Decisions, found.EmptyIdle, found.ManyIdle)
			}
			if found.Inbox.Pages != plan.pages || found.Sweep.Requests < plan.many/expiringShare-plan.many/100 || found.Sweep.Swept == 0 {
				t.Errorf("the inbox is %+v, and the sweep %+v", found.Inbox, found.Sweep)
			}
			for _, v := range judgeParked([]parkedResult{found}, true) {
				if !v.Judged || !v.Met {
					t.Errorf("%s: %s, measured %s", v.Goal, v.word(), v.Measured)
				}
			}
		})
	}
}

func TestJudge_ParkedGoals(t *testing.T) {
	good := parkedResult{
		Name: "parked/sqlite", Few: 1000, Many: 1_000_000, EmptyIdle: 30 * mib, ManyIdle: 30 * mib, ManyBusy: 80 * mib, FewP99: 10, ManyP99: 20, Began: 2 * time.Second,
		Inbox: inboxResult{Pages: 1, FirstP99: 50e6, DeepP99: 50e6}, Sweep: sweepResult{Requests: 100_000, Swept: time.Minute, Decisions: 1, P99: 40},
	}
	const (
		memory   = "parked/sqlite: 1,000,000 parked runs take at most 50 MiB of memory"
		latency  = "parked/sqlite: p99 of a decision with 1,000,000 parked runs at most 2 × that with 1,000"
		page     = "parked/sqlite: p99 of an inbox page at most 50 ms with 1,000,000 parked runs"
		begins   = "parked/sqlite: a process starts within 2 s with 1,000,000 parked runs"
		sweeps   = "parked/sqlite: 100,000 requests expire at a rate of 100,000 in 60 s"
		meantime = "parked/sqlite: p99 of a decision during expiry at most 2 × that before"
	)
	all := func(not string) map[string]string {
		words := map[string]string{memory: "met", latency: "met", page: "met", begins: "met", sweeps: "met", meantime: "met"}
		if not != "" {
			words[not] = "**NOT met**"
		}
		return words
	}
	wantVerdicts(t, judgeParked([]parkedResult{good}, false), all(""))
	for goal, worse := range map[string]func(*parkedResult){
		memory:   func(r *parkedResult) { r.ManyBusy++ },
		latency:  func(r *parkedResult) { r.ManyP99, r.Sweep.P99 = r.ManyP99+1, r.Sweep.P99+2 },
		page:     func(r *parkedResult) { r.Inbox.DeepP99++ },
		begins:   func(r *parkedResult) { r.Began++ },
		sweeps:   func(r *parkedResult) { r.Sweep.Swept += time.Second },
		meantime: func(r *parkedResult) { r.Sweep.P99++ },
	} {
		bad := good
		worse(&bad)
		wantVerdicts(t, judgeParked([]parkedResult{bad}, false), all(goal))
	}
	slow := good
	slow.ManyP99++
	if verdicts := judgeParked([]parkedResult{slow}, true); len(verdicts) != 1 {
		t.Errorf("times of a quick run were judged: %v", verdicts)
	}
}
