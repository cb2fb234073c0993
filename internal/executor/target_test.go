package executor_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// number is a target check that returns a number.
func number[A any](n *atomic.Int64) func(context.Context, A) (any, error) {
	return func(context.Context, A) (any, error) { return n.Load(), nil }
}

// restless pays at one node after the other, with a balance as target that changes.
func restless(t *testing.T, paid, balance *atomic.Int64, nodes ...string) provider.Provider {
	t.Helper()
	g := graph.New[payment]("pay")
	last := graph.Start
	for _, name := range nodes {
		g.Node(name, func(ctx context.Context, p payment) (payment, error) {
			return p, pay(ctx, paid, fermata.Action[payment]{Name: "pay", Args: p, Target: number[payment](balance)})
		})
		g.Edge(last, name)
		last = name
	}
	g.Edge(last, graph.End)
	return providing(t, g)
}

// An effect that asked before it did anything was not begun, so its target is checked again.
func TestI6_TargetIsCheckedAgainAfterTheEffectAsked(t *testing.T) {
	var rows, dropped atomic.Int64
	rows.Store(3)
	kind := fermata.NewKind[string, string]("pin-" + t.Name())
	p := single(t, "drop", inproc.FlowConfig[order]{}, func(ctx context.Context, o order) (order, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[string]{Name: "drop-table", Args: o.Table, Target: number[string](&rows)})
		if err != nil {
			return o, err
		}
		o.Receipt, err = fermata.Effect(ctx, yes, func(ctx context.Context, table, _ string) (string, error) {
			if _, err := kind.Ask(ctx, "pin?"); err != nil {
				return "", err
			}
			dropped.Store(rows.Load())
			return "dropped", nil
		})
		return o, err
	})
	e := executorOf(t, memory.NewStore(nil), p, nil)
	a := waits(t, began(t, e, "d", "inproc:drop", `{"table":"users"}`)).Interrupts[0].ID
	pin := waits(t, mustRun(t, e, word("ann", "d", "r1", a, yes))).Interrupts[0].ID
	rows.Store(1000000)
	outcome := mustRun(t, e, word("ann", "d", "r2", pin, `"1234"`))
	if dropped.Load() != 0 {
		t.Errorf("3 rows were approved, %d were dropped: %T", dropped.Load(), outcome)
	}
}

// A request that is asked again needs no fewer approvers. Regression: the first approval was
// charged, so the rules denied the second request, which then had no required group.
func TestTarget_RequestAskedAgainNeedsNoFewerApprovers(t *testing.T) {
	var paid, balance atomic.Int64
	e := bank(t, memory.NewStore(nil), restless(t, &paid, &balance, "one"), budgeted)
	a := waits(t, began(t, e, "a", "inproc:pay", `{"cents":600}`)).Interrupts[0].ID
	balance.Add(1)
	again := waits(t, mustRun(t, e, word("ann", "a", "r1", a, yes))).Interrupts[0].ID
	doc, err := e.RequestDocument(t.Context(), "acme", again)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Run(t.Context(), word("mallory", "a", "r2", again, yes))
	if err == nil || paid.Load() != 0 {
		t.Errorf("asked again, the request needs %v by %v, and mallory, a member of no group, paid %d: %v", doc.Requirement.Groups, doc.Subject.Rules, paid.Load(), err)
	}
}

