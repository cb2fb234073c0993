package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/requirement"
)

func TestInputOfRequest_DescribesEveryKind(t *testing.T) {
	address := fermata.Address{
		{Type: fermata.SegmentRunnable, ID: "ops"}, {Type: fermata.SegmentNode, ID: "plan"}, {Type: fermata.SegmentAgent, ID: "helper"},
		{Type: fermata.SegmentTool, ID: "book"},
	}
	hold := fermata.Address{{Type: fermata.SegmentRunnable, ID: "ops"}, {Type: fermata.SegmentHold, ID: "before", SubID: "drop"}}
	for _, c := range []struct {
		name     string
		address  fermata.Address
		question fermata.Envelope
		when     string
	}{
		{"action", address, fermata.Envelope{Kind: "approval", Data: json.RawMessage(`{"action":"refund","args":{"cents":5},"digest":""}`)},
			`req.kind == "approval" && req.tool == "refund" && args.cents == 5 && data == {}`},
		{"effect in doubt", address, fermata.Envelope{Kind: "effect-in-doubt", Data: json.RawMessage(`{"action":"refund","args":{"cents":5}}`)},
			`req.kind == "effect-in-doubt" && req.tool == "refund" && args.cents == 5`},
		{"gate", address, fermata.Envelope{Kind: "approval-gate", Data: json.RawMessage(`{"gate":"design","message":"m","currentStatus":"s"}`)},
			`req.kind == "approval-gate" && req.gate == "design" && req.node == "plan" && data.currentStatus == "s" && args == {}`},
		{"hold", hold, fermata.Envelope{Kind: "hold", Data: json.RawMessage(`{"table":"users"}`)},
			`req.kind == "hold" && req.node == "drop" && req.graph == "ops" && data.table == "users"`},
		{"question of a tool", address, fermata.Envelope{Kind: "tool-response", Data: json.RawMessage(`{"question":"?"}`)},
			`req.kind == "tool-response" && req.tool == "book" && req.agent == "helper" && req.cost == 0`},
		{"question that shows a text", address, fermata.Envelope{Kind: "note", Data: json.RawMessage(`"hello"`)},
			`req.kind == "note" && data == "hello"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, err := policy.InputOfRequest("r-1", c.address, c.question)
			if err != nil {
				t.Fatal(err)
			}
			set, err := policy.Load("policy.yaml", []byte("default: allow\nrules:\n- id: it\n  when: '"+c.when+"'\n  then: ask\n  ask: "+askClause+"\n"), policy.Options{})
			if err != nil {
				t.Fatal(err)
			}
			d, err := set.Decide(in)
			if err != nil || d.Verdict != policy.Ask || d.Trace[0].Outcome != policy.RuleHit {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
}

const kindRules = `
default: allow
defaults: {ask: {deadline: 4h, min_auth: sso, on_timeout: default}}
rules:
- {id: free, when: 'req.account == "acme"', then: allow}
- {id: never, when: 'req.graph == "closed"', then: deny}
- {id: people, when: 'req.graph == "asked"', then: ask, ask: {groups: [{from: ["group:ops"]}]}}
`

func TestDecide_VerdictsByKind(t *testing.T) {
	set := load(t, kindRules)
	for kind, want := range map[string]struct {
		open, closed string
		onTimeout    requirement.OnTimeout
	}{
		"":                {"allow free", "deny never", requirement.ExpireOnTimeout},
		"approval-gate":   {"ask default", "deny never", requirement.ExpireOnTimeout},
		"hold":            {"ask default", "deny never", requirement.ExpireOnTimeout},
		"effect-in-doubt": {"ask default", "ask default", requirement.ExpireOnTimeout},
		"tool-response":   {"ask default", "deny never", requirement.DefaultOnTimeout},
		"limit-reached":   {"ask default", "deny never", requirement.DefaultOnTimeout},
		"which-color":     {"ask default", "deny never", requirement.DefaultOnTimeout},
	} {
		for graph, want := range map[string]string{"open": want.open, "closed": want.closed, "asked": "ask people"} {
			d := decide(t, set, input("t", `{}`, func(in *policy.Input) { in.Kind, in.Graph = kind, graph }))
			if got := string(d.Verdict) + " " + d.Rules[0]; got != want {
				t.Errorf("%s of %s: %s, want %s", kind, graph, got, want)
			}
		}
		d := decide(t, set, input("t", `{}`, func(in *policy.Input) { in.Kind, in.Graph = kind, "asked" }))
		if got := d.Requirement.OnTimeout; got != want.onTimeout {
			t.Errorf("%s: on_timeout %s", kind, got)
		}
	}
	// the default requirement names no people: one person
	d := decide(t, set, input("t", `{}`, func(in *policy.Input) { in.Kind = "which-color" }))
	if r := d.Requirement; r.MinAuth != requirement.AuthSSO || len(r.Groups) != 1 || r.Groups[0].String() != "1 of anyone" {
		t.Errorf("%+v", r)
	}
	if want := "no rule matches, and the default allow does not apply to which-color"; d.Reason != want {
		t.Error(d.Reason)
	}
	d = decide(t, load(t, "default: deny\n"), input("t", `{}`, func(in *policy.Input) { in.Kind = "effect-in-doubt" }))
	if d.Verdict != policy.Ask || d.Requirement != nil {
		t.Errorf("%+v", d)
	}
}

// A rule that does not apply to a kind is neither evaluated nor charged.
func TestDecide_SkippedRulesChargeNothing(t *testing.T) {
	set := load(t, "default: deny\nrules:\n- {id: few, when: 'true', then: allow, limit: {max: 3, window: 1h}}\n")
	d := decide(t, set, withCounters(set, input("t", `{}`, func(in *policy.Input) { in.Kind = "which-color" }), 0))
	if len(d.Charges) != 0 || d.Trace[0].Outcome != policy.RuleSkipped || d.Verdict != policy.Deny {
		t.Errorf("%+v", d)
	}
}

func TestLoad_RejectsVerdictsThatAKindCannotHave(t *testing.T) {
	rule := func(when, then string) string {
		return "default: ask\ndefaults: {ask: {groups: [{from: [anyone]}], deadline: 1h}}\nrules:\n- {id: a, when: '" + when + "', then: " + then + "}\n"
	}
	const onTimeout = "ask, ask: {on_timeout: default}"
	for doc, want := range map[string]string{
		rule(`req.kind == "tool-response"`, "allow"):                                         `policy.yaml:4: rule "a": when: then: allow is not possible for req.kind "tool-response"`,
		rule(`req.tool == "t" && req.kind in ["approval", "which-color"]`, "allow"):          `then: allow is not possible for req.kind "which-color"`,
		rule(`"effect-in-doubt" == req.kind`, "allow"):                                       `then: allow is not possible for req.kind "effect-in-doubt"`,
		rule(`req.kind in ["approval", "approval-gate", "hold"]`, "allow"):                   "",
		rule(`req.kind == "note" || req.tool == "t"`, "allow"):                               "",
		rule(`req.kind == "approval" && req.kind in ["approval", "note"]`, "allow"):          "",
		rule(`req.kind == "effect-in-doubt"`, "deny"):                                        `then: deny is not possible for req.kind "effect-in-doubt"`,
		rule(`req.kind == "note"`, "deny"):                                                   "",
		rule(`req.kind in ["note", "hold"]`, onTimeout):                                      `on_timeout: default is not possible for req.kind "hold"`,
		rule(`req.kind == "effect-in-doubt"`, onTimeout):                                     `on_timeout: default is not possible for req.kind "effect-in-doubt"`,
		rule(`req.kind == "note"`, onTimeout):                                                "",
		rule(`req.tool == "t"`, onTimeout):                                                   "",
		rule(`req.kind == "approval"`, "ask, ask: {on_timeout: reject}"):                     "",
		rule(`req.kind == "approval-gate" && data.x == 1`, "ask, ask: {on_timeout: reject}"): "",
	} {
		_, err := policy.Load("policy.yaml", []byte(doc), policy.Options{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s\n%v, want %q", doc, err, want)
		}
	}
}

// A gate or hold is passed only by a rule that is about kinds or gates.
func TestDecide_GateIsPassedByRuleThatNamesIt(t *testing.T) {
	for when, want := range map[string]policy.Verdict{
		`true`:                            policy.Ask,
		`req.node == "review"`:            policy.Ask,
		`req.kind == "approval-gate"`:     policy.Allow,
		`req.gate.startsWith("design")`:   policy.Allow,
		`req.kind in ["hold","approval"]`: policy.Ask,
	} {
		set := load(t, "default: allow\nrules:\n- {id: it, when: '"+when+"', then: allow}\n")
		d := decide(t, set, input("", `{}`, func(in *policy.Input) { in.Kind, in.Gate, in.Node = "approval-gate", "design-1", "review" }))
		if d.Verdict != want {
			t.Errorf("%s: %s", when, d.Verdict)
		}
	}
}
