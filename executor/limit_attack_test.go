package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

type payment struct {
	Cents int64 `json:"cents"`
}

const budgeted = `
default: deny
rules:
- id: pay
  when: req.tool == "pay"
  then: ask
  ask: {groups: [{from: ["group:finance"]}], editable: [""], deadline: 1h}
- id: month
  when: req.tool == "pay"
  limit: {amount: args.cents, max: 1000, window: 24h}
  then: deny
  reason: the budget is used up
`

// payer pays what its node is asked to, in one or in two steps at the same time.
func payer(t *testing.T, paid *atomic.Int64, nodes ...string) provider.Provider {
	t.Helper()
	g := graph.New[payment]("pay")
	for _, name := range nodes {
		g.Node(name, func(ctx context.Context, p payment) (payment, error) {
			yes, err := fermata.Approve(ctx, fermata.Action[payment]{Name: "pay", Args: p})
			if err != nil {
				return p, err
			}
			_, err = fermata.Effect(ctx, yes, func(_ context.Context, args payment, _ string) (string, error) {
				paid.Add(args.Cents)
				return "paid", nil
			})
			return p, err
		})
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	return providing(t, g)
}

func bank(t *testing.T, s store.Store, p provider.Provider) *executor.Executor {
	t.Helper()
	return executorOf(t, s, p, func(c *executor.Config) {
		c.Desk.Rules = loadRules(t, budgeted)
		c.Desk.Directory = desk.Members{"group:finance": {"ann", "bob"}}
	})
}

// Two that were asked about while both were within the limit go beyond it together.
func TestAttack_ALimitHoldsForWhatPeopleApprove(t *testing.T) {
	var paid atomic.Int64
	e := bank(t, memory.NewRuns(nil), payer(t, &paid, "one"))
	a := waits(t, began(t, e, "a", "inproc:pay", `{"cents":600}`)).Interrupts[0].ID
	b := waits(t, began(t, e, "b", "inproc:pay", `{"cents":600}`)).Interrupts[0].ID
	_, _ = e.Run(t.Context(), word("ann", "a", "r1", a, yes))
	_, err := e.Run(t.Context(), word("ann", "b", "r2", b, yes))
	if paid.Load() > 1000 {
		t.Errorf("%d cents were paid, and 1000 is what no rule lets anybody go beyond (%v)", paid.Load(), err)
	}
}

// What was edited is judged again by the run, which finds that it was charged already.
func TestAttack_AnApprovedEditIsNotDeniedByItsOwnCharge(t *testing.T) {
	var paid atomic.Int64
	e := bank(t, memory.NewRuns(nil), payer(t, &paid, "one"))
	a := waits(t, began(t, e, "a", "inproc:pay", `{"cents":700}`)).Interrupts[0].ID
	outcome := mustRun(t, e, word("ann", "a", "r1", a, `{"verb":"approve","args":{"cents":600}}`))
	if paid.Load() != 600 {
		t.Errorf("600 of 1000 were approved and charged; it came to %#v, and %d were paid", outcome, paid.Load())
	}
}

// Two actions that are approved at once are charged to the same counter.
func TestAttack_TwoApprovalsInOneResumeAreChargedTogether(t *testing.T) {
	var paid atomic.Int64
	e := bank(t, memory.NewRuns(nil), payer(t, &paid, "one", "two"))
	asked := waits(t, began(t, e, "a", "inproc:pay", `{"cents":100}`)).Interrupts
	if len(asked) != 2 {
		t.Fatalf("%+v", asked)
	}
	request := word("ann", "a", "r1", asked[0].ID, yes)
	request.Targets[asked[1].ID] = executor.Answer{Value: json.RawMessage(yes)}
	outcome, err := e.Run(t.Context(), request)
	if err != nil || paid.Load() != 200 {
		t.Errorf("both at once: %#v, %v; paid %d", outcome, err, paid.Load())
	}
}

// flaky is a store that cannot be read once.
type flaky struct {
	store.Store
	fails atomic.Int64
}

func (f *flaky) Paper(ctx context.Context, account string, kind store.PaperKind, id string) (store.Paper, error) {
	if kind == "counter" && f.fails.Add(-1) >= 0 {
		return store.Paper{}, errors.New("the connection was reset")
	}
	return f.Store.Paper(ctx, account, kind, id)
}

// A database that is away for a moment while the rules look at a counter ends the run.
func TestAttack_AStoreThatIsAwayForAMomentDoesNotFailTheRun(t *testing.T) {
	var paid atomic.Int64
	s := &flaky{Store: memory.NewRuns(nil)}
	s.fails.Store(1)
	e := bank(t, s, payer(t, &paid, "one"))
	e.Start()
	outcome := began(t, e, "a", "inproc:pay", `{"cents":700}`)
	if failed, ok := outcome.(fermata.Failed); ok {
		t.Errorf("the run is over: %+v", failed)
	}
}

// The same without any fault: so many want the counter that some find it changed 21 times.
func TestAttack_ManyActionsAtOnceDoNotFailTheirRuns(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := new(dropper)
		e := office(t, s, d, func(c *executor.Config) {
			c.Desk.Rules = loadRules(t, `
default: allow
rules:
- id: many
  when: req.tool == "drop-table"
  limit: {max: 100000, window: 1h}
  then: deny
`)
		})
		e.Start()
		var wg sync.WaitGroup
		var failed atomic.Int64
		for n := range 64 {
			wg.Go(func() {
				outcome, err := e.Run(t.Context(), executor.Request{Account: "acme", StateKey: fmt.Sprint("drop-", n), Graph: "inproc:drop", Input: json.RawMessage(`{"table":"users"}`), Actor: "req"})
				if _, ok := outcome.(fermata.Failed); ok {
					failed.Add(1)
				} else if err != nil {
					t.Log(err)
				}
			})
		}
		wg.Wait()
		if failed.Load() > 0 {
			t.Errorf("%d of 64 runs failed for good, dropped %d", failed.Load(), d.dropped.Load())
		}
	})
}

