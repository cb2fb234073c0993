package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
)

type payment struct {
	Cents int64 `json:"cents"`
}

// pay pays after approval.
func pay(ctx context.Context, paid *atomic.Int64, action fermata.Action[payment]) error {
	yes, err := fermata.Approve(ctx, action)
	if err != nil {
		return err
	}
	_, err = fermata.Effect(ctx, yes, func(_ context.Context, args payment, _ string) (string, error) {
		paid.Add(args.Cents)
		return "paid", nil
	})
	return err
}

// budgeted are rules that need approval, with a limit of 1000 cents a day.
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

// payer pays what its node is asked to, in one step or in two concurrent steps.
func payer(t *testing.T, paid *atomic.Int64, nodes ...string) provider.Provider {
	t.Helper()
	g := graph.New[payment]("pay")
	for _, name := range nodes {
		g.Node(name, func(ctx context.Context, p payment) (payment, error) {
			return p, pay(ctx, paid, fermata.Action[payment]{Name: "pay", Args: p})
		})
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	return providing(t, g)
}

// bank is an executor for payments with the given rules.
func bank(t *testing.T, s store.Store, p provider.Provider, rules string) *executor.Executor {
	t.Helper()
	return executorOf(t, s, p, func(c *executor.Config) {
		c.Desk.Policy = loadRules(t, rules)
		c.Desk.Directory = desk.StaticDirectory{"group:finance": {"ann", "bob"}}
	})
}

// Limits hold for concurrent actions.
func TestLimits_CountExecutedActions(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := new(dropper)
		e := office(t, s, d, func(c *executor.Config) {
			c.Desk.Policy = loadRules(t, `
default: allow
rules:
- id: three
  when: req.tool == "drop-table"
  limit: {max: 3, window: 1h, by: [requester]}
  then: ask
  ask: {groups: [{from: ["group:dba"]}], deadline: 1h}
`)
		})
		outcomes := make(chan fermata.Outcome, 8)
		for n := range cap(outcomes) {
			go func() {
				outcome, err := e.Run(t.Context(), dropAs("req", fmt.Sprint("drop-", n)))
				if err != nil {
					t.Error(err)
				}
				outcomes <- outcome
			}()
		}
		done := 0
		for range cap(outcomes) {
			if _, ok := (<-outcomes).(fermata.Completed); ok {
				done++
			}
		}
		if done != 3 || d.dropped.Load() != 3 {
			t.Errorf("%d went ahead, %d were dropped", done, d.dropped.Load())
		}
		completed(t, mustRun(t, e, dropAs("somebody else", "other")))
	})
}

// Two actions that were asked while both were within the limit do not exceed it together.
func TestLimits_HoldForApprovedActions(t *testing.T) {
	var paid atomic.Int64
	e := bank(t, memory.NewStore(nil), payer(t, &paid, "one"), budgeted)
	a := waits(t, began(t, e, "a", "inproc:pay", `{"cents":600}`)).Interrupts[0].ID
	b := waits(t, began(t, e, "b", "inproc:pay", `{"cents":600}`)).Interrupts[0].ID
	_, _ = e.Run(t.Context(), word("ann", "a", "r1", a, yes))
	_, err := e.Run(t.Context(), word("ann", "b", "r2", b, yes))
	if paid.Load() > 1000 {
		t.Errorf("%d cents were paid, the limit is 1000 (%v)", paid.Load(), err)
	}
}

// Two actions that are approved at once are charged to the same counter.
func TestLimits_TwoApprovalsInOneResumeAreChargedTogether(t *testing.T) {
	var paid atomic.Int64
	e := bank(t, memory.NewStore(nil), payer(t, &paid, "one", "two"), budgeted)
	asked := waits(t, began(t, e, "a", "inproc:pay", `{"cents":100}`)).Interrupts
	if len(asked) != 2 {
		t.Fatalf("open requests %+v", asked)
	}
	request := word("ann", "a", "r1", asked[0].ID, yes)
	request.Targets[asked[1].ID] = executor.Answer{Value: json.RawMessage(yes)}
	outcome, err := e.Run(t.Context(), request)
	if err != nil || paid.Load() != 200 {
		t.Errorf("both at once: %#v, %v; paid %d", outcome, err, paid.Load())
	}
}

// An edited action is evaluated again by the run, which recognises its charge.
func TestLimits_ApprovedEditIsNotDeniedByItsOwnCharge(t *testing.T) {
	var paid atomic.Int64
	e := bank(t, memory.NewStore(nil), payer(t, &paid, "one"), budgeted)
	a := waits(t, began(t, e, "a", "inproc:pay", `{"cents":700}`)).Interrupts[0].ID
	outcome := mustRun(t, e, word("ann", "a", "r1", a, `{"verb":"approve","args":{"cents":600}}`))
	if paid.Load() != 600 {
		t.Errorf("600 of 1000 were approved and charged; outcome %#v, paid %d", outcome, paid.Load())
	}
}

