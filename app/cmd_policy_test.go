package app

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/cli/rulescmd"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/replay"
)

// files writes files to a temporary working directory.
func writeFiles(t *testing.T, texts map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range texts {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	mailRules = `
default: deny
rules:
- id: mail
  when: req.tool == "mail" && args.to.endsWith("@example.org")
  then: ask
  ask: {groups: [{from: ["group:editors"]}], deadline: 4h, route: post}
`
	openMailRules = `
default: allow
rules: []
`
	brokenRules = `
default: deny
rules:
- id: mail
  when: req.tol == "mail"
  then: ask
`
	mailInput = `{"account":"acme","tool":"mail","args":{"to":"ann@example.org"},"at":"2026-11-16T10:00:00Z"}`
)

func mailFiles(t *testing.T) {
	t.Helper()
	writeFiles(t, map[string]string{
		"policy.yaml": mailRules, "open.yaml": openMailRules, "broken.yaml": brokenRules,
		"reads.yaml":   "default: deny\nrules:\n- {id: reads, when: req.effects.size() == 0, then: allow}\n",
		"reading.json": `{"tool":"mail","effects":[]}`,
		"input.json":   "{\n  \"tool\": \"mail\",\n  \"args\": {\"to\": \"ann@example.org\"}\n}\n",
		"inputs.jsonl": mailInput + "\n\n" + strings.Replace(mailInput, "ann@example.org", "ann@elsewhere.net", 1) + "\n",
		"bad.jsonl":    mailInput + "\n{\"tool\":\"mail\",\"Tool\":\"mail\"}\n",
		"twice.json":   `{"tool":"mail","Tool":"x"}`,
		"good.yaml":    "cases:\n- {name: a letter, input: {tool: mail, args: {to: ann@example.org}}, want: ask}\n",
		"wrong.yaml":   "cases:\n- {name: a letter, input: {tool: mail, args: {to: ann@example.org}}, want: allow}\n- {name: no letter, input: {tool: x}, want: deny}\n",
		"groups.yaml":  "groups: {editors: [ann]}\n", "empty.yaml": "groups: {editors: []}\n",
		"routes.yaml": "routes:\n- {name: post, steps: [{at: 0s, notify: [inbox]}, {at: 1h, expire: stale}]}\n", "other.yaml": "routes:\n- {name: db, steps: [{at: 0s, notify: [inbox]}, {at: 1h, expire: stale}]}\n",
		"heads.yaml": "routes:\n- {name: post, steps: [{at: 0s, notify: [inbox]}, {at: 30m, widen: ['group:heads']}, {at: 1h, expire: stale}]}\n",
	})
}

// Exit codes are for CI.
func TestPolicy_TextOutput(t *testing.T) {
	mailFiles(t)
	for _, c := range []struct {
		args string
		code int
		want string // on standard output or standard error
	}{
		{"policy test policy.yaml good.yaml", cli.ExitOK, "1 passed, 0 failed"},
		{"policy test policy.yaml wrong.yaml", cli.ExitFindings, "want allow, got ask"},
		{"policy test broken.yaml good.yaml", cli.ExitUsage, `did you mean "tool"?`},
		{"policy test policy.yaml policy.yaml", cli.ExitUsage, `rules: unknown key`},
		{"policy test policy.yaml none.yaml", cli.ExitUsage, "none.yaml"},

		{"policy lint policy.yaml", cli.ExitOK, "policy.yaml is valid"},
		{"policy lint policy.yaml --groups groups.yaml --routes routes.yaml", cli.ExitOK, "policy.yaml is valid"},
		{"policy lint policy.yaml --groups empty.yaml", cli.ExitFindings, `policy.yaml:4: rule "mail": group:editors has no members`},
		{"policy lint policy.yaml --routes other.yaml", cli.ExitFindings, `route "post": unknown`},
		{"policy lint policy.yaml --routes heads.yaml", cli.ExitFindings, `route "post" widens to group:heads, but no group permits it`},
		{"policy lint broken.yaml", cli.ExitUsage, `broken.yaml:5: rule "mail"`},
		{"policy lint policy.yaml --groups policy.yaml", cli.ExitUsage, "policy.yaml"},
		{"policy lint policy.yaml --routes groups.yaml", cli.ExitUsage, "groups.yaml"},

		{"policy explain policy.yaml input.json", cli.ExitOK, "needs 1 of group:editors"},
		{"policy explain reads.yaml reading.json", cli.ExitOK, "allow"},
		// omitted fields are unknown, and not empty, as on a server
		{"policy explain reads.yaml input.json", cli.ExitOK, "deny"},
		{"policy explain policy.yaml", cli.ExitUsage, "--tool"},
		{"policy explain policy.yaml input.json --requester ann", cli.ExitUsage, "either"},
		{"policy explain policy.yaml bad.jsonl", cli.ExitUsage, "bad.jsonl"},
		{"policy explain policy.yaml twice.json", cli.ExitUsage, "twice.json"},
		{"policy explain --tool mail --args {", cli.ExitUsage, "--args is not valid JSON"},

		{"policy simulate policy.yaml --inputs inputs.jsonl", cli.ExitOK, "mail 1"},
		{"policy simulate policy.yaml --inputs bad.jsonl", cli.ExitUsage, "line 2"},
		{"policy simulate policy.yaml --inputs none.jsonl", cli.ExitUsage, "none.jsonl"},
		{"policy simulate policy.yaml", cli.ExitUsage, "--inputs"},

		{"policy diff policy.yaml policy.yaml", cli.ExitOK, "0 inputs, 0 decided differently"},
		{"policy diff open.yaml policy.yaml --inputs inputs.jsonl", cli.ExitOK, "2 inputs, 2 decided differently"},
		{"policy diff policy.yaml open.yaml", cli.ExitFindings, "WEAKER"},
		{"policy diff open.yaml policy.yaml", cli.ExitOK, "decided differently"},
		{"policy diff policy.yaml open.yaml --inputs bad.jsonl", cli.ExitUsage, "bad.jsonl"},
	} {
		code, out, errOut := call(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out+errOut, c.want) {
			t.Errorf("fermata %s: %d, no %q in\n%s%s", c.args, code, c.want, out, errOut)
		}
	}
}

// Standard output is data, whether or not there are findings.
func TestPolicy_JSONOutput(t *testing.T) {
	mailFiles(t)
	read := func(v any, want int, args ...string) {
		t.Helper()
		code, out, errOut := call(t, append(args, "--json")...)
		if err := json.Unmarshal([]byte(out), v); err != nil || code != want || strings.Contains(out, ":null") {
			t.Fatalf("%q: %d %s %s %v", args, code, out, errOut, err)
		}
	}
	var tested rulescmd.TestReport
	read(&tested, cli.ExitFindings, "policy", "test", "policy.yaml", "wrong.yaml")
	if tested.Passed != 1 || tested.Failed != 1 || tested.Unhit == nil {
		t.Errorf("%+v", tested)
	}
	var linted rulescmd.LintReport
	read(&linted, cli.ExitUsage, "policy", "lint", "broken.yaml")
	if linted.Loads || len(linted.Problems) != 3 || linted.Problems[2].Line != 5 {
		t.Errorf("%+v", linted)
	}
	read(&linted, cli.ExitOK, "policy", "lint", "policy.yaml")
	if !linted.Loads || len(linted.Problems) != 0 {
		t.Errorf("%+v", linted)
	}
	var decision policy.Decision
	read(&decision, cli.ExitOK, "policy", "explain", "policy.yaml", "input.json")
	if decision.Verdict != policy.Ask || decision.Requirement.Groups[0].From[0] != "group:editors" {
		t.Errorf("%+v", decision)
	}
	var report replay.Report
	read(&report, cli.ExitFindings, "policy", "diff", "policy.yaml", "open.yaml", "--inputs", "inputs.jsonl")
	if report.Inputs != 2 || len(report.Differences) != 2 || len(report.Rules) == 0 {
		t.Errorf("%+v", report)
	}
	var summary replay.Summary
	read(&summary, cli.ExitOK, "policy", "simulate", "policy.yaml", "--inputs", "inputs.jsonl")
	if summary.Verdicts[policy.Ask] != 1 || summary.Verdicts[policy.Deny] != 1 {
		t.Errorf("%+v", summary)
	}
}

// An input without a time is evaluated now, not at the zero time.
func TestPolicyExplain_DefaultsToNow(t *testing.T) {
	writeFiles(t, map[string]string{
		"policy.yaml": "default: deny\nrules:\n- {id: modern, when: local.year > 2000, then: allow}\n",
		"now.json":    `{"tool":"x"}`, "then.json": `{"tool":"x","at":"1999-11-16T10:00:00Z"}`,
	})
	for file, want := range map[string]string{"now.json": "allow:", "then.json": "deny:"} {
		if code, out, errOut := call(t, "policy", "explain", "policy.yaml", file); code != cli.ExitOK || !strings.HasPrefix(out, want) {
			t.Errorf("%s: %d %s%s", file, code, out, errOut)
		}
	}
}

// With --tool the server is queried.
func TestPolicyExplain_AsksTheServer(t *testing.T) {
	o := openDeskEnv(t)
	code, out, errOut := o.as("aud", "policy", "explain", "--tool", "refund", "--args", `{"cents":100}`, "--json")
	var decision policy.Decision
	if err := json.Unmarshal([]byte(out), &decision); err != nil || code != cli.ExitOK || decision.Verdict != policy.Allow || decision.Rules[0] != "small-refunds" {
		t.Errorf("%d %s %s %v", code, out, errOut, err)
	}
	if code, _, errOut := o.as("bot", "policy", "explain", "--tool", "refund"); code != cli.ExitRejected || !strings.Contains(errOut, "forbidden") {
		t.Errorf("an agent: %d %s", code, errOut)
	}
}
