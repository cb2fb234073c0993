package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

var goOn = fermata.NewKind[string, string]("go-on-with-payment")

// slowPayment pays after an approval and the answer to a question.
func slowPayment(t *testing.T, paid *atomic.Int64) provider.Provider {
	t.Helper()
	return single(t, "pay", inproc.FlowConfig[payment]{}, func(ctx context.Context, p payment) (payment, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[payment]{Name: "pay", Args: p})
		if err != nil {
			return p, err
		}
		if _, err := goOn.Ask(ctx, "go on?"); err != nil {
			return p, err
		}
		_, err = fermata.Effect(ctx, yes, func(_ context.Context, p payment, _ string) (string, error) {
			paid.Add(p.Cents)
			return "paid", nil
		})
		return p, err
	})
}

// riskRules are the rules of payments with a risk.
func riskRules(risk string) string {
	return `
default: deny
tools:
  pay: {risk: ` + risk + `}
rules:
- {id: question, when: req.kind == "go-on-with-payment", then: ask, ask: {groups: [{from: [anyone]}], deadline: 9h}}
- {id: pay, when: req.tool == "pay", then: ask, ask: {groups: [{from: ["group:finance"], count: 2}], deadline: 9h, editable: ["/cents"]}}
`
}

// openApproval returns the only open interrupt.
func openApproval(t *testing.T, outcome fermata.Outcome, err error) (string, fermata.ApprovalRequest) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	open := waits(t, outcome).Interrupts
	if len(open) != 1 {
		t.Fatalf("%d interrupts", len(open))
	}
	var asked fermata.ApprovalRequest
	_ = json.Unmarshal(open[0].Data, &asked) // or it is another kind
	return open[0].ID, asked
}

// An approval is void if its condition no longer holds when the effect begins: the same people are
// asked again.
func TestI4_ApprovalWhoseConditionNoLongerHoldsIsAskedAgain(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		var paid atomic.Int64
		live, load := liveRules(t, riskRules("1"))
		e := executorOf(t, s, slowPayment(t, &paid), func(c *executor.Config) {
			c.Desk.Policy = live
			c.Desk.Directory = desk.StaticDirectory{"group:finance": {"ann", "bob", "cid"}}
		})
		id, _ := openApproval(t, began(t, e, "p", "inproc:pay", `{"cents":600}`), nil)
		outcome, err := e.Run(t.Context(), word("ann", "p", "r1", id, `{"verb":"approve","conditions":{"onlyIf":"req.risk < 2"}}`))
		if again, _ := openApproval(t, outcome, err); again != id {
			t.Fatalf("one vote decided: %s is open", again)
		}
		outcome, err = e.Run(t.Context(), word("bob", "p", "r2", id, `{"verb":"approve","conditions":{"onlyIf":"args.cents <= 1000","until":"2999-01-01T00:00:00Z"}}`))
		ask, _ := openApproval(t, outcome, err)
		doc, err := e.RequestDocument(t.Context(), "acme", id)
		want := fermata.Conditions{Until: time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC), OnlyIf: "(req.risk < 2) && (args.cents <= 1000)"}
		if err != nil || doc.Decision == nil || doc.Decision.Conditions != want {
			t.Fatalf("decision %+v, %v", doc.Decision, err)
		}
		q, err := e.GetRequest(t.Context(), "acme", id)
		var answer fermata.Decision
		if err := errors.Join(err, json.Unmarshal(q.Answer, &answer)); err != nil || answer.Conditions != want {
			t.Errorf("the run got %s, %v", q.Answer, err)
		}
		load(riskRules("3"))
		outcome, err = e.Run(t.Context(), word("ann", "p", "r3", ask, `"yes"`))
		again, asked := openApproval(t, outcome, err)
		if paid.Load() != 0 || !strings.Contains(asked.Voided, "req.risk < 2") || again == id {
			t.Fatalf("paid %d, asked %+v", paid.Load(), asked)
		}
		if _, err = e.Run(t.Context(), word("mallory", "p", "r4", again, yes)); err == nil {
			t.Fatal("mallory is in no group, and decides on the repeated request")
		}
		mustRun(t, e, word("ann", "p", "r5", again, yes))
		completed(t, mustRun(t, e, word("cid", "p", "r6", again, yes)))
		if paid.Load() != 600 {
			t.Errorf("paid %d", paid.Load())
		}
		lines := recorded[audit.RequestDecided](t, s)
		var none audit.Digest
		if lines[0].Conditions.OnlyIf == none || lines[0].ApprovedConditions.OnlyIf != none || lines[1].Conditions.Until != audit.TimestampOf(want.Until) || lines[1].ApprovedConditions.OnlyIf == none ||
			lines[1].ApprovedConditions.OnlyIf == lines[1].Conditions.OnlyIf || lines[2].Conditions.OnlyIf != none {
			t.Errorf("audit lines %+v", lines[:3])
		}
		agree(t, e)
	})
}

