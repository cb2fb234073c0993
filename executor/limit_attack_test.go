package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

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
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	p, err := inproc.New(inproc.Flow(flow, inproc.FlowConfig[payment]{}))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func bank(t *testing.T, s store.Store, p provider.Provider) *executor.Executor {
	t.Helper()
	return executorOf(t, s, p, func(c *executor.Config) {
		c.Desk.Rules = loadRules(t, budgeted)
		c.Desk.Directory = desk.Members{"group:finance": {"ann", "bob"}}
	})
}

// BUG 5: two that were asked about while both were within the limit go beyond it together.
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

// BUG 6: what was edited is judged again by the run, which finds that it was charged already.
func TestAttack_AnApprovedEditIsNotDeniedByItsOwnCharge(t *testing.T) {
	var paid atomic.Int64
	e := bank(t, memory.NewRuns(nil), payer(t, &paid, "one"))
	a := waits(t, began(t, e, "a", "inproc:pay", `{"cents":700}`)).Interrupts[0].ID
	outcome := mustRun(t, e, word("ann", "a", "r1", a, `{"verb":"approve","args":{"cents":600}}`))
	if paid.Load() != 600 {
		t.Errorf("600 of 1000 were approved and charged; it came to %#v, and %d were paid", outcome, paid.Load())
	}
}

// BUG 7: two actions that are approved at once are charged to the same counter.
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

// BUG 8: a database that is away for a moment while the rules look at a counter ends the run.
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
	_ = strings.Contains
}
