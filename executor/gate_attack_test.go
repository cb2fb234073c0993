package executor_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/gate"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

func loadRules(t *testing.T, text string) policy.Source {
	t.Helper()
	set, err := policy.Load("policy.yaml", []byte(text), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return rules{set}
}

func word(who, key, resume, interrupt, value string) executor.Request {
	return executor.Request{Account: "acme", StateKey: key, ResumeID: resume, Actor: who, Targets: map[string]executor.Answer{interrupt: {Value: json.RawMessage(value)}}}
}

// What the rules deny must not be put before anyone at all. Providers that ask by themselves do not ask the policy first.
func TestAttack_WhatTheRulesDenyIsNotForAnyoneToApprove(t *testing.T) {
	p, err := external.New(external.Config{})
	if err != nil {
		t.Fatal(err)
	}
	e := executorOf(t, memory.NewRuns(nil), p, func(c *executor.Config) { c.Desk.Rules = loadRules(t, twoPeople) })
	digest, err := fermata.ApprovalRequest{Action: "drop-table"}.Approves(fermata.Decision{Verb: fermata.VerbApprove, Args: json.RawMessage(`"audit"`)})
	if err != nil {
		t.Fatal(err)
	}
	input := `{"kind":"approval","data":{"action":"drop-table","args":"audit","digest":"` + digest + `"}}`
	outcome := mustRun(t, e, executor.Request{Account: "acme", StateKey: "x", Graph: "external:request", Input: json.RawMessage(input), Actor: "req"})
	asked, ok := outcome.(fermata.NeedsInput)
	if !ok {
		t.Logf("it was not asked: %#v", outcome)
		return
	}
	doc, _ := e.Request(t.Context(), "acme", asked.Interrupts[0].ID)
	t.Logf("rules %v, need %+v", doc.Asked.Rules, doc.Need.Groups)
	outcome, err = e.Run(t.Context(), word("req", "x", "r1", asked.Interrupts[0].ID, yes))
	if err == nil {
		t.Errorf("the rules deny it, and the requester alone has approved it: %#v", outcome)
	}
}

// Separation of duties from who approved before in the same run.
func TestAttack_WhoApprovedBeforeDoesNotCountAgain(t *testing.T) {
	p := single(t, "two", inproc.FlowConfig[order]{}, func(ctx context.Context, o order) (order, error) {
		for _, name := range []string{"prepare", "commit"} {
			if _, err := fermata.Approve(ctx, fermata.Action[string]{Name: name, Args: o.Table}); err != nil {
				return o, err
			}
		}
		return o, nil
	})
	e := executorOf(t, memory.NewRuns(nil), p, func(c *executor.Config) {
		c.Desk.Rules = loadRules(t, `
default: deny
rules:
- id: both
  when: 'true'
  then: ask
  ask: {groups: [{from: ["group:dba"]}], separation_of_duties: [prior_approver], deadline: 1h}
`)
		c.Desk.Directory = desk.Members{"group:dba": {"ann", "bob"}}
	})
	first := waits(t, began(t, e, "two-1", "inproc:two", `{"table":"users"}`)).Interrupts[0].ID
	second := waits(t, mustRun(t, e, word("ann", "two-1", "r1", first, yes))).Interrupts[0].ID
	if outcome, err := e.Run(t.Context(), word("ann", "two-1", "r2", second, yes)); err == nil {
		t.Errorf("ann has approved both: %#v", outcome)
	}
}

// Whoever lost the right to decide makes grants of what they decided then; and one of two speaks for both.
func TestAttack_AGrantNeedsWhatTheGateNeeds(t *testing.T) {
	s, d := memory.NewRuns(nil), new(dropper)
	members := desk.Members{"group:dba": {"bob"}, "group:owners": {"eve"}}
	e := office(t, s, d, func(c *executor.Config) {
		c.Desk.Directory = members
		c.Desk.Rules = loadRules(t, `
default: allow
rules:
- id: drop
  when: req.tool == "drop-table"
  then: ask
  ask: {groups: [{from: ["group:dba"]}, {from: ["group:owners"]}], deadline: 1h, remember_max: 1h, min_auth: hardware}
`)
	})
	asked := startAs(t, e, "req").Interrupts[0].ID
	for _, who := range []string{"bob", "eve"} {
		request := word(who, "drop-1", "by "+who, asked, yes)
		request.Auth = desk.AuthHardware
		mustRun(t, e, request)
	}
	delete(members, "group:dba") // bob is gone
	_, err := e.Remember(t.Context(), "acme", asked, executor.Remember{By: "bob", TTL: time.Hour, MaxUses: 1000})
	if err != nil {
		return
	}
	outcome := mustRun(t, e, executor.Request{Account: "acme", StateKey: "again", Graph: "inproc:drop", Input: json.RawMessage(`{"table":"users"}`), Actor: "req"})
	t.Errorf("bob, who is no dba any more, whom nobody authenticated, and without an owner, has had it remembered: %#v, dropped %d times", outcome, d.dropped.Load())
}

// Giving up an old question ends the run that took its state key.
func TestAttack_EscapingAnOldQuestionDoesNotEndAnotherRun(t *testing.T) {
	s := memory.NewRuns(nil)
	p := &scripted{execute: func(n int64, _ provider.Execution) (provider.Result, error) {
		return provider.Result{Rest: provider.Waiting{Questions: []provider.Question{{ID: "q" + string(rune('0'+n)), Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage(`1`)}}}}}, nil
	}}
	e := executorOf(t, s, p, nil)
	old := waits(t, mustRun(t, e, scriptedStart())).Interrupts[0].ID
	next := scriptedStart()
	next.Input, next.Supersede = json.RawMessage(`{"a":1}`), true
	waits(t, mustRun(t, e, next))
	from := desk.From{Actor: desk.Person("ann", desk.AuthSSO)}
	err := e.Escape(t.Context(), "acme", old, desk.Escape{From: from})
	if run, _ := s.Get(t.Context(), "acme", "x-1"); run.Status != store.Waiting {
		t.Errorf("the run that took the state key is %s now (%v)", run.Status, err)
	}
}