func TestI4_ApprovalEndsAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paid atomic.Int64
		e := executorOf(t, memory.NewStore(nil), slowPayment(t, &paid), nil)
		id, _ := openApproval(t, began(t, e, "p", "inproc:pay", `{"cents":600}`), nil)
		until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		outcome, err := e.Run(t.Context(), word("ann", "p", "r1", id, `{"verb":"approve","conditions":{"until":"`+until+`"}}`))
		ask, _ := openApproval(t, outcome, err)
		time.Sleep(2 * time.Hour)
		outcome, err = e.Run(t.Context(), word("ann", "p", "r2", ask, `"yes"`))
		again, asked := openApproval(t, outcome, err)
		if paid.Load() != 0 || !strings.Contains(asked.Voided, until) {
			t.Fatalf("paid %d, asked %+v", paid.Load(), asked)
		}
		completed(t, mustRun(t, e, word("ann", "p", "r3", again, yes)))
		if paid.Load() != 600 {
			t.Errorf("paid %d", paid.Load())
		}
	})
}

func TestConditions_InvalidOnesAreRefusedAndTheRequestStaysOpen(t *testing.T) {
	var paid atomic.Int64
	s := memory.NewStore(nil)
	e := executorOf(t, s, slowPayment(t, &paid), nil)
	id, _ := openApproval(t, began(t, e, "p", "inproc:pay", `{"cents":600}`), nil)
	for _, tt := range []struct{ conditions, want string }{
		{`{"onlyIf":"args.cents <"}`, "Syntax error"},
		{`{"onlyIf":"agrs.cents < 3"}`, `did you mean "args"`},
		{`{"onlyIf":"args.cents"}`, "must be a bool"},
		{`{"onlyIf":"args.cents < 600"}`, "the condition is false"},
		{`{"onlyIf":"args.euros < 600"}`, "missing key euros"},
		{`{"until":"2020-01-01T00:00:00Z"}`, "until is in the past"},
	} {
		_, err := e.Run(t.Context(), word("ann", "p", "r1", id, `{"verb":"approve","conditions":`+tt.conditions+`}`))
		if !errors.Is(err, desk.ErrInvalidConditions) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.conditions, err, tt.want)
		}
	}
	for _, answer := range []string{`{"verb":"reject","conditions":{"onlyIf":"true"}}`, `{"verb":"approve","conditions":{"onlyIf":"` + strings.Repeat(" ", 1000) + `true"}}`, `{"verb":"approve","conditions":{"if":"true"}}`} {
		_, err := e.Run(t.Context(), word("ann", "p", "r1", id, answer))
		if _, bad := errors.AsType[*fermata.AnswerError](err); !bad {
			t.Errorf("%.60s: %v, want an AnswerError", answer, err)
		}
	}
	refused := slices.DeleteFunc(recorded[audit.RequestRefused](t, s), func(r audit.RequestRefused) bool { return r.Why != audit.RefusedConditions })
	doc, err := e.RequestDocument(t.Context(), "acme", id)
	if err != nil || doc.State != desk.StateOpen || len(doc.Votes) != 0 || len(refused) != 9 {
		t.Errorf("the request is %s with votes %v, %d refusals, %v", doc.State, doc.Votes, len(refused), err)
	}
	// the resume id is still free
	outcome, err := e.Run(t.Context(), word("ann", "p", "r1", id, `{"verb":"approve","args":{"cents":500},"conditions":{"onlyIf":"args.cents < 600"}}`))
	if ask, _ := openApproval(t, outcome, err); ask == id {
		t.Error("it was not approved")
	}
}

// A vote whose conditions no longer hold does not count when the next one comes.
func TestConditions_VoteWhoseTimeIsOverDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paid atomic.Int64
		e := executorOf(t, memory.NewStore(nil), slowPayment(t, &paid), func(c *executor.Config) {
			c.Desk.Policy = loadRules(t, riskRules("1"))
			c.Desk.Directory = desk.StaticDirectory{"group:finance": {"ann", "bob"}}
		})
		id, _ := openApproval(t, began(t, e, "p", "inproc:pay", `{"cents":600}`), nil)
		until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		mustRun(t, e, word("ann", "p", "r1", id, `{"verb":"approve","conditions":{"until":"`+until+`"}}`))
		time.Sleep(2 * time.Hour)
		outcome, err := e.Run(t.Context(), word("bob", "p", "r2", id, yes))
		if still, _ := openApproval(t, outcome, err); still != id {
			t.Fatal("an approval that had ended was counted")
		}
		doc, err := e.RequestDocument(t.Context(), "acme", id)
		if err != nil || !strings.Contains(doc.VoteProgress.String(), "the vote of ann no longer counts: has conditions that no longer hold") {
			t.Errorf("progress %q, %v", doc.VoteProgress, err)
		}
		mustRun(t, e, word("ann", "p", "r3", id, yes))
		if doc, err = e.RequestDocument(t.Context(), "acme", id); err != nil || doc.State != desk.StateDecided {
			t.Errorf("state %s, %v", doc.State, err)
		}
	})
}
