package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store/memory"
)

// finance is an executor whose run wants to pay twice at once.
func finance(t *testing.T, paid *atomic.Int64, text string) (e *executor.Executor, one, two string) {
	t.Helper()
	e = executorOf(t, memory.NewStore(nil), payer(t, paid, "one", "two"), func(c *executor.Config) {
		c.Desk.Directory = desk.StaticDirectory{"group:finance": {"ann", "bob", "carl"}}
		c.Desk.Policy = loadRules(t, text)
	})
	asked := waits(t, began(t, e, "a", "inproc:pay", `{"cents":1}`)).Interrupts
	return e, asked[0].ID, asked[1].ID
}

// Who approved something before in the same run does not count for what comes after it.
func TestPriorApprover_DoesNotCountAgain(t *testing.T) {
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
		t.Errorf("ann has approved both: %#v", outcome)
	}
}

// Who approved before in the same run does not count, also if both were asked at the same time; and not with both in one resume.
func TestPriorApprover_OfOneOfTwoDoesNotCountForTheOther(t *testing.T) {
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
			t.Errorf("together %v: ann alone has paid both", together)
		}
	}
}

// Who says yes to both in one resume has approved the other one, whichever of the two is looked at first: where one of them alone minds that, it depended on
// the order, which nobody had chosen.
func TestPriorApprover_OfTheOtherInOneResumeIsOneInAnyOrder(t *testing.T) {
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
			t.Fatalf("ann alone has paid %d: %v", paid.Load(), err)
		}
	}
}

// Whoever approves something else in the run does not count here, for as long as that yes stands; and has no other say in it either.
func TestPriorApprover_CountsAgainWhenTheOtherYesIsVoid(t *testing.T) {
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
		t.Fatalf("her yes to the other one stands: %v", err)
	}
	if _, err := e.Act(t.Context(), "acme", two, claim); !errors.Is(err, desk.ErrExcluded) {
		t.Errorf("and she looks after it: %v", err)
	}
	mustRun(t, e, word("carl", "a", "r4", one, `{"verb":"approve","args":{"cents":7}}`)) // ann said yes to something else
	if _, err := e.Act(t.Context(), "acme", two, claim); err != nil {
		t.Errorf("her yes is void: %v", err)
	}
	mustRun(t, e, word("ann", "a", "r5", two, yes))
	if paid.Load() != 1 {
		t.Errorf("two have said yes, and %d cents are paid", paid.Load())
	}
}

// Other arguments may need people who have approved nothing else, where those that were asked for did not.
func TestPriorApprover_AnEditCanMakeItMatter(t *testing.T) {
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
		t.Fatalf("ann alone has paid %d cents", paid.Load())
	}
	doc, err := e.RequestDocument(t.Context(), "acme", two)
	if err != nil || doc.Edit == nil {
		t.Fatalf("her edit stands for others: %+v, %v", doc, err)
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

// Who approved the action before its target changed has approved this one, and nothing else. With all of finance needed, nobody could say yes a second time.
func TestPriorApprover_OfTheSameActionCountsWhenItIsAskedAgain(t *testing.T) {
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
		t.Fatalf("both have approved it, again and again, and %d cents are paid", paid.Load())
	}
	if _, err := e.Run(t.Context(), word("ann", "a", "other", id, yes)); !errors.Is(err, desk.ErrExcluded) {
		t.Errorf("this one is another action: %v", err)
	}
}

// The target has changed, and the arguments are still those of the one who edited them.
func TestTarget_AskedAgainItIsNotApprovedByItsLastEditor(t *testing.T) {
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
			t.Fatalf("ann approves what she has made of it, and %d cents are paid: %#v, %v", paid.Load(), outcome, err)
		}
	}
	completed(t, mustRun(t, e, seen("bob", "r4", id, yes)))
	if paid.Load() != 700 {
		t.Errorf("%d cents are paid", paid.Load())
	}
}
