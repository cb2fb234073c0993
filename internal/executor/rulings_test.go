package executor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/analytics"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/replay"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
)

const spending = `
version: "1"
default: deny
rules:
- {id: small, when: 'req.tool == "pay" && args.cents <= 100', then: allow}
- id: large
  when: req.tool == "pay" && args.cents > 100 && args.cents <= 1000
  then: ask
  ask: {groups: [{from: ["group:finance"]}], editable: [""], deadline: 1h}
- {id: never, when: 'req.tool == "pay" && args.cents > 1000', then: deny, reason: too much}
`

// cashier is an executor for payments under the rules of spending, unless change sets others.
func cashier(t *testing.T, s store.Store, change func(*executor.Config)) *executor.Executor {
	t.Helper()
	var paid atomic.Int64
	return executorOf(t, s, payer(t, &paid, "one"), func(c *executor.Config) {
		c.Desk.Policy = loadRules(t, spending)
		c.Desk.Directory = desk.StaticDirectory{"group:finance": {"ann", "bob"}}
		if change != nil {
			change(c)
		}
	})
}

// spend makes the rules decide: one payment is allowed, one approved, one denied, one edited and
// approved.
func spend(t *testing.T, e *executor.Executor) {
	t.Helper()
	completed(t, began(t, e, "a", "inproc:pay", `{"cents":50}`))
	b := waits(t, began(t, e, "b", "inproc:pay", `{"cents":500}`)).Interrupts[0].ID
	completed(t, mustRun(t, e, word("ann", "b", "r1", b, yes)))
	if outcome, ok := began(t, e, "c", "inproc:pay", `{"cents":77731}`).(fermata.Failed); !ok {
		t.Fatalf("a denied payment has the outcome %#v", outcome)
	}
	d := waits(t, began(t, e, "d", "inproc:pay", `{"cents":600}`)).Interrupts[0].ID
	completed(t, mustRun(t, e, word("ann", "d", "r2", d, `{"verb":"approve","args":{"cents":550}}`)))
}

func papersOf(t *testing.T, s store.Store, account string, kind store.DocumentKind) []store.Document {
	t.Helper()
	papers, err := s.Documents(t.Context(), account, kind, store.DocumentFilter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return papers
}

func replayed(t *testing.T, e *executor.Executor, account, text string) replay.HistoryReport {
	t.Helper()
	past, err := e.Replay(t.Context(), account, loadRules(t, text), time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return past
}

// A replay compares the recorded rulings with those of other rules: from the store, by any replica,
// and for one account.
func TestReplay_ComparesRulingsWithOtherRules(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		s := open()
		spend(t, cashier(t, s, nil))
		e := cashier(t, open(), nil) // another process
		if same := replayed(t, e, "acme", spending); same.Rulings != 5 || same.Unchanged != 5 || same.Truncated {
			t.Errorf("with the same rules: %+v", same)
		}
		wide := replayed(t, e, "acme", "default: allow\nrules: []\n")
		if wide.Looser != 4 || wide.Unchanged != 1 || len(wide.Examples) != 4 || len(wide.Rules) != 1 || wide.Rules[0].Decided != 5 {
			t.Errorf("with rules that allow everything: %+v", wide)
		}
		closed := replayed(t, e, "acme", "default: deny\nrules: []\n")
		if closed.Stricter != 4 || closed.Unchanged != 1 || closed.Weakens() {
			t.Errorf("with rules that deny everything: %+v", closed)
		}
		first := wide.Examples[0]
		if first.Run == "" || first.Request == "" || first.Tool != "pay" || first.Before != policy.Ask || first.After != policy.Allow || first.Stage != replay.StageAsked {
			t.Errorf("an example: %+v", first)
		}
		if text, err := json.Marshal(wide); err != nil || strings.Contains(string(text), "77731") {
			t.Errorf("I7: the report contains arguments: %s, %v", text, err)
		}
		if other := replayed(t, e, "other", "default: allow\nrules: []\n"); other.Rulings != 0 {
			t.Errorf("I8: another account: %+v", other)
		}
		if late, err := e.Replay(t.Context(), "acme", loadRules(t, spending), time.Now().Add(time.Hour)); err != nil || late.Rulings != 0 {
			t.Errorf("a time range in the future: %+v, %v", late, err)
		}
	})
}