// The same by a target that has changed: the first approval was charged, so the rules deny the second question, and it is anyone's.
func TestAttack_AskedAgainItNeedsNoLess(t *testing.T) {
	var paid, rows atomic.Int64
	p := single(t, "pay", inproc.FlowConfig[payment]{}, func(ctx context.Context, p payment) (payment, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[payment]{Name: "pay", Args: p, Target: func(context.Context, payment) (any, error) { return rows.Load(), nil }})
		if err != nil {
			return p, err
		}
		_, err = fermata.Effect(ctx, yes, func(_ context.Context, args payment, _ string) (string, error) {
			paid.Add(args.Cents)
			return "paid", nil
		})
		return p, err
	})
	e := bank(t, memory.NewRuns(nil), p)
	a := waits(t, began(t, e, "a", "inproc:pay", `{"cents":600}`)).Interrupts[0].ID
	rows.Add(1)
	again := waits(t, mustRun(t, e, word("ann", "a", "r1", a, yes))).Interrupts[0].ID
	doc, err := e.Request(t.Context(), "acme", again)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Run(t.Context(), word("mallory", "a", "r2", again, yes))
	if err == nil || paid.Load() != 0 {
		t.Errorf("asked again, it needs %v by %v, and mallory of no group has paid %d: %v", doc.Need.Groups, doc.Asked.Rules, paid.Load(), err)
	}
}