// What is judged again because the counter moved uses the grant again.
func TestAttack_AUseOfAGrantIsCountedOnce(t *testing.T) {
	s, d := memory.NewRuns(nil), new(dropper)
	e := office(t, s, d, func(c *executor.Config) {
		c.Desk.Rules = loadRules(t, `
default: allow
rules:
- id: drop
  when: req.tool == "drop-table"
  then: ask
  ask: {groups: [{from: ["group:dba"]}], deadline: 1h, remember_max: 1h}
- id: many
  when: req.tool == "drop-table"
  limit: {max: 1000, window: 1h}
  then: deny
`)
	})
	asked := startAs(t, e, "req").Interrupts[0].ID
	mustRun(t, e, word("bob", "drop-1", "r1", asked, yes))
	if _, err := e.Remember(t.Context(), "acme", asked, executor.Remember{By: "bob", TTL: time.Hour, MaxUses: 8}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			_, err := e.Run(t.Context(), executor.Request{Account: "acme", StateKey: fmt.Sprint("drop-x", n), Graph: "inproc:drop", Input: json.RawMessage(`{"table":"users"}`), Actor: "req"})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list, _ := e.Grants(t.Context(), "acme")
	t.Logf("dropped %d, uses %d", d.dropped.Load(), list[0].Usage.Uses)
	if d.dropped.Load() != 9 {
		t.Errorf("of 8 uses %d were of use", d.dropped.Load()-1)
	}
}

func TestAttack_AnApprovedEditIsChargedOnce(t *testing.T) {
	var paid atomic.Int64
	s := memory.NewRuns(nil)
	e := executorOf(t, s, payer(t, &paid, "one"), func(c *executor.Config) {
		c.Desk.Rules = loadRules(t, `
default: deny
rules:
- id: small
  when: args.cents <= 600
  then: allow
- id: pay
  when: args.cents > 600
  then: ask
  ask: {groups: [{from: ["group:finance"]}], editable: [""], deadline: 1h}
- id: month
  when: req.tool == "pay"
  limit: {amount: args.cents, max: 100000, window: 24h}
  then: deny
`)
		c.Desk.Directory = desk.Members{"group:finance": {"ann", "bob"}}
	})
	a := waits(t, began(t, e, "a", "inproc:pay", `{"cents":700}`)).Interrupts[0].ID
	mustRun(t, e, word("ann", "a", "r1", a, `{"verb":"approve","args":{"cents":600}}`))
	papers, _ := s.Papers(t.Context(), "acme", "counter", store.PaperFilter{})
	for _, p := range papers {
		if !strings.Contains(string(p.Facts), `"n":600`) {
			t.Errorf("600 were paid, charged were %s", p.Facts)
		}
	}
}

func TestAttack_WhoTakesOverIsNotDeniedByTheChargeOfTheFirst(t *testing.T) {
	var paid, tried atomic.Int64
	entered, hold := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	runs := memory.NewRuns(nil)
	make1 := func(c *executor.Config) {
		c.Lease = time.Hour
		c.Desk.Rules = loadRules(t, `
default: allow
rules:
- id: month
  when: req.tool == "pay"
  limit: {amount: args.cents, max: 1000, window: 24h}
  then: deny
`)
	}
	node := func(ctx context.Context, p payment) (payment, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[payment]{Name: "pay", Args: p})
		if err != nil {
			return p, err
		}
		if tried.Add(1) == 1 {
			close(entered)
			<-hold // this process is dead
		}
		_, err = fermata.Effect(ctx, yes, func(_ context.Context, args payment, _ string) (string, error) {
			paid.Add(args.Cents)
			return "paid", nil
		})
		return p, err
	}
	first := executorOf(t, runs, single(t, "pay", inproc.FlowConfig[payment]{}, node), make1)
	t.Cleanup(release)
	request := executor.Request{Account: "acme", StateKey: "a", Graph: "inproc:pay", Input: []byte(`{"cents":600}`)}
	go func() { _, _ = first.Run(context.Background(), request) }()
	<-entered
	expire(t, runs, "a")
	second := executorOf(t, runs, single(t, "pay", inproc.FlowConfig[payment]{}, node), make1)
	second.Start()
	outcome := mustRun(t, second, request)
	if paid.Load() != 600 {
		t.Errorf("600 of 1000: %#v, paid %d", outcome, paid.Load())
	}
	release()
}