// A new limit is counted from the executed actions: 50 allowed and 500 approved cents precede a
// request for 600.
func TestReplay_CountsExecutedActions(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		e := cashier(t, open(), nil)
		spend(t, e)
		limited := func(most int) replay.HistoryReport {
			return replayed(t, e, "acme", spending+fmt.Sprintf("- {id: day, when: 'req.tool == \"pay\" && args.cents <= 1000', then: deny, limit: {amount: args.cents, max: %d, window: 24h}}\n", most))
		}
		if past := limited(1150); past.Stricter != 0 || past.Unchanged != 5 {
			t.Errorf("a limit that allows all: %+v", past)
		}
		if past := limited(1149); past.Stricter != 1 || past.Examples[0].After != policy.Deny {
			t.Errorf("a limit that is one cent too low: %+v", past)
		}
	})
}

// Rulings are encrypted, and deleted with their run.
func TestI7_RulingsAreEncryptedAndDeletedWithTheirRun(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		s := open()
		e := cashier(t, s, nil)
		spend(t, e)
		papers := papersOf(t, s, "acme", "ruling")
		if len(papers) != 7 { // five, and two approvals
			t.Errorf("%d rulings", len(papers))
		}
		for _, p := range papers {
			var facts struct{ Verdict, Stage, Policy, Tool string }
			if err := json.Unmarshal(p.Index, &facts); err != nil || facts.Verdict == "" || facts.Stage == "" || facts.Policy == "" || facts.Tool != "pay" {
				t.Errorf("index %s, %v", p.Index, err)
			}
			if bytes.Contains(p.Body, []byte("cents")) || bytes.Contains(p.Index, []byte("cents")) {
				t.Errorf("arguments in plaintext: %s %s", p.Index, p.Body)
			}
		}
		if _, err := e.EraseAccount(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		if left := papersOf(t, s, "acme", "ruling"); len(left) != 0 {
			t.Errorf("%d rulings are left", len(left))
		}
	})
}

// With DiscardRulings there is nothing to replay. A denial is still recorded, once and without a
// body.
func TestReplay_NothingIsRecordedIfTurnedOff(t *testing.T) {
	s := memory.NewStore(nil)
	e := cashier(t, s, func(c *executor.Config) { c.Desk.DiscardRulings = true })
	spend(t, e)
	papers := papersOf(t, s, "acme", "ruling")
	if len(papers) != 1 || papers[0].Body != nil || !strings.Contains(string(papers[0].Index), "denied") {
		t.Errorf("documents %+v", papers)
	}
	if past := replayed(t, e, "acme", spending); past.Rulings != 0 {
		t.Errorf("replay %+v", past)
	}
}

// leaving is a store whose caller cancels as soon as it has read the rulings.
type leaving struct {
	store.Store
	leave context.CancelFunc
}

func (l *leaving) Documents(ctx context.Context, account string, kind store.DocumentKind, f store.DocumentFilter) ([]store.Document, error) {
	papers, err := l.Store.Documents(ctx, account, kind, f)
	if l.leave != nil && kind == "ruling" {
		l.leave()
	}
	return papers, err
}

// Rules may take long for each ruling, so the replay ends when its caller cancels.
func TestReplay_EndsWithItsCaller(t *testing.T) {
	s := &leaving{Store: memory.NewStore(nil)}
	e := cashier(t, s, nil)
	spend(t, e)
	ctx, leave := context.WithCancel(t.Context())
	s.leave = leave
	if past, err := e.Replay(ctx, "acme", loadRules(t, spending), time.Now().Add(-time.Hour)); !errors.Is(err, context.Canceled) {
		t.Errorf("the replay continued: %+v, %v", past, err)
	}
}