// An effect that asked before it did anything was not begun; what it acts on is not looked at again.
func TestAttack_I6_ATargetIsLookedAtAgainWhenTheEffectAskedFirst(t *testing.T) {
	rows := atomic.Int64{}
	rows.Store(3)
	var dropped atomic.Int64
	kind := fermata.NewKind[string, string]("pin-" + t.Name())
	p := single(t, "drop", inproc.FlowConfig[order]{}, func(ctx context.Context, o order) (order, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[string]{Name: "drop-table", Args: o.Table, Target: func(context.Context, string) (any, error) { return rows.Load(), nil }})
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
	e := executorOf(t, memory.NewRuns(nil), p, nil)
	a := waits(t, began(t, e, "d", "inproc:drop", `{"table":"users"}`)).Interrupts[0].ID
	pin := waits(t, mustRun(t, e, word("ann", "d", "r1", a, yes))).Interrupts[0].ID
	rows.Store(1000000)
	outcome := mustRun(t, e, word("ann", "d", "r2", pin, `"1234"`))
	if dropped.Load() != 0 {
		t.Errorf("3 rows were approved, %d were dropped: %T", dropped.Load(), outcome)
	}
}

// A gate is a decision: a second click on the first must not pass the second, which nobody saw; nor can anybody sign with another's name.
func TestAttack_I5_AClickOnAGateDoesNotPassTheNextOne(t *testing.T) {
	var signed []string
	p := single(t, "gates", inproc.FlowConfig[order]{}, func(ctx context.Context, o order) (order, error) {
		signed = nil
		for _, name := range []string{"draft", "publish"} {
			said, err := gate.Kind.Ask(fermata.AppendAddressSegment(ctx, "gate", name), gate.Question{Gate: name})
			if err != nil {
				return o, err
			}
			signed = append(signed, said.ApprovedBy)
		}
		return o, nil
	})
	e := executorOf(t, memory.NewRuns(nil), p, nil)
	draft := waits(t, began(t, e, "g", "inproc:gates", `{"table":"users"}`)).Interrupts[0].ID // ann and bob look at the draft
	click := func(who string) (fermata.Outcome, error) {
		return e.Run(t.Context(), executor.Request{
			Account: "acme", StateKey: "g", ResumeID: "of " + who, Actor: who, Value: json.RawMessage(`{"approved":true,"approvedAt":"2026-01-01T00:00:00Z","approvedBy":"the boss"}`),
		})
	}
	if _, err := click("carl"); err == nil {
		t.Error("a click that does not say on what is taken")
	}
	looked := word("ann", "g", "of ann", draft, `{"approved":true,"approvedAt":"2026-01-01T00:00:00Z","approvedBy":"the boss"}`)
	waits(t, mustRun(t, e, looked))
	if outcome, err := e.Run(t.Context(), word("bob", "g", "of bob", draft, `{"approved":true,"approvedAt":"2026-01-01T00:00:00Z"}`)); err == nil {
		t.Errorf("bob has published what nobody looked at: %T", outcome)
	}
	for _, who := range signed {
		if who == "the boss" {
			t.Errorf("ann signs as %s", who)
		}
	}
}

// A provider shows people one action, or none of its arguments, and has them approve the digest of another.
func TestAttack_I6_WhatIsShownIsWhatIsApproved(t *testing.T) {
	other, err := fermata.ApprovalRequest{Action: "drop-table"}.Approves(fermata.Decision{Verb: fermata.VerbApprove, Args: json.RawMessage(`"users"`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{`{"action":"drop-table","args":"scratch","digest":"` + other + `"}`, `{"action":"drop-table","digest":"` + other + `"}`} {
		p := &scripted{execute: func(int64, provider.Execution) (provider.Result, error) {
			question := provider.Question{ID: "q", Envelope: fermata.Envelope{Kind: fermata.Approval.Name(), Data: json.RawMessage(data)}}
			return provider.Result{Rest: provider.Waiting{Questions: []provider.Question{question}}}, nil
		}}
		failedWith(t, mustRun(t, executorOf(t, memory.NewRuns(nil), p, nil), scriptedStart()), "bad_question")
	}
}
