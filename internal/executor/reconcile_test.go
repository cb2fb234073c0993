package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/audit/reconcile"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
	"github.com/fermata-go/fermata/provider/inproc"
)

// The audit log, the runs and the effect ledger agree. A write that bypasses the log is found.
func TestReconcile_FindsDifferences(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := new(dropper)
		e := office(t, s, d, nil)
		startAs(t, e, "req")
		for _, who := range []string{"bob", "eve"} {
			if _, err := says(t, e, who, "by "+who, yes); err != nil {
				t.Fatal(err)
			}
		}
		if found, err := e.Reconcile(t.Context(), "acme"); err != nil || len(found) != 0 {
			t.Fatalf("findings %+v, %v; want none", found, err)
		}
		if _, err := audit.Verify(t.Context(), audit.NewStoreLog(s), "acme", audit.VerifyOptions{}, t.Output()); err != nil {
			t.Fatal(err)
		}
		// An effect that is not in the log, by someone who writes to the store directly.
		lease, err := s.Create(t.Context(), store.NewRun{Account: "acme", ID: "r", StateKey: "r", Provider: "inproc", Graph: "drop", Owner: "mallory", Lease: 1e12})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.BeginEffect(t.Context(), lease, store.NewEffect{Interrupt: "x", Attempt: 1, ActionDigest: "d", Ruling: &store.PolicyRuling{By: "mallory"}}); err != nil {
			t.Fatal(err)
		}
		found, err := e.Reconcile(t.Context(), "acme")
		if err != nil || !slices.ContainsFunc(found, func(f reconcile.Finding) bool { return f.Severity == reconcile.SeverityPage }) {
			t.Errorf("findings %+v, %v", found, err)
		}
	})
}

func agree(t *testing.T, e *executor.Executor) {
	t.Helper()
	if found, err := e.Reconcile(t.Context(), "acme"); err != nil || len(found) != 0 {
		t.Errorf("findings %+v, %v; want none", found, err)
	}
}

// oneWord are rules that let one dba decide on drops and grant them. Scratch tables need no
// approval.
const oneWord = `
default: allow
rules:
- id: drop
  when: req.tool == "drop-table" && args != "scratch"
  then: ask
  ask: {groups: [{from: ["group:dba"]}], deadline: 1h, remember_max: 1h}
`

// An effect without a request has no approval on record, but the rule or the grant is recorded with
// the intent.
func TestReconcile_AllowedByRulesAndGrantsIsNotAFinding(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := office(t, s, new(dropper), func(c *executor.Config) { c.Desk.Policy = loadRules(t, oneWord) })
		drop := func(key, table string) fermata.Outcome {
			return mustRun(t, e, executor.RunRequest{Account: "acme", StateKey: key, Graph: "inproc:drop", Input: json.RawMessage(`{"table":"` + table + `"}`), Actor: "req"})
		}
		completed(t, drop("by-rule", "scratch"))
		asked := waits(t, drop("drop-1", "users")).Interrupts[0].ID
		if _, err := says(t, e, "bob", "1", yes); err != nil {
			t.Fatal(err)
		}
		if _, err := e.CreateGrant(t.Context(), "acme", asked, executor.GrantRequest{By: "bob", TTL: time.Hour, MaxUses: 2}); err != nil {
			t.Fatal(err)
		}
		completed(t, drop("by-grant-1", "users"))
		completed(t, drop("by-grant-2", "users"))
		agree(t, e)
	})
}

// A run that was deleted by retention or erased with its account is not a finding: the log records
// the deletion.
func TestReconcile_DeletedRunIsNotAFinding(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := dropped(t, s)
		agree(t, e)
		if n, err := e.EraseAccount(t.Context(), "acme"); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		agree(t, e)
	})
}

// dropped is an executor in which bob and eve have approved the request of a run, which has ended.
func dropped(t *testing.T, s store.Store) *executor.Executor {
	t.Helper()
	e := office(t, s, new(dropper), nil)
	startAs(t, e, "req")
	for _, who := range []string{"bob", "eve"} {
		if _, err := says(t, e, who, "by "+who, yes); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// Regression: someone with write access to the database deletes all rows of a run. The
// reconciliation took it for a run that was deleted by retention.
func TestReconcile_RowsDeletedInTheDatabaseAreAFinding(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := dropped(t, s)
		id := known(t, s, "drop-1").Run.ID
		if err := s.DeleteRun(t.Context(), "acme", id, store.Writes{}); err != nil {
			t.Fatal(err)
		}
		missed(t, e, id)
	})
	t.Run("waiting run", func(t *testing.T) {
		s := memory.NewStore(nil)
		startAs(t, office(t, s, new(dropper), nil), "req")
		missed(t, office(t, deleted{s}, new(dropper), nil), known(t, s, "drop-1").Run.ID)
	})
}

// missed fails unless the only finding is a missing run.
func missed(t *testing.T, e *executor.Executor, run string) {
	t.Helper()
	found, err := e.Reconcile(t.Context(), "acme")
	if err != nil || len(found) != 1 || found[0].Code != reconcile.FindingRunGone || found[0].Severity != reconcile.SeverityPage || found[0].Run != run {
		t.Errorf("findings %+v, %v; want one missing run", found, err)
	}
}

