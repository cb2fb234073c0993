package policy_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/store/memory"
)

const refunds = `
default: deny
rules:
- {id: small, when: 'req.tool == "refund" && args.cents <= 2000 && req.account == "acme" && req.graph == "refunds" && req.node == "pay"', then: allow}
- {id: large, when: 'req.tool == "refund" && args.cents > 2000', then: ask, reason: a large refund, ask: {groups: [{from: ["group:finance"]}], deadline: 4h}}
- {id: huge, when: 'req.tool == "refund" && args.cents > 100000', then: deny, reason: refund is too large}
- {id: often, when: 'history.count("tool", "1h") >= 3', then: deny, reason: too often}
`

type refund struct {
	Cents int `json:"cents"`
}

// pay runs a graph with one node that pays if allowed.
func pay(t *testing.T, hook fermata.Policy, cents int) (string, error) {
	t.Helper()
	g := graph.New[string]("refunds")
	g.Node("pay", func(ctx context.Context, _ string) (string, error) {
		approved, err := fermata.Approve(ctx, fermata.Action[refund]{Name: "refund", Args: refund{Cents: cents}, Policy: hook})
		if err != nil {
			return "", err
		}
		return "paid, by " + approved.By(), nil
	})
	g.Edge(graph.Start, "pay")
	g.Edge("pay", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return flow.Run(t.Context(), "", graph.WithStore(memory.New()), graph.WithRun("r-1"), graph.WithPolicy(hook))
}

func newHook(t *testing.T, used int64) *policy.Hook {
	return &policy.Hook{
		Rules: load(t, refunds),
		FillInput: func(_ context.Context, _ fermata.ActionRequest, in *policy.Input) error {
			in.Account, in.At = "acme", monday
			return nil
		},
		ReadCounters: func(_ context.Context, demands []policy.CounterQuery) (map[string]int64, error) {
			return map[string]int64{demands[0].Key(): used}, nil
		},
	}
}

func TestHook_RulesDecideApprove(t *testing.T) {
	out, err := pay(t, newHook(t, 0), 2000)
	if err != nil || out != "paid, by policy small" {
		t.Errorf("small: %q, %v", out, err)
	}

	_, err = pay(t, newHook(t, 0), 2001)
	info, asks := fermata.ExtractInterruptInfo(err)
	if !asks {
		t.Fatalf("large: %v", err)
	}
	question, err := fermata.Approval.Question(info.Interrupts[0])
	if err != nil || question.Rule != "large" || question.Reason != "a large refund" {
		t.Errorf("large: %+v, %v", question, err)
	}

	_, err = pay(t, newHook(t, 0), 100001)
	if rejected, ok := errors.AsType[*fermata.RejectedError](err); !ok || rejected.Reason != "refund is too large" || rejected.By != "policy huge" {
		t.Errorf("huge: %v", err)
	}
	_, err = pay(t, newHook(t, 3), 1)
	if rejected, ok := errors.AsType[*fermata.RejectedError](err); !ok || rejected.Reason != "too often" {
		t.Errorf("often: %v", err)
	}
}

func TestHook_AnyFailureRefuses(t *testing.T) {
	broken := errors.New("the directory is down")
	for name, change := range map[string]func(*policy.Hook){
		"no rules yet": func(h *policy.Hook) { h.Rules = policy.NewLiveSet(nil, policy.Options{}) },
		"describe": func(h *policy.Hook) {
			h.FillInput = func(context.Context, fermata.ActionRequest, *policy.Input) error { return broken }
		},
		"numbers": func(h *policy.Hook) {
			h.ReadCounters = func(context.Context, []policy.CounterQuery) (map[string]int64, error) { return nil, broken }
		},
		"decided": func(h *policy.Hook) {
			h.OnDecision = func(context.Context, policy.Input, policy.Decision) (policy.Decision, error) {
				return policy.Decision{Verdict: policy.Allow}, broken
			}
		},
	} {
		hook := newHook(t, 0)
		change(hook)
		if out, err := pay(t, hook, 1); !errors.Is(err, fermata.ErrPolicy) {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
	hook := newHook(t, 0)
	hook.ReadCounters = nil
	_, err := pay(t, hook, 1)
	if rejected, ok := errors.AsType[*fermata.RejectedError](err); !ok || !strings.Contains(rejected.Reason, "counter value is missing") {
		t.Errorf("without counters: %v", err)
	}
}

func TestHook_OnDecisionMayLiftAskButNotDeny(t *testing.T) {
	hook := newHook(t, 0)
	var seen []policy.Decision
	hook.OnDecision = func(_ context.Context, in policy.Input, d policy.Decision) (policy.Decision, error) {
		if in.Account != "acme" || in.Run != "r-1" || len(in.History) != 1 {
			t.Errorf("%+v", in)
		}
		seen = append(seen, d)
		d.Verdict, d.Grant = policy.Allow, "g-1"
		return d, nil
	}
	if out, err := pay(t, hook, 5000); err != nil || out != "paid, by policy large" {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := pay(t, hook, 100001); !errors.Is(err, fermata.ErrPolicy) {
		t.Errorf("a deny was lifted: %q, %v", out, err)
	}
	if len(seen) == 0 || seen[0].Requirement == nil || len(seen[0].Trace) != 4 {
		t.Errorf("%+v", seen)
	}
}

// Unknown is not zero: an unrated tool does not count as one that only reads and costs nothing.
func TestHook_UnknownFieldsDoNotAllow(t *testing.T) {
	for _, c := range []struct {
		when string
		tell func(*policy.Input)
		want bool
	}{
		{`req.effects.size() == 0`, nil, false},
		{`req.effects.size() == 0`, func(in *policy.Input) { in.Account = "acme" }, false},
		{`req.effects.size() == 0`, func(in *policy.Input) { in.Effects = []string{} }, true},
		{`req.cost <= 5`, func(in *policy.Input) { in.Risk = 1 }, false},
		{`req.cost <= 5`, func(in *policy.Input) { in.Cost = 5 }, true},
		{`req.cost <= 5`, func(in *policy.Input) { in.UnknownFields = nil }, true},
		{`req.risk < 2`, nil, false},
		{`req.risk < 2`, func(in *policy.Input) { in.Risk = 1 }, true},
		{`req.revision < 2`, nil, false},
		{`req.revision < 2`, func(in *policy.Input) { in.Revision = 1 }, true},
	} {
		hook := &policy.Hook{Rules: load(t, "default: deny\nrules:\n- {id: harmless, when: '"+c.when+"', then: allow}\n")}
		if c.tell != nil {
			hook.FillInput = func(_ context.Context, _ fermata.ActionRequest, in *policy.Input) error { c.tell(in); return nil }
		}
		out, err := pay(t, hook, 1)
		if _, rejected := errors.AsType[*fermata.RejectedError](err); rejected == c.want {
			t.Errorf("%s: %q, %v; want it allowed: %t", c.when, out, err, c.want)
		}
	}
}

// FillInput adds to the action. It cannot replace it.
func TestI6_HookEvaluatesTheExecutedAction(t *testing.T) {
	hook := newHook(t, 0)
	hook.FillInput = func(_ context.Context, _ fermata.ActionRequest, in *policy.Input) error {
		in.Account, in.Args, in.Tool = "acme", json.RawMessage(`{"cents":1}`), "read"
		return nil
	}
	if _, err := pay(t, hook, 100001); err == nil || strings.Contains(err.Error(), "default") {
		t.Errorf("another action was evaluated: %v", err)
	}
}

func TestInputOf(t *testing.T) {
	address, err := fermata.ParseAddress("runnable:outer;node:plan;runnable:inner;node:act;agent:helper;tool:mail")
	if err != nil {
		t.Fatal(err)
	}
	in := policy.InputOf(fermata.ActionRequest{Run: "r", Address: address, Action: "mail", Args: json.RawMessage(`{}`)})
	if in.Graph != "outer" || in.Node != "act" || in.Agent != "helper" || in.Tool != "mail" || in.Run != "r" {
		t.Errorf("%+v", in)
	}
}
