package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider/inproc"
)

// finance is an executor whose run pays twice concurrently.
func finance(t *testing.T, paid *atomic.Int64, text string) (e *executor.Executor, one, two string) {
	t.Helper()
	e = executorOf(t, memory.NewStore(nil), payer(t, paid, "one", "two"), func(c *executor.Config) {
		c.Desk.Directory = desk.StaticDirectory{"group:finance": {"ann", "bob", "carl"}}
		c.Desk.Policy = loadRules(t, text)
	})
	asked := waits(t, began(t, e, "a", "inproc:pay", `{"cents":1}`)).Interrupts
	return e, asked[0].ID, asked[1].ID
}

// A person who approved an earlier action of the same run has no vote on a later one.
func TestPriorApprover_HasNoVoteOnLaterActions(t *testing.T) {
	p := single(t, "two", inproc.FlowConfig[order]{}, func(ctx context.Context, o order) (order, error) {
		for _, name := range []string{"prepare", "commit"} {
			if _, err := fermata.Approve(ctx, fermata.Action[string]{Name: name, Args: o.Table}); err != nil {
				return o, err
			}
		}
		return o, nil
	})
	e := executorOf(t, memory.NewStore(nil), p, func(c *executor.Config) {
		c.Desk.Policy = loadRules(t, `
default: deny
rules:
- id: both
  when: 'true'
  then: ask
  ask: {groups: [{from: ["group:dba"]}], separation_of_duties: [prior_approver], deadline: 1h}
`)
		c.Desk.Directory = desk.StaticDirectory{"group:dba": {"ann", "bob"}}
	})
	first := waits(t, began(t, e, "two-1", "inproc:two", `{"table":"users"}`)).Interrupts[0].ID
	second := waits(t, mustRun(t, e, word("ann", "two-1", "r1", first, yes))).Interrupts[0].ID
	if outcome, err := e.Run(t.Context(), word("ann", "two-1", "r2", second, yes)); err == nil {
		t.Errorf("ann approved both: %#v", outcome)
	}
}

// A prior approver has no vote even if both requests were asked at the same time, and cannot
// approve both in one resume.
func TestPriorApprover_OfOneRequestHasNoVoteOnTheOther(t *testing.T) {
	for _, together := range []bool{false, true} {
		var paid atomic.Int64
		e, one, two := finance(t, &paid, `
default: deny
rules:
- {id: both, when: 'true', then: ask, ask: {groups: [{from: ["group:finance"]}], separation_of_duties: [prior_approver], deadline: 1h}}
`)
		request := word("ann", "a", "r1", one, yes)
		if together {
			request.Targets[two] = executor.Answer{Value: json.RawMessage(yes)}
			_, _ = e.Run(t.Context(), request)
		} else {
			mustRun(t, e, request)
			_, _ = e.Run(t.Context(), word("ann", "a", "r2", two, yes))
		}
		if paid.Load() > 1 {
			t.Errorf("together %v: ann alone approved both payments", together)
		}
	}
}

// Approving both requests in one resume makes the person a prior approver of the other one, in any
// order. Regression: if only one of the rules excludes prior approvers, the result depended on the
// order.
func TestPriorApprover_InOneResumeDoesNotDependOnTheOrder(t *testing.T) {
	for range 20 {
		var paid atomic.Int64
		e, one, two := finance(t, &paid, `
default: deny
rules:
- {id: both, when: 'true', then: ask, ask: {groups: [{from: ["group:finance"]}], deadline: 1h}}
- {id: one, when: 'req.node == "one"', then: ask, ask: {groups: [{from: ["group:finance"]}], separation_of_duties: [prior_approver], deadline: 1h}}
`)
		request := word("ann", "a", "r1", one, yes)
		request.Targets[two] = executor.Answer{Value: json.RawMessage(yes)}
		if _, err := e.Run(t.Context(), request); !errors.Is(err, desk.ErrExcluded) || paid.Load() != 0 {
			t.Fatalf("ann alone paid %d: %v", paid.Load(), err)
		}
	}
}

// An approver of another request in the run has no vote here while that approval is valid, and
// cannot claim the request either.
func TestPriorApprover_MayVoteAgainWhenTheOtherApprovalIsVoid(t *testing.T) {
	var paid atomic.Int64
	e, one, two := finance(t, &paid, `
default: deny
rules:
- id: pay
  when: 'true'
  then: ask
  ask: {groups: [{from: ["group:finance"], count: 2}], separation_of_duties: [prior_approver], editable: [""], deadline: 1h}
`)
	claim := desk.Claim{From: by("ann")}
	mustRun(t, e, word("ann", "a", "r1", one, yes))
	mustRun(t, e, word("bob", "a", "r2", two, yes))
	if _, err := e.Run(t.Context(), word("ann", "a", "r3", two, yes)); !errors.Is(err, desk.ErrExcluded) {
		t.Fatalf("vote while her other approval is valid: %v", err)
	}
	if _, err := e.Act(t.Context(), "acme", two, claim); !errors.Is(err, desk.ErrExcluded) {
		t.Errorf("claim while her other approval is valid: %v", err)
	}
	// voids ann's approval
	mustRun(t, e, word("carl", "a", "r4", one, `{"verb":"approve","args":{"cents":7}}`))
	if _, err := e.Act(t.Context(), "acme", two, claim); err != nil {
		t.Errorf("claim after her other approval became void: %v", err)
	}
	mustRun(t, e, word("ann", "a", "r5", two, yes))
	if paid.Load() != 1 {
		t.Errorf("two approvals, and %d cents are paid", paid.Load())
	}
}