// Every policy that was applied in an account has one line in its log, however many actions are
// evaluated concurrently, and its text is stored.
func TestI12_EveryPolicyHasOneLineAndItsTextIsStored(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		s := open()
		replicas := []*executor.Executor{cashier(t, open(), nil), cashier(t, open(), nil)}
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				outcome, err := replicas[i%2].Run(t.Context(), executor.RunRequest{
					Account: "acme", StateKey: fmt.Sprint("k", i), Graph: "inproc:pay", Input: json.RawMessage(fmt.Sprintf(`{"cents":%d}`, 50+300*(i%4)+i)),
				})
				if err != nil {
					t.Errorf("%d: %#v, %v", i, outcome, err)
				}
			})
		}
		all.Wait()
		kinds := lines(t, s)
		if n := count(kinds, "policy.loaded"); n != 1 {
			t.Errorf("%d lines for a policy: %v", n, kinds)
		}
		after := cashier(t, s, func(c *executor.Config) { c.Desk.Policy = loadRules(t, openSpending) })
		old, now := loadRules(t, spending).Digest(), loadRules(t, openSpending).Digest()
		if text, err := after.PolicyByDigest(t.Context(), "acme", old); err != nil || text.Text != spending || text.Version != "1" || text.Since.IsZero() {
			t.Errorf("the earlier policy: %+v, %v", text, err)
		}
		if text, err := after.PolicyByDigest(t.Context(), "acme", now); err != nil || text.Text != openSpending || !text.Since.IsZero() {
			t.Errorf("the current policy: %+v, %v", text, err)
		}
		if text, err := after.PolicyByDigest(t.Context(), "other", old); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("I8: the policy of another account: %+v, %v", text, err)
		}
		completed(t, began(t, after, "z", "inproc:pay", `{"cents":1}`))
		completed(t, began(t, after, "y", "inproc:pay", `{"cents":2}`))
		if n := count(lines(t, s), "policy.loaded"); n != 2 {
			t.Errorf("%d lines for two policies", n)
		}
	})
}

const openSpending = "default: allow\nrules: []\n"

func count(kinds []string, kind string) (n int) {
	for _, k := range kinds {
		if k == kind {
			n++
		}
	}
	return n
}

// An action that the rules deny without a request is in the log, with the rules and without the
// arguments.
func TestI12_DeniedActionHasALine(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		s := open()
		e := cashier(t, s, nil)
		began(t, e, "c", "inproc:pay", `{"cents":77731}`)
		if kinds := lines(t, s); !slices.Equal(kinds, []string{"run.started", "policy.loaded", "policy.denied", "run.ended"}) {
			t.Errorf("audit lines %v", kinds)
		}
		raw := rawLines(t, s)
		if !strings.Contains(raw, `"never"`) || !strings.Contains(raw, loadRules(t, spending).Digest()) || strings.Contains(raw, "77731") {
			t.Errorf("audit line %s", raw)
		}
		if found, err := e.Reconcile(t.Context(), "acme"); err != nil || len(found) != 0 {
			t.Errorf("reconciliation findings: %+v, %v", found, err)
		}
	})
}

func rawLines(t *testing.T, s store.Store) string {
	t.Helper()
	kept, err := s.AuditLines(t.Context(), "acme", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, line := range kept {
		all.Write(line.Raw)
	}
	return all.String()
}

// A provider that asks requests itself gets the denial when it asks. Its run fails, and the denial
// is logged with that.
func TestI12_DeniedRequestOfAProviderHasALine(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		p, err := external.New(external.Config{})
		if err != nil {
			t.Fatal(err)
		}
		e := executorOf(t, s, p, func(c *executor.Config) { c.Desk.Policy = loadRules(t, twoPeople) })
		digest, err := fermata.ApprovalRequest{Action: "drop-table"}.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: json.RawMessage(`"audit"`)})
		if err != nil {
			t.Fatal(err)
		}
		input := `{"kind":"approval","data":{"action":"drop-table","args":"audit","digest":"` + digest + `"}}`
		failedWith(t, began(t, e, "x", "external:request", input), "denied")
		if kinds := lines(t, s); !slices.Equal(kinds, []string{"run.started", "policy.loaded", "policy.denied", "run.ended"}) {
			t.Errorf("audit lines %v", kinds)
		}
		if past := replayed(t, e, "acme", "default: allow\nrules: []\n"); past.Rulings != 1 || past.Looser != 1 || past.Examples[0].Stage != replay.StageDenied {
			t.Errorf("the ruling is not recorded: %+v", past)
		}
	})
}

