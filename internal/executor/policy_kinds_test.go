package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/gate"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
	"github.com/fermata-go/fermata/provider/inproc"
)

type opsState struct {
	Table     string        `json:"table"`
	Dropped   []string      `json:"dropped,omitempty"`
	Decisions []gate.Record `json:"decisions,omitempty"`
}

var opsQuestion = fermata.NewKind[string, string]("ops-question")

// opsProviders offers one graph for each kind of request that is not about an action, and external
// agents.
func opsProviders(t *testing.T) []provider.Provider {
	t.Helper()
	drop := func(_ context.Context, s opsState) (opsState, error) {
		s.Dropped = append(s.Dropped, s.Table)
		return s, nil
	}
	held := graph.New[opsState]("held")
	held.Node("drop", drop)
	held.Edge(graph.Start, "drop")
	held.Edge("drop", graph.End)
	held.HoldBefore("drop")

	gated := graph.New[opsState]("gated")
	gated.Node("drop", drop)
	gated.Node("stop", func(_ context.Context, s opsState) (opsState, error) { return s, nil })
	gate.Approval[opsState]{
		ID: "design", Message: "Review the design.", Status: func(s opsState) string { return s.Table },
		Decisions: func(s *opsState) *[]gate.Record { return &s.Decisions }, Forward: "drop", Backward: "stop",
	}.Add(gated, "review")
	gated.Edge(graph.Start, "review")
	gated.Edge("drop", graph.End)
	gated.Edge("stop", graph.End)

	asks := graph.New[opsState]("asks")
	asks.Node("ask", func(ctx context.Context, s opsState) (opsState, error) {
		name, err := opsQuestion.Ask(ctx, "which table?")
		s.Dropped = append(s.Dropped, name)
		return s, err
	})
	asks.Edge(graph.Start, "ask")
	asks.Edge("ask", graph.End)

	twice := graph.New[opsState]("two-gates")
	twice.Node("drop", drop)
	twice.Node("stop", func(_ context.Context, s opsState) (opsState, error) { return s, nil })
	for gateID, forward := range map[string]string{"design": "plan", "plan": "drop"} {
		gate.Approval[opsState]{ID: gateID, Message: gateID, Decisions: func(s *opsState) *[]gate.Record { return &s.Decisions }, Forward: forward, Backward: "stop"}.Add(twice, gateID)
	}
	twice.Edge(graph.Start, "design")
	twice.Edge("drop", graph.End)
	twice.Edge("stop", graph.End)

	var flows []inproc.Graph
	for _, g := range []*graph.Graph[opsState]{held, gated, asks, twice} {
		flow, err := g.Compile()
		if err != nil {
			t.Fatal(err)
		}
		flows = append(flows, inproc.Flow(flow, inproc.FlowConfig[opsState]{}))
	}
	in, err := inproc.New(flows...)
	if err != nil {
		t.Fatal(err)
	}
	ex, err := external.New(external.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return []provider.Provider{in, ex}
}

func opsExecutor(t *testing.T, s store.Store, rules string) *executor.Executor {
	t.Helper()
	all := opsProviders(t)
	return executorOf(t, s, all[0], func(c *executor.Config) {
		c.Providers = all
		c.Desk.Policy = loadRules(t, rules)
		c.Desk.Directory = desk.StaticDirectory{"group:dba": {"ann", "ben"}}
	})
}

// opsRequest is one way to ask people.
type opsRequest struct {
	name, kind, graph, input, answer string
	passable                         bool // a rule can pass it
}

var opsRequests = []opsRequest{
	{"hold", "hold", "inproc:held", `{"table":"users"}`, `null`, true},
	{"gate", "approval-gate", "inproc:gated", `{"table":"users"}`, `{"approved":true,"approvedAt":"2026-11-18T00:00:00Z"}`, true},
	{"question", "ops-question", "inproc:asks", `{"table":"users"}`, `"users"`, false},
	{"external question", "ticket", "external:request", `{"kind":"ticket","data":{"n":1}}`, `{"n":2}`, false},
	{"external approval", "approval", "external:request", `{"kind":"approval","data":{"action":"refund","args":{"cents":5}}}`, `{"verb":"approve"}`, true},
}

// The default of the policy applies to every kind of request.
func TestPolicy_DefaultDeniesEveryKind(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := opsExecutor(t, s, "default: deny\n")
		for _, r := range opsRequests {
			failed, ok := began(t, e, r.name, r.graph, r.input).(fermata.Failed)
			if !ok || failed.Code != "denied" {
				t.Errorf("%s: %#v", r.name, failed)
			}
		}
		if n := len(opsLines(t, s, "policy.denied")); n != len(opsRequests) {
			t.Errorf("%d denials have an audit line, of %d", n, len(opsRequests))
		}
	})
}

