package executor_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
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

// BUG 1: what the rules deny must not be put before anyone at all. Providers that ask by themselves do not ask the policy first.
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

// BUG 2: separation of duties from who approved before in the same run.
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

// BUG 3: whoever lost the right to decide makes grants of what they decided then; and one of two speaks for both.
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

// BUG 4: giving up an old question ends the run that took its state key.
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