// deaf is a store that applies a write and loses its response once.
type deaf struct {
	store.Store
	loses atomic.Int64
}

func (d *deaf) CommitWrites(ctx context.Context, account string, beside store.Writes) error {
	err := d.Store.CommitWrites(ctx, account, beside)
	if err == nil && slices.ContainsFunc(beside.Documents, func(p store.DocumentChange) bool { return p.Kind == "ruling" }) && d.loses.Add(-1) >= 0 {
		return errors.New("the connection was reset")
	}
	return err
}

// The process that takes over evaluates again, and the ruling is recorded once.
func TestI14_RulingThatIsMadeTwiceIsRecordedOnce(t *testing.T) {
	for name, cents := range map[string]string{"allowed": "50", "denied": "77731"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &deaf{Store: memory.NewStore(nil)}
				s.loses.Store(1)
				e := cashier(t, s, nil)
				e.StartWorkers()
				if outcome := began(t, e, "a", "inproc:pay", `{"cents":`+cents+`}`); outcome == nil {
					t.Fatal("the run has no outcome")
				}
				if s.loses.Load() > 0 {
					t.Fatal("no response was lost")
				}
				if n := len(papersOf(t, s, "acme", "ruling")); n != 1 {
					t.Errorf("%d rulings", n)
				}
				if n := count(lines(t, s), "policy.denied"); n > 1 || (n == 1) != (name == "denied") {
					t.Errorf("%d lines of a denial", n)
				}
			})
		})
	}
}

// Parking and retrying a run are in the log, with the operator.
func TestI12_ParkingAndRetryingHaveALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore(nil)
		p := &scripted{execute: func(n int64, _ provider.Execution) (provider.Result, error) {
			if n == 1 {
				return provider.Result{}, provider.ErrPark
			}
			return done, nil
		}}
		e := executorOf(t, s, p, func(c *executor.Config) { c.Poll = time.Minute })
		e.StartWorkers()
		request := scriptedStart()
		request.Wait = time.Hour
		_, _ = e.Run(t.Context(), request)
		if err := e.Retry(t.Context(), "acme", "x-1", by("ops")); err != nil {
			t.Fatal(err)
		}
		completed(t, mustRun(t, e, scriptedStart()))
		if kinds := lines(t, s); !slices.Equal(kinds, []string{"run.started", "run.parked", "run.retried", "run.ended"}) {
			t.Errorf("audit lines %v", kinds)
		}
		if raw := rawLines(t, s); !strings.Contains(raw, `"principal":"ops"`) {
			t.Errorf("the line does not name the operator: %s", raw)
		}
		if err := e.Retry(t.Context(), "acme", "x-1", by("ops")); !errors.Is(err, executor.ErrNotRetryable) || count(lines(t, s), "run.retried") != 1 {
			t.Errorf("retry again: %v", err)
		}
	})
}

// together is a store whose readers of a run wait for each other.
type together struct {
	store.Store
	readers *sync.WaitGroup
}

func (s together) Get(ctx context.Context, account, stateKey string) (store.Run, error) {
	run, err := s.Store.Get(ctx, account, stateKey)
	s.readers.Done()
	s.readers.Wait()
	return run, err
}