// Only the people whom a rule names decide, whatever the kind.
func TestPolicy_RuleNamesApproversOfEveryKind(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := opsExecutor(t, s, `
default: deny
rules:
- id: dba-decides
  when: req.kind in ["hold", "approval-gate", "ops-question", "ticket", "approval"]
  then: ask
  reason: a DBA decides
  ask: {groups: [{from: ["group:dba"]}], deadline: 1h, separation_of_duties: [requester], min_auth: sso}
`)
		for _, r := range opsRequests {
			t.Run(r.name, func(t *testing.T) {
				asked := waits(t, mustRun(t, e, executor.RunRequest{Account: "acme", StateKey: r.name, Graph: r.graph, Input: json.RawMessage(r.input), Actor: "ann"}))
				say := func(who, resume string, auth requirement.Auth) error {
					_, err := e.Decide(t.Context(), executor.DecideRequest{
						Account: "acme", ResumeID: resume, Actor: who, Auth: auth,
						Targets: map[string]executor.Answer{asked.Interrupts[0].ID: {Value: json.RawMessage(r.answer)}},
					})
					return err
				}
				for resume, c := range map[string]struct {
					who  string
					auth requirement.Auth
					want error
				}{
					"wrong group": {"eve", requirement.AuthSSO, desk.ErrNotMember},
					"requester":   {"ann", requirement.AuthSSO, desk.ErrExcluded},
					"weak":        {"ben", requirement.AuthToken, desk.ErrWeakAuth},
				} {
					if err := say(c.who, r.name+resume, c.auth); !errors.Is(err, c.want) {
						t.Errorf("%s: %v, want %v", resume, err, c.want)
					}
				}
				if err := say("ben", r.name+"4", requirement.AuthSSO); err != nil {
					t.Fatal(err)
				}
				doc, err := e.RequestDocument(t.Context(), "acme", asked.Interrupts[0].ID)
				if err != nil || !slices.Equal(doc.Subject.Rules, []string{"dba-decides"}) || doc.Subject.Reason != "a DBA decides" {
					t.Errorf("%+v, %v", doc.Subject, err)
				}
			})
		}
	})
}

// A rule that names the kind passes gates and holds, and approves the actions of external agents.
// It cannot answer questions.
func TestPolicy_RulePassesWhatCanBeApproved(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := opsExecutor(t, s, `
default: ask
defaults: {ask: {groups: [{from: ["group:dba"]}], deadline: 1h}}
rules:
- id: pass
  when: req.kind in ["hold", "approval-gate"] && data[?"currentStatus"].orValue("users") == "users" || req.tool == "refund" && args.cents <= 100
  then: allow
`)
		for _, r := range opsRequests {
			outcome := began(t, e, r.name, r.graph, r.input)
			if !r.passable {
				if _, ok := outcome.(fermata.NeedsInput); !ok {
					t.Errorf("%s: %#v", r.name, outcome)
				}
				continue
			}
			done, ok := outcome.(fermata.Completed)
			if !ok {
				t.Errorf("%s: %#v", r.name, outcome)
				continue
			}
			if r.kind != "hold" && !strings.Contains(string(done.Output), "policy pass") {
				t.Errorf("%s does not say which rule: %s", r.name, done.Output)
			}
		}
		if n := len(opsLines(t, s, "policy.allowed")); n != 3 {
			t.Errorf("%d lines", n)
		}
	})
}