// Edited arguments may exclude prior approvers where the original ones did not.
func TestPriorApprover_EditCanExcludePriorApprovers(t *testing.T) {
	var paid atomic.Int64
	e, one, two := finance(t, &paid, `
default: ask
defaults: {ask: {groups: [{from: ["group:finance"]}], editable: [""], deadline: 1h}}
rules:
- {id: much, when: 'args.cents > 100', then: ask, ask: {separation_of_duties: [prior_approver]}}
`)
	mustRun(t, e, word("ann", "a", "r1", one, yes))
	waits(t, mustRun(t, e, word("ann", "a", "r2", two, `{"verb":"approve","args":{"cents":1000}}`)))
	if paid.Load() != 1 {
		t.Fatalf("ann alone paid %d cents", paid.Load())
	}
	doc, err := e.RequestDocument(t.Context(), "acme", two)
	if err != nil || doc.Edit == nil {
		t.Fatalf("her edit is shown to others: %+v, %v", doc, err)
	}
	request := word("bob", "a", "r3", two, yes)
	answer := request.Targets[two]
	answer.Shown = doc.Digest()
	request.Targets[two] = answer
	completed(t, mustRun(t, e, request))
	if paid.Load() != 1001 {
		t.Errorf("%d cents are paid", paid.Load())
	}
}

// A person who approved the action before its target changed is not a prior approver of it. If all
// members of finance are required, a second approval would be impossible otherwise.
func TestPriorApprover_OfTheSameActionMayApproveAgain(t *testing.T) {
	var paid, balance atomic.Int64
	e := bank(t, memory.NewStore(nil), restless(t, &paid, &balance, "one", "two"), `
default: deny
rules:
- {id: pay, when: 'true', then: ask, ask: {groups: [{from: ["group:finance"], count: 2}], separation_of_duties: [prior_approver], deadline: 1h}}
`)
	id := waits(t, began(t, e, "a", "inproc:pay", `{"cents":5}`)).Interrupts[0].ID
	for _, round := range []string{"1", "2", "3"} {
		if round != "3" {
			balance.Add(1)
		}
		waits(t, mustRun(t, e, word("ann", "a", "a"+round, id, yes)))
		id = waits(t, mustRun(t, e, word("bob", "a", "b"+round, id, yes))).Interrupts[0].ID
	}
	if paid.Load() != 5 {
		t.Fatalf("both approved it each time, and %d cents are paid", paid.Load())
	}
	if _, err := e.Run(t.Context(), word("ann", "a", "other", id, yes)); !errors.Is(err, desk.ErrExcluded) {
		t.Errorf("a vote on another action: %v", err)
	}
}

// The target has changed, and the arguments are still those of the last editor.
func TestTarget_RequestAskedAgainExcludesItsLastEditor(t *testing.T) {
	var paid, balance atomic.Int64
	e := bank(t, memory.NewStore(nil), restless(t, &paid, &balance, "one"), `
default: deny
rules:
- {id: pay, when: 'true', then: ask, ask: {groups: [{from: ["group:finance"]}], separation_of_duties: [last_editor], editable: [""], deadline: 1h}}
`)
	seen := func(who, resume, id, value string) executor.RunRequest {
		doc, err := e.RequestDocument(t.Context(), "acme", id)
		if err != nil {
			t.Fatal(err)
		}
		request := word(who, "a", resume, id, value)
		request.Targets[id] = executor.Answer{Value: json.RawMessage(value), Shown: doc.Digest()}
		return request
	}
	id := waits(t, began(t, e, "a", "inproc:pay", `{"cents":1}`)).Interrupts[0].ID
	waits(t, mustRun(t, e, seen("ann", "r1", id, `{"verb":"approve","args":{"cents":700}}`)))
	for _, resume := range []string{"r2", "r3"} {
		balance.Add(1)
		id = waits(t, mustRun(t, e, seen("bob", resume, id, yes))).Interrupts[0].ID
		if outcome, err := e.Run(t.Context(), seen("ann", "own "+resume, id, yes)); !errors.Is(err, desk.ErrExcluded) || paid.Load() != 0 {
			t.Fatalf("ann approved her own edit, and %d cents are paid: %#v, %v", paid.Load(), outcome, err)
		}
	}
	completed(t, mustRun(t, e, seen("bob", "r4", id, yes)))
	if paid.Load() != 700 {
		t.Errorf("%d cents are paid", paid.Load())
	}
}
