package cases_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/cases"
)

const rules = `
default: ask
defaults: {ask: {groups: [{from: ["group:finance"]}], deadline: 4h, min_auth: sso, verbs: [approve, reject], editable: [/a], edit_reasons: [typo], reject_reasons: [risk], confirm: [/order], sensitive: [/iban], visible_to: [requester, "group:finance"], on_timeout: reject}}
rules:
- {id: small, when: 'req.tool == "refund" && args.cents <= 2000', then: allow}
- {id: often, when: 'history.count("tool", "1h") >= 3', then: ask}
- {id: daily, when: 'req.tool == "refund"', then: deny, limit: {amount: args.cents, max: 10000, window: 24h}}
- {id: never, when: 'req.account == "nobody"', then: deny}
- {id: weekend, when: 'local.weekday == 0', then: deny, mode: dry_run}
`

func set(t *testing.T) *policy.Set {
	t.Helper()
	s, err := policy.Load("policy.yaml", []byte(rules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const base = "input: {account: acme, environment: prod, at: 2026-11-16T10:00:00Z}\ncases:\n"

func TestRun(t *testing.T) {
	var out strings.Builder
	result, err := cases.Run(&out, set(t), "cases.yaml", []byte(base+`
- {name: small, input: {tool: refund, args: {cents: 500}}, counters: 0, want: allow, rules: [small]}
- {name: too often, input: {tool: refund, args: {cents: 500}}, counters: {tool/1h: 3, daily: 0}, want: ask, rules: [often], needs: ["1 of group:finance"], deadline: 4h, min_auth: sso, verbs: [reject, approve], editable: [/a], edit_reasons: [typo], reject_reasons: [risk], confirm: [/order], sensitive: [/iban], visible_to: [group:finance or requester], on_timeout: reject, on_escalate: next_step}
- {name: enough for today, input: {tool: refund, args: {cents: 500}}, counters: {tool/1h: 0, daily: 9501}, want: deny, rules: [daily]}
- {name: exact, input: {tool: refund, args_json: '{"cents": 2000.0}'}, counters: 0, want: allow}
- {name: no number, input: {tool: refund, args: {cents: 1}}, counters: {tool/1h: 0}, want: deny}
- {name: twice the key, input: {tool: refund, args_json: '{"a":1,"a":2}'}, want: error}
- {name: on a sunday, input: {tool: refund, args: {cents: 5}, at: 2026-11-15T10:00:00Z}, counters: 0, want: allow, dry_run: deny}
`))
	if err != nil || result.Passed != 7 || result.Failed != 0 || !slices.Equal(result.UncoveredRules, []string{"never"}) {
		t.Errorf("%+v, %v\n%s", result, err, &out)
	}
	if !strings.HasPrefix(out.String(), "ok    small\n") || !strings.HasSuffix(out.String(), "7 passed, 0 failed\nnot covered by any case: never\n") {
		t.Error(out.String())
	}
}

// Each of these cases has one error, and the output names it.
func TestRun_ReportsFailures(t *testing.T) {
	const asked = `input: {tool: mail}, counters: 0, `
	for line, want := range map[string]string{
		asked + `want: allow`:                              "want allow, got ask",
		asked + `want: ask, rules: [often]`:                "want rules [often], got [default]",
		asked + `want: ask, needs: ["2 of group:finance"]`: "want needs [2 of group:finance], got [1 of group:finance]",
		asked + `want: ask, needs: []`:                     "want needs [], got [1 of group:finance]",
		asked + `want: ask, deadline: 1h`:                  "want deadline 1h, got 4h",
		asked + `want: ask, verbs: [approve]`:              "want verbs [approve], got [approve reject]",
		asked + `want: ask, editable: []`:                  "want editable [], got [/a]",
		asked + `want: ask, edit_reasons: [scope]`:         "want edit_reasons [scope], got [typo]",
		asked + `want: ask, confirm: [/a]`:                 "want confirm [/a], got [/order]",
		asked + `want: ask, sensitive: [/b]`:               "want sensitive [/b], got [/iban]",
		asked + `want: ask, visible_to: [requester]`:       "want visible_to [requester], got [group:finance or requester]",
		asked + `want: ask, on_timeout: expire`:            "want on_timeout expire, got reject",
		asked + `want: ask, on_escalate: return`:           "want on_escalate return, got next_step",
		asked + `want: ask, min_auth: hardware`:            "want min_auth hardware, got sso",
		asked + `want: ask, dry_run: deny`:                 "want dry_run deny, got ",
		asked + `want: error`:                              "want error, got ask",
		`input: {tool: mail, args_json: '{'}, want: deny`:  "want deny, got an error: ",
	} {
		var out strings.Builder
		result, err := cases.Run(&out, set(t), "cases.yaml", []byte(base+"- {name: it, "+line+"}\n"))
		if err != nil || result.Failed != 1 || result.Passed != 0 {
			t.Errorf("%s: %+v, %v", line, result, err)
		}
		if !strings.Contains(out.String(), "FAIL  it\n      cases.yaml:3: "+want) || !strings.Contains(out.String(), "0 passed, 1 failed") {
			t.Errorf("%s: got\n%s\nwant %s", line, &out, want)
		}
	}
}

func TestRun_MistakesInTheFile(t *testing.T) {
	for doc, want := range map[string]string{
		"":            "the file is empty",
		"cases: []\n": "there are no cases",
		base + "- {name: a, input: {tol: x}, want: ask}\n":                  `input.tol: unknown key; did you mean "tool"?`,
		base + "- {name: a, input: {tool: x}}\n":                            "want is missing",
		base + "- {name: a, input: {tool: x}, want: maybe}\n":               `want: "maybe" is not one of`,
		base + "- {name: a, input: {tool: x, at: noon}, want: ask}\n":       `input.at: "noon" is not a time`,
		base + "- {name: a, input: {tool: x, args: {1: x}}, want: ask}\n":   "input.args: cannot be encoded as JSON",
		base + "- {name: a, input: {tool: x}, counters: lots, want: ask}\n": `counters: "lots" is not a whole number`,
	} {
		var out strings.Builder
		_, err := cases.Run(&out, set(t), "cases.yaml", []byte(doc))
		if _, ok := errors.AsType[*policy.LoadError](err); !ok || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%s: %v, want %s", doc, err, want)
		}
	}
}