// An action of an external agent can use a grant, which is counted.
func TestPolicy_GrantCoversExternalAgent(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := opsExecutor(t, s, `
default: ask
defaults: {ask: {groups: [{from: ["group:dba"]}], deadline: 1h, remember_max: 1h}}
`)
		refund := opsRequests[4]
		asked := waits(t, began(t, e, "first", refund.graph, refund.input))
		request := asked.Interrupts[0].ID
		if _, err := e.Decide(t.Context(), executor.DecideRequest{
			Account: "acme", ResumeID: "1", Actor: "ann", Targets: map[string]executor.Answer{request: {Value: json.RawMessage(refund.answer)}},
		}); err != nil {
			t.Fatal(err)
		}
		made, err := e.CreateGrant(t.Context(), "acme", request, executor.GrantRequest{By: "ann", TTL: time.Minute, MaxUses: 1})
		if err != nil {
			t.Fatal(err)
		}
		done := completed(t, began(t, e, "second", refund.graph, refund.input))
		if !strings.Contains(string(done.Output), "grant "+made.ID) {
			t.Errorf("%s", done.Output)
		}
		waits(t, began(t, e, "third", refund.graph, refund.input)) // it is used up
	})
}

// failsOnce is a provider whose first execution with an answer fails after the answer was used.
type failsOnce struct {
	provider.Provider
	failed bool
}

func (p *failsOnce) Execute(ctx context.Context, x provider.Execution) (provider.Result, error) {
	result, err := p.Provider.Execute(ctx, x)
	if len(x.Answers) > 0 && !p.failed {
		p.failed = true
		return provider.Result{}, &fermata.RetryError{After: time.Nanosecond, Err: errors.New("no response")}
	}
	return result, err
}

// An execution that is tried again uses the answer of the rule that it was given before, even if
// the rules have changed.
func TestPolicy_RuleAnswersOnce(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		all := opsProviders(t)
		var rules atomic.Pointer[policy.Set]
		change := func(text string) {
			set, err := policy.Load("policy.yaml", []byte(text), policy.Options{})
			if err != nil {
				t.Fatal(err)
			}
			rules.Store(set)
		}
		change("default: ask\ndefaults: {ask: {groups: [{from: [anyone]}], deadline: 1h}}\nrules:\n- {id: small, when: 'args.cents < 100', then: allow}\n")
		flaky := &changingProvider{failsOnce{Provider: all[1]}, func() { change("default: deny\n") }}
		e := executorOf(t, s, all[0], func(c *executor.Config) {
			c.Providers = []provider.Provider{all[0], flaky}
			c.Desk.Policy, c.Desk.DiscardRulings = currentRules{&rules}, true
		})
		e.StartWorkers()
		refund := opsRequests[4]
		done := completed(t, began(t, e, "first", refund.graph, refund.input))
		if !strings.Contains(string(done.Output), "policy small") {
			t.Errorf("%s", done.Output)
		}
		if n := len(opsLines(t, s, "policy.allowed")); n != 1 {
			t.Errorf("%d lines", n)
		}
	})
}

// changingProvider changes the policy when it fails.
type changingProvider struct {
	failsOnce
	onFailure func()
}

func (p *changingProvider) Execute(ctx context.Context, x provider.Execution) (provider.Result, error) {
	before := p.failed
	result, err := p.failsOnce.Execute(ctx, x)
	if p.failed && !before {
		p.onFailure()
	}
	return result, err
}

type currentRules struct{ set *atomic.Pointer[policy.Set] }

func (r currentRules) Current() *policy.Set { return r.set.Load() }

// A loop in which a rule passes the gate every time comes to people at last.
func TestPolicy_RuleDoesNotPassForever(t *testing.T) {
	g := graph.New[opsState]("loop")
	again := func(_ context.Context, s opsState) (opsState, error) {
		s.Decisions = nil
		return s, nil
	}
	g.Node("again", again)
	g.Node("stop", again)
	gate.Approval[opsState]{
		ID: "design", Message: "Once more?", Decisions: func(s *opsState) *[]gate.Record { return &s.Decisions }, Forward: "again", Backward: "stop",
	}.Add(g, "review")
	g.Edge(graph.Start, "review")
	g.Edge("again", "review")
	g.Edge("stop", graph.End)
	e := executorOf(t, memory.NewStore(nil), providing(t, g), func(c *executor.Config) {
		c.Desk.Policy = loadRules(t, "default: allow\nrules:\n- {id: pass, when: 'req.gate == \"design\"', then: allow}\n")
	})
	waits(t, began(t, e, "forever", "inproc:loop", `{"table":"users"}`))
}

func opsLines(t *testing.T, s store.Store, kind string) (found []string) {
	t.Helper()
	for _, line := range lines(t, s) {
		if strings.HasPrefix(line, kind) {
			found = append(found, line)
		}
	}
	return found
}