// deleted is a store in which all rows of runs are missing.
type deleted struct{ store.Store }

func (deleted) List(context.Context, string, store.RunFilter) ([]store.Run, error) { return nil, nil }

func (deleted) History(context.Context, string, string) (store.History, error) {
	return store.History{}, store.ErrNotFound
}

// blinking is a store in which some reads return less than is stored, as if the rest were written a
// moment later.
type blinking struct {
	store.Store
	lines, histories int
	lessLines        func(look int) bool
	lessEffects      func(look int) bool
}

func (b *blinking) AuditLines(ctx context.Context, account string, after int64, limit int) ([]store.AuditLine, error) {
	lines, err := b.Store.AuditLines(ctx, account, after, limit)
	if b.lines++; b.lessLines != nil && b.lessLines(b.lines) {
		lines = slices.DeleteFunc(lines, func(l store.AuditLine) bool { return strings.Contains(string(l.Raw), "effect.") })
	}
	return lines, err
}

func (b *blinking) History(ctx context.Context, account, run string) (store.History, error) {
	history, err := b.Store.History(ctx, account, run)
	if b.histories++; b.lessEffects != nil && b.lessEffects(b.histories) {
		history.Effects = nil
	}
	return history, err
}

// Runs continue during the reconciliation. A write between two reads is not a finding.
func TestReconcile_ConcurrentWritesAreNotFindings(t *testing.T) {
	s := memory.NewStore(nil)
	e := office(t, s, new(dropper), nil)
	startAs(t, e, "req")
	for _, who := range []string{"bob", "eve"} {
		if _, err := says(t, e, who, "by "+who, yes); err != nil {
			t.Fatal(err)
		}
	}
	for name, store := range map[string]*blinking{
		"log is behind":             {Store: s, lessLines: func(look int) bool { return look == 1 }},
		"run is behind":             {Store: s, lessEffects: func(look int) bool { return look == 1 }},
		"run changes at every read": {Store: s, lessEffects: func(look int) bool { return look%2 == 1 }},
	} {
		t.Log(name)
		agree(t, office(t, store, new(dropper), nil))
	}
	always := &blinking{Store: s, lessEffects: func(int) bool { return true }}
	if found, err := office(t, always, new(dropper), nil).Reconcile(t.Context(), "acme"); err != nil || len(found) == 0 {
		t.Errorf("an effect that is always missing: %+v, %v", found, err)
	}
}

// Repeated calls of a target that supports idempotency keys are one effect, from any number of
// owners. Without such support each call is one effect.
func TestReconcile_CallsWithOneIdempotencyKeyAreOneEffect(t *testing.T) {
	for name, test := range map[string]struct {
		option fermata.EffectOption
		found  reconcile.FindingCode
	}{
		"idempotent target":          {fermata.Idempotent(), ""},
		"lookup with a wrong result": {fermata.Lookup(func(context.Context, string) (string, bool, error) { return "", false, nil }), reconcile.FindingRanTwice},
	} {
		t.Run(name, func(t *testing.T) {
			s := memory.NewStore(nil)
			entered, hold := make(chan struct{}), make(chan struct{})
			release := sync.OnceFunc(func() { close(hold) })
			first := executorOf(t, s, posting(t, test.option, func() { entered <- struct{}{}; <-hold }), func(c *executor.Config) { c.Lease = time.Hour })
			t.Cleanup(release) // before the executor is stopped, which would otherwise block
			asked := waits(t, began(t, first, "post-1", "inproc:post", `{"table":"users"}`)).Interrupts[0].ID
			said := word("ann", "post-1", "1", asked, yes)
			go func() { _, _ = first.Run(context.Background(), said) }()
			<-entered // the effect is in progress
			expire(t, s, "post-1")
			second := executorOf(t, s, posting(t, test.option, func() {}), nil)
			second.StartWorkers()
			if doubt, waits := mustRun(t, second, said).(fermata.NeedsInput); waits {
				completed(t, mustRun(t, second, word("ann", "post-1", "2", doubt.Interrupts[0].ID, `{"happened":false}`)))
			}
			release()
			if err := first.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if line := known(t, s, "post-1").Effects; len(line) != 2 || line[0].State != store.EffectSucceeded || line[1].State != store.EffectSucceeded {
				t.Fatalf("ledger entry %+v", line)
			}
			found, err := second.Reconcile(t.Context(), "acme")
			if err != nil || test.found == "" && len(found) > 0 || test.found != "" && (len(found) != 1 || found[0].Code != test.found) {
				t.Errorf("findings %+v, %v", found, err)
			}
		})
	}
}

// posting is a graph with one effect that needs approval.
func posting(t *testing.T, option fermata.EffectOption, inside func()) provider.Provider {
	return single(t, "post", inproc.FlowConfig[order]{}, func(ctx context.Context, o order) (order, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[string]{Name: "post", Args: o.Table})
		if err != nil {
			return o, err
		}
		o.Receipt, err = fermata.Effect(ctx, yes, func(context.Context, string, string) (string, error) {
			inside()
			return "posted", nil
		}, option)
		return o, err
	})
}