// A request that is asked again because its target has changed needs the approvers of the same
// action, not of another one with the same name.
func TestTarget_RequestAskedAgainNeedsTheApproversOfItsAction(t *testing.T) {
	var paid, rows atomic.Int64
	kind := fermata.NewKind[string, string]("word-of-" + t.Name())
	g := graph.New[payment]("pay")
	g.Node("big", func(ctx context.Context, p payment) (payment, error) {
		return p, pay(ctx, &paid, fermata.Action[payment]{Name: "pay", Args: payment{1_000_000}, Target: number[payment](&rows)})
	})
	g.Node("small", func(ctx context.Context, p payment) (payment, error) {
		if _, err := kind.Ask(ctx, "go on?"); err != nil {
			return p, err
		}
		_, err := fermata.Approve(ctx, fermata.Action[payment]{Name: "pay", Args: payment{1}})
		return p, err
	})
	for _, name := range []string{"big", "small"} {
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	e := executorOf(t, memory.NewStore(nil), providing(t, g), func(c *executor.Config) {
		c.Desk.Directory = desk.StaticDirectory{"group:finance": {"ann", "bob"}, "group:clerks": {"carl"}}
		c.Desk.Policy = loadRules(t, `
default: deny
rules:
- {id: big, when: args.cents > 100, then: ask, ask: {groups: [{from: ["group:finance"], count: 2}], deadline: 1h}}
- {id: small, when: args.cents <= 100, then: ask, ask: {groups: [{from: ["group:clerks"]}], deadline: 1h}}
`)
	})
	var big, question string
	for _, i := range waits(t, began(t, e, "a", "inproc:pay", `{"cents":0}`)).Interrupts {
		if i.Kind == fermata.Approval.Name() {
			big = i.ID
		} else {
			question = i.ID
		}
	}
	// the small payment is asked now
	waits(t, mustRun(t, e, word("carl", "a", "r0", question, `"yes"`)))
	rows.Add(1)
	waits(t, mustRun(t, e, word("ann", "a", "r1", big, yes)))
	var again string
	for _, i := range waits(t, mustRun(t, e, word("bob", "a", "r2", big, yes))).Interrupts {
		var asked fermata.ApprovalRequest
		if json.Unmarshal(i.Data, &asked) == nil && asked.PreviousTarget != nil {
			again = i.ID
		}
	}
	outcome, err := e.Run(t.Context(), word("carl", "a", "r3", again, yes))
	if err == nil {
		t.Errorf("carl, a clerk, alone: %T, and %d were paid", outcome, paid.Load())
	}
}

// The approvers of a request that is asked again are those of the same node, not those of the same
// action at another node.
func TestTarget_SameActionElsewhereDoesNotChooseTheApprovers(t *testing.T) {
	var balance atomic.Int64
	g := graph.New[payment]("pay")
	for _, name := range []string{"strict", "loose"} {
		g.Node(name, func(ctx context.Context, p payment) (payment, error) {
			_, err := fermata.Approve(ctx, fermata.Action[payment]{Name: "pay", Args: p, Target: number[payment](&balance)})
			return p, err
		})
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	e := bank(t, memory.NewStore(nil), providing(t, g), `
default: deny
rules:
- {id: strict, when: req.node == "strict", then: ask, ask: {groups: [{from: ["group:finance"]}], deadline: 1h}}
- {id: loose, when: req.node == "loose", then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h}}
`)
	asked := waits(t, began(t, e, "a", "inproc:pay", `{"cents":600}`)).Interrupts
	balance.Store(1)
	request := word("ann", "a", "r1", asked[0].ID, yes)
	request.Targets[asked[1].ID] = executor.Answer{Value: json.RawMessage(yes)}
	for _, again := range waits(t, mustRun(t, e, request)).Interrupts {
		q, err := e.GetRequest(t.Context(), "acme", again.ID)
		if err != nil {
			t.Fatal(err)
		}
		place, want := again.Address.String(), "anyone"
		if strings.Contains(place, "node:strict") {
			want = "group:finance"
		}
		if got := q.Request.Requirement.Groups[0].From; !slices.Equal(got, []string{want}) {
			t.Errorf("%s needs %v, and needed %s before", place, got, want)
		}
	}
}

// A request that is asked again because its target has changed cannot be approved if the rules deny
// it by now.
func TestTarget_ActionDeniedByNowIsNotApprovedTheSecondTime(t *testing.T) {
	var paid, balance atomic.Int64
	live, set := liveRules(t, budgeted)
	e := executorOf(t, memory.NewStore(nil), restless(t, &paid, &balance, "one"), func(c *executor.Config) {
		c.Desk.Policy, c.Desk.Directory = live, desk.StaticDirectory{"group:finance": {"ann", "bob"}}
	})
	first := waits(t, began(t, e, "a", "inproc:pay", `{"cents":600}`)).Interrupts[0]
	balance.Store(1)
	again := waits(t, mustRun(t, e, word("ann", "a", "r1", first.ID, yes))).Interrupts[0]
	set("default: deny\n")
	outcome, err := e.Run(t.Context(), word("ann", "a", "r2", again.ID, yes))
	if err == nil || paid.Load() != 0 {
		t.Errorf("the rules deny everything, but %d cents were paid: %#v", paid.Load(), outcome)
	}
}

// The arguments may be edited when a request is asked again, and the payment is charged once.
func TestTarget_EditInTheSecondRequestIsCharged(t *testing.T) {
	var paid, balance atomic.Int64
	e := bank(t, memory.NewStore(nil), restless(t, &paid, &balance, "one"), budgeted)
	for _, key := range []string{"a", "b"} {
		first := waits(t, began(t, e, key, "inproc:pay", `{"cents":1}`)).Interrupts[0]
		balance.Add(1)
		again := waits(t, mustRun(t, e, word("ann", key, key+"1", first.ID, yes))).Interrupts[0]
		_, _ = e.Run(t.Context(), word("ann", key, key+"2", again.ID, `{"verb":"approve","args":{"cents":900}}`))
	}
	if paid.Load() != 900 {
		t.Errorf("%d cents were paid of a budget of 1000", paid.Load())
	}
	first := waits(t, began(t, e, "c", "inproc:pay", `{"cents":99}`)).Interrupts[0]
	if _, err := e.Run(t.Context(), word("ann", "c", "c1", first.ID, yes)); err != nil || paid.Load() != 999 {
		t.Errorf("900 and 99 cents are within a budget of 1000 (a request that is asked twice is charged once): %v; paid %d", err, paid.Load())
	}
}

// However long the second approval takes, an action that is done once is charged once.
func TestTarget_RequestAskedAgainHoursLaterIsChargedOnce(t *testing.T) {
	var paid, balance, ahead atomic.Int64
	runs := memory.NewStore(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	e := bank(t, runs, restless(t, &paid, &balance, "one"), strings.Replace(budgeted, "deadline: 1h", "deadline: 8h", 1))
	first := waits(t, began(t, e, "a", "inproc:pay", `{"cents":900}`)).Interrupts[0]
	balance.Add(1)
	again := waits(t, mustRun(t, e, word("ann", "a", "a1", first.ID, yes))).Interrupts[0]
	ahead.Store(int64(2 * time.Hour))
	other := waits(t, began(t, e, "b", "inproc:pay", `{"cents":50}`)).Interrupts[0]
	completed(t, mustRun(t, e, word("ann", "b", "b1", other.ID, yes)))
	ahead.Store(int64(3 * time.Hour))
	if completed(t, mustRun(t, e, word("ann", "a", "a2", again.ID, yes))); paid.Load() != 950 || chargedIn(t, runs) != 950 {
		t.Errorf("950 of 1000 were approved: paid %d, charged %d", paid.Load(), chargedIn(t, runs))
	}
}
