package executor_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/store/memory"
)

// What is asked again because its target has changed needs the people of the same action, not of another one that has the same name.
func TestAttack_AskedAgainItNeedsThePeopleOfThisAction(t *testing.T) {
	var paid, rows atomic.Int64
	word2 := fermata.NewKind[string, string]("word-of-" + t.Name())
	g := graph.New[payment]("pay")
	g.Node("big", func(ctx context.Context, p payment) (payment, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[payment]{Name: "pay", Args: payment{1_000_000}, Target: func(context.Context, payment) (any, error) { return rows.Load(), nil }})
		if err != nil {
			return p, err
		}
		_, err = fermata.Effect(ctx, yes, func(_ context.Context, args payment, _ string) (string, error) {
			paid.Add(args.Cents)
			return "paid", nil
		})
		return p, err
	})
	g.Node("small", func(ctx context.Context, p payment) (payment, error) {
		if _, err := word2.Ask(ctx, "go on?"); err != nil {
			return p, err
		}
		_, err := fermata.Approve(ctx, fermata.Action[payment]{Name: "pay", Args: payment{1}})
		return p, err
	})
	for _, name := range []string{"big", "small"} {
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	p := providing(t, g)
	e := executorOf(t, memory.NewRuns(nil), p, func(c *executor.Config) {
		c.Desk.Directory = desk.Members{"group:finance": {"ann", "bob"}, "group:clerks": {"carl"}}
		c.Desk.Rules = loadRules(t, `
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
	waits(t, mustRun(t, e, word("carl", "a", "r0", question, `"yes"`))) // the small one is asked now
	rows.Add(1)
	waits(t, mustRun(t, e, word("ann", "a", "r1", big, yes)))
	var again string
	for _, i := range waits(t, mustRun(t, e, word("bob", "a", "r2", big, yes))).Interrupts {
		var asked fermata.ApprovalRequest
		if json.Unmarshal(i.Data, &asked) == nil && asked.Before != nil {
			again = i.ID
		}
	}
	outcome, err := e.Run(t.Context(), word("carl", "a", "r3", again, yes))
	if err == nil {
		t.Errorf("carl, a clerk, alone: %T, and %d were paid", outcome, paid.Load())
	}
}

// What the asking code could not use was not done, so it is not charged; and the question that comes in its place is not denied for it.
func TestAttack_WhatIsAskedAgainIsNotDeniedByTheChargeOfWhatWasRefused(t *testing.T) {
	var moved atomic.Int64
	e := executorOf(t, memory.NewRuns(nil), transferring(t, &moved), func(c *executor.Config) {
		c.Desk.Rules = loadRules(t, `
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
		t.Fatalf("601 could not be used, nothing was moved, and the run came to %#v", outcome)
	}
	outcome, err := e.Run(t.Context(), approveWith("even", again.Interrupts[0].ID, yes))
	if moved.Load() != 600 {
		t.Errorf("600 of 1000: %#v, %v", outcome, err)
	}
}

// Who approved before in the same run does not count, also if both were asked at the same time; and not with both in one resume.
func TestAttack_WhoApprovedOneOfTwoDoesNotCountForTheOther(t *testing.T) {
	for _, together := range []bool{false, true} {
		var paid atomic.Int64
		e := executorOf(t, memory.NewRuns(nil), payer(t, &paid, "one", "two"), func(c *executor.Config) {
			c.Desk.Directory = desk.Members{"group:finance": {"ann", "bob"}}
			c.Desk.Rules = loadRules(t, `
default: deny
rules:
- {id: both, when: 'true', then: ask, ask: {groups: [{from: ["group:finance"]}], separation_of_duties: [prior_approver], deadline: 1h}}
`)
		})
		asked := waits(t, began(t, e, "a", "inproc:pay", `{"cents":1}`)).Interrupts
		request := word("ann", "a", "r1", asked[0].ID, yes)
		if together {
			request.Targets[asked[1].ID] = executor.Answer{Value: json.RawMessage(yes)}
			_, _ = e.Run(t.Context(), request)
		} else {
			mustRun(t, e, request)
			_, _ = e.Run(t.Context(), word("ann", "a", "r2", asked[1].ID, yes))
		}
		if paid.Load() > 1 {
			t.Errorf("together %v: ann alone has paid both", together)
		}
	}
}