// An external agent performs the approved action itself, without an entry in this ledger.
// Regression: each such approval was a finding for as long as its run was kept.
func TestReconcile_ApprovalForAnExternalAgentIsNotAFinding(t *testing.T) {
	var ahead atomic.Int64
	s := memory.NewStore(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	p, err := external.New(external.Config{})
	if err != nil {
		t.Fatal(err)
	}
	e := executorOf(t, s, p, nil)
	waits(t, began(t, e, "x", "external:request", `{"kind":"approval","data":{"action":"refund","args":{"cents":5}}}`))
	view, err := e.GetRun(t.Context(), "acme", "x")
	if err != nil {
		t.Fatal(err)
	}
	q := view.Interrupts[0]
	yes := map[string]executor.Answer{q.ID: {Value: json.RawMessage(`{"verb":"approve"}`), Shown: q.ShownDigest}}
	completed(t, mustRun(t, e, executor.RunRequest{Account: "acme", StateKey: "x", ResumeID: "1", Actor: "ann", Targets: yes}))
	ahead.Store(int64(time.Hour))
	agree(t, e)
}

// A notification of an external agent is retried for days. Regression: after a quarter of an hour
// the decision was reported as lost, and the alert paged an operator because the receiver of
// another team was down.
func TestReconcile_PendingDeliveryToAReceiverIsNotAFinding(t *testing.T) {
	var ahead atomic.Int64
	s := memory.NewStore(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(receiver.Close)
	secret := func(context.Context, string) ([]string, error) { return []string{external.NewSecret()}, nil }
	p, err := external.New(external.Config{Secrets: secret, Allow: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	e := executorOf(t, s, p, nil)
	asked := waits(t, began(t, e, "x", "external:request", `{"kind":"refund","data":{"cents":5},"callback":{"url":"`+receiver.URL+`"}}`))
	answer := word("ann", "x", "1", asked.Interrupts[0].ID, `true`)
	answer.Wait = -1
	_, err = e.Run(t.Context(), answer)
	if _, pending := errors.AsType[*executor.PendingError](err); !pending {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		view, err := e.GetRun(t.Context(), "acme", "x")
		return err == nil && view.Status == store.StatusReady && view.Attempts > 0
	})
	ahead.Store(int64(time.Hour))
	found, err := e.Reconcile(t.Context(), "acme")
	if err != nil || len(found) != 1 || found[0].Code != reconcile.FindingDecisionLost || found[0].Severity != reconcile.SeverityWarn {
		t.Errorf("findings %+v, %v", found, err)
	}
}

// An approval whose edited arguments the Go code rejects is asked again under another id,
// "int_1~2". The ledger and the log have the effect under that id.
func TestReconcile_RequestAskedAgainIsNotAFinding(t *testing.T) {
	type rows struct{ N int }
	onStores(t, func(t *testing.T, s store.Store) {
		e := executorOf(t, s, single(t, "purge", inproc.FlowConfig[rows]{}, func(ctx context.Context, _ rows) (rows, error) {
			approved, err := fermata.Approve(ctx, fermata.Action[rows]{Name: "purge", Args: rows{1}})
			if err != nil {
				return rows{}, err
			}
			return fermata.Effect(ctx, approved, func(_ context.Context, args rows, _ string) (rows, error) { return args, nil })
		}), nil)
		asked := waits(t, began(t, e, "k", "inproc:purge", `{}`))
		say := func(resume, n string) fermata.Outcome {
			return mustRun(t, e, word("ann", "k", resume, asked.Interrupts[0].ID, `{"verb":"approve","args":{"N":`+n+`}}`))
		}
		asked = waits(t, say("r1", "100000000000000000000"))
		if done := completed(t, say("r2", "4")); string(done.Output) != `{"N":4}` {
			t.Errorf("output %s", done.Output)
		}
		agree(t, e)
	})
}

// An approval is void when its target has changed: the run asks again and continues with the next
// approval. Regression: the first approval was a finding that paged an operator while the next one
// was pending, and a warning ever after.
func TestReconcile_VoidApprovalOfAChangedTargetIsNotAFinding(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		var paid, balance, hour atomic.Int64
		hour.Store(int64(time.Hour))
		e := bank(t, ahead{s, &hour}, restless(t, &paid, &balance, "one", "two"), "default: ask\ndefaults: {ask: {groups: [{from: ['group:finance']}], deadline: 24h}}\n")
		asked := waits(t, began(t, e, "a", "inproc:pay", `{"cents":1}`))
		for round, resume := range []string{"r1", "r2", "r3", "r4"} {
			if round%2 == 0 {
				balance.Add(1)
			}
			outcome := mustRun(t, e, word("ann", "a", resume, asked.Interrupts[0].ID, yes))
			agree(t, e)
			if round < 3 {
				asked = waits(t, outcome)
			}
		}
		if paid.Load() != 2 {
			t.Errorf("%d are paid", paid.Load())
		}
	})
}