// Regression: concurrent retries of a run at several replicas had a line each, as if the run had
// been parked as often.
func TestI12_ConcurrentRetriesHaveOneLine(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		p := &scripted{execute: func(int64, provider.Execution) (provider.Result, error) { return provider.Result{}, provider.ErrPark }}
		request := scriptedStart()
		request.Wait = time.Nanosecond
		_, _ = executorOf(t, s, p, nil).Run(t.Context(), request)
		eventually(t, func() bool { return known(t, s, "x-1").Run.Status == store.StatusParked })
		const many = 3
		var readers, all sync.WaitGroup
		var went atomic.Int64
		readers.Add(many)
		for range many {
			e := executorOf(t, together{s, &readers}, p, nil)
			all.Go(func() {
				err := e.Retry(t.Context(), "acme", "x-1", by("ops"))
				if err == nil {
					went.Add(1)
				} else if !errors.Is(err, executor.ErrNotRetryable) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := count(lines(t, s), "run.retried"); n != 1 || went.Load() != 1 {
			t.Errorf("%d retries succeeded, with %d lines", went.Load(), n)
		}
	})
}

// Concurrent first runs of a new account all store its policy. One of them succeeds, and none of
// the runs fails because of it.
func TestRulings_ConcurrentStoresOfAPolicy(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		s := open()
		replicas := []*executor.Executor{cashier(t, s, nil), cashier(t, open(), nil)}
		var all sync.WaitGroup
		for n := range 12 {
			all.Go(func() {
				cents := []int{50, 500, 5000}[n%3]
				outcome, err := replicas[n%2].Run(t.Context(), executor.RunRequest{
					Account: "acme", StateKey: fmt.Sprint("pay-", n), Graph: "inproc:pay", Input: fmt.Appendf(nil, `{"cents":%d}`, cents),
				})
				var good bool
				switch cents {
				case 50:
					_, good = outcome.(fermata.Completed)
				case 500:
					_, good = outcome.(fermata.NeedsInput)
				default:
					_, good = outcome.(fermata.Failed)
				}
				if err != nil || !good {
					t.Errorf("%d cents: %#v, %v", cents, outcome, err)
				}
			})
		}
		all.Wait()
		if got := len(papersOf(t, s, "acme", "policy")); got != 1 {
			t.Errorf("%d policies are stored", got)
		}
		if got := len(papersOf(t, s, "acme", "ruling")); got != 12 {
			t.Errorf("%d rulings are stored", got)
		}
	})
}

// An agent can give its action any name. In every store, the denial is recorded, and reports and
// replays work.
func TestRulings_ActionMayHaveAnyName(t *testing.T) {
	for name, action := range map[string]string{"NUL": "pay\u0000", "a path": "../../pay/2/c_1", "long": string(make([]rune, 300)), "right-to-left": "\u202eyap@1~2"} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s store.Store) {
				p, err := external.New(external.Config{})
				if err != nil {
					t.Fatal(err)
				}
				rules := "default: ask\ndefaults: {ask: {groups: [{from: [\"group:finance\"]}], deadline: 1h}}\nrules:\n- {id: no, when: 'args.n == 1', then: deny}\n"
				e := executorOf(t, s, p, func(c *executor.Config) { c.Desk.Policy = loadRules(t, rules) })
				for n := range 2 {
					data, err := json.Marshal(map[string]any{"kind": "approval", "data": map[string]any{"action": action, "args": map[string]int{"n": n}}})
					if err != nil {
						t.Fatal(err)
					}
					outcome, err := e.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: fmt.Sprint("x-", n), Graph: "external:request", Input: data, Actor: "mallory"})
					_, waits := outcome.(fermata.NeedsInput)
					failed, over := outcome.(fermata.Failed)
					if name == "a path" && waits != (n == 0) {
						t.Errorf("%d is asked: %t", n, waits)
					}
					if err != nil || !waits && !over || over && failed.Code != "denied" && failed.Code != "bad_question" && failed.Code != "invalid_input" {
						t.Fatalf("%d has the outcome %#v, %v", n, outcome, err)
					}
				}
				if _, err := e.Replay(t.Context(), "acme", loadRules(t, rules), time.Now().Add(-time.Hour)); err != nil {
					t.Errorf("replay: %v", err)
				}
				if _, err := e.Analytics(t.Context(), "acme", analytics.Query{Since: time.Now().Add(-time.Hour)}); err != nil {
					t.Errorf("analytics: %v", err)
				}
				if _, err := e.Reconcile(t.Context(), "acme"); err != nil {
					t.Errorf("reconciliation: %v", err)
				}
			})
		})
	}
}