func TestLimits_ApprovedEditIsChargedOnce(t *testing.T) {
	var paid atomic.Int64
	s := memory.NewStore(nil)
	e := bank(t, s, payer(t, &paid, "one"), `
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
	a := waits(t, began(t, e, "a", "inproc:pay", `{"cents":700}`)).Interrupts[0].ID
	mustRun(t, e, word("ann", "a", "r1", a, `{"verb":"approve","args":{"cents":600}}`))
	if sum := chargedIn(t, s); sum != 600 {
		t.Errorf("600 were paid, charged were %d", sum)
	}
}

// An answer that the asking code rejected was not executed, so it is not charged. The request that
// replaces it is not denied because of it.
func TestLimits_RequestAskedAgainIsNotDeniedByTheRejectedAnswer(t *testing.T) {
	var moved atomic.Int64
	e := executorOf(t, memory.NewStore(nil), transferring(t, &moved), func(c *executor.Config) {
		c.Desk.Policy = loadRules(t, `
default: deny
rules:
- {id: pay, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], editable: [""], deadline: 1h}}
- {id: month, when: 'true', then: deny, limit: {amount: args.amount, max: 1000, window: 24h}}
`)
	})
	first := waits(t, began(t, e, "t-1", "inproc:transfer", `{"amount":600}`)).Interrupts[0].ID
	outcome := mustRun(t, e, approveWith("odd", first, `{"verb":"approve","args":{"amount":601}}`))
	again, ok := outcome.(fermata.NeedsInput)
	if !ok {
		t.Fatalf("601 was rejected by the asking code and nothing was moved, but the outcome is %#v", outcome)
	}
	outcome, err := e.Run(t.Context(), approveWith("even", again.Interrupts[0].ID, yes))
	if moved.Load() != 600 {
		t.Errorf("600 of 1000: %#v, %v", outcome, err)
	}
}

type rounds struct {
	Cents int64 `json:"cents"`
	N     int   `json:"n"`
}

// A run that is attempted again repeats an action in a loop. Each repetition is another action and
// is charged.
func TestLimits_RunAttemptedAgainIsChargedForEachRound(t *testing.T) {
	var paid, tries atomic.Int64
	g := graph.New[rounds]("pay")
	g.Node("one", func(ctx context.Context, p rounds) (rounds, error) {
		if tries.Add(1) == 1 {
			return p, &fermata.RetryError{After: time.Millisecond, Err: errors.New("not now")}
		}
		p.N++
		return p, pay(ctx, &paid, fermata.Action[payment]{Name: "pay", Args: payment{p.Cents}})
	})
	g.Edge(graph.Start, "one")
	g.Branch("one", func(p rounds) string {
		if p.N < 5 {
			return "one"
		}
		return graph.End
	}, "one", graph.End)
	e := bank(t, memory.NewStore(nil), providing(t, g), `
default: deny
rules:
- {id: pay, when: req.tool == "pay", limit: {amount: args.cents, max: 1000, window: 24h}, then: allow}
`)
	e.StartWorkers()
	outcome := began(t, e, "a", "inproc:pay", `{"cents":600,"n":0}`)
	if failed, ok := outcome.(fermata.Failed); !ok || failed.Code != "rejected" || paid.Load() != 600 {
		t.Errorf("%d cents were paid without approval, the limit is 1000 (%#v)", paid.Load(), outcome)
	}
}

// Amounts whose sum overflows int64 do not wrap around to zero.
func TestLimits_LargeAmountsDoNotOverflow(t *testing.T) {
	var paid atomic.Int64
	e := bank(t, memory.NewStore(nil), payer(t, &paid, "one"), `
default: allow
rules:
- {id: day, when: req.tool == "pay", limit: {amount: args.cents, max: 1000, window: 24h}, then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h}}
`)
	for n := range 4 { // 4 times 2^62 is 2^64
		key := fmt.Sprint("a-", n)
		asked := waits(t, began(t, e, key, "inproc:pay", `{"cents":4611686018427387904}`)).Interrupts[0]
		mustRun(t, e, word("ann", key, key, asked.ID, yes))
	}
	outcome := began(t, e, "b", "inproc:pay", `{"cents":1000}`)
	if _, asked := outcome.(fermata.NeedsInput); !asked {
		t.Errorf("2^64 cents in a day leave room for more: %#v", outcome)
	}
}

// So many actions use the counter that some find it changed 21 times.
func TestLimits_ManyConcurrentActionsDoNotFailTheirRuns(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := new(dropper)
		e := office(t, s, d, func(c *executor.Config) {
			c.Desk.Policy = loadRules(t, `
default: allow
rules:
- id: many
  when: req.tool == "drop-table"
  limit: {max: 100000, window: 1h}
  then: deny
`)
		})
		e.StartWorkers()
		var wg sync.WaitGroup
		var failed atomic.Int64
		for n := range 64 {
			wg.Go(func() {
				outcome, err := e.Run(t.Context(), dropAs("req", fmt.Sprint("drop-", n)))
				if _, ok := outcome.(fermata.Failed); ok {
					failed.Add(1)
				} else if err != nil {
					t.Log(err)
				}
			})
		}
		wg.Wait()
		if failed.Load() > 0 {
			t.Errorf("%d of 64 runs failed, dropped %d", failed.Load(), d.dropped.Load())
		}
	})
}
