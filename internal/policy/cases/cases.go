// Package cases runs the tests of a rule file: a table of inputs and the expected decisions. The
// case file is kept next to the rules and is checked before the rules are used.
//
//	input: {account: acme, environment: prod, at: 2026-11-16T10:00:00Z}   # what all cases start from
//	cases:
//	- name: a small refund is allowed
//	  input: {tool: refund, args: {cents: 500}}
//	  want: allow
//	  rules: [small-refunds]
//	- name: the fourth refund in an hour needs approval
//	  input: {tool: refund, args: {cents: 500}}
//	  counters: {tool/1h: 3}
//	  want: ask
//	  needs: ["1 of group:finance"]
//	  deadline: 4h
package cases

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/requirement"
)

// Result is the result of a run.
type Result struct {
	Passed, Failed int
	// UncoveredRules are the rules that no case matches.
	UncoveredRules []string
}

// Run evaluates every case and writes one line for a case that passed, and the full explanation for
// one that failed. The error is a [*policy.LoadError] if the case file cannot be parsed, and
// otherwise an error of w.
func Run(w io.Writer, set *policy.Set, file string, src []byte) (Result, error) {
	all, err := parse(file, src)
	if err != nil {
		return Result{}, err
	}
	var result Result
	hit := make(map[string]bool)
	var b strings.Builder
	for _, c := range all {
		decision, problems := c.check(set)
		for _, t := range decision.Trace {
			hit[t.Rule] = hit[t.Rule] || t.Outcome == policy.RuleHit
		}
		if len(problems) == 0 {
			result.Passed++
			fmt.Fprintf(&b, "ok    %s\n", c.name)
			continue
		}
		result.Failed++
		c.explain(&b, file, decision, problems)
	}
	for _, r := range set.Rules() {
		if !hit[r.ID] {
			result.UncoveredRules = append(result.UncoveredRules, r.ID)
		}
	}
	fmt.Fprintf(&b, "%d passed, %d failed\n", result.Passed, result.Failed)
	if len(result.UncoveredRules) > 0 {
		fmt.Fprintf(&b, "not covered by any case: %s\n", strings.Join(result.UncoveredRules, ", "))
	}
	_, err = io.WriteString(w, b.String())
	return result, err
}

// testCase is one case.
type testCase struct {
	name          string
	line          int
	input         policy.Input
	counters      map[string]int64 // by limit id, or as "tool/1h"; "*" for all
	want          string
	rules         []string
	needs         []string
	deadline      policy.Duration
	minAuth       requirement.Auth
	lists         map[string][]string // by key: verbs, editable and others
	onTimeout     requirement.OnTimeout
	onEscalate    requirement.OnEscalate
	visibleTo     []string
	dryRunVerdict policy.Verdict
}

// wantError expects an invalid input.
const wantError = "error"

func (c testCase) check(set *policy.Set) (policy.Decision, []string) {
	in := c.input
	in.History = c.history(set.CounterQueries(in))
	d, err := set.Decide(in)
	if err != nil {
		if c.want == wantError {
			return d, nil
		}
		return d, []string{fmt.Sprintf("want %s, got an error: %v", c.want, err)}
	}
	var problems []string
	differ := func(what string, want, got any) {
		problems = append(problems, fmt.Sprintf("want %s%v, got %v", what, want, got))
	}
	if c.want != string(d.Verdict) {
		differ("", c.want, d.Verdict)
	}
	if c.rules != nil && !slices.Equal(c.rules, d.Rules) {
		differ("rules ", c.rules, d.Rules)
	}
	need := d.Requirement
	if need == nil {
		need = &policy.Requirement{}
	}
	var groups []string
	for _, g := range need.Groups {
		groups = append(groups, g.String())
	}
	if c.needs != nil && !sameElements(c.needs, groups) {
		differ("needs ", c.needs, groups)
	}
	if c.deadline != 0 && c.deadline != need.Deadline {
		differ("deadline ", c.deadline, need.Deadline)
	}
	if c.minAuth != "" && c.minAuth != need.MinAuth {
		differ("min_auth ", c.minAuth, need.MinAuth)
	}
	verbs := make([]string, len(need.Verbs))
	for i, verb := range need.Verbs {
		verbs[i] = string(verb)
	}
	for _, list := range []struct {
		key string
		got []string
	}{{"verbs", verbs}, {"editable", need.Editable}, {"edit_reasons", need.EditReasons}, {"reject_reasons", need.RejectReasons}, {"confirm", need.Confirm}, {"sensitive", need.Sensitive}} {
		if want, ok := c.lists[list.key]; ok && !sameElements(want, list.got) {
			differ(list.key+" ", want, list.got)
		}
	}
	if c.onTimeout != "" && c.onTimeout != need.OnTimeout {
		differ("on_timeout ", c.onTimeout, need.OnTimeout)
	}
	if got := cmp.Or(need.OnEscalate, requirement.EscalateToNextStep); c.onEscalate != "" && c.onEscalate != got {
		differ("on_escalate ", c.onEscalate, got)
	}
	if got := audiences(need); c.visibleTo != nil && !sameElements(c.visibleTo, got) {
		differ("visible_to ", c.visibleTo, got)
	}
	if c.dryRunVerdict != "" && c.dryRunVerdict != d.DryRunVerdict {
		differ("dry_run ", c.dryRunVerdict, d.DryRunVerdict)
	}
	return d, problems
}

// audiences returns the audiences of a requirement as text: group:a or requester.
func audiences(need *policy.Requirement) (texts []string) {
	for _, audience := range need.VisibleTo {
		texts = append(texts, strings.Join(audience, " or "))
	}
	return texts
}

// sameElements reports whether both lists have the same elements, in any order.
func sameElements(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// history returns the counter values of the case for the queries of the rules. Counters without a
// value are left out.
func (c testCase) history(demands []policy.CounterQuery) map[string]int64 {
	numbers := make(map[string]int64)
	for _, d := range demands {
		for _, name := range []string{counterName(d), "*"} {
			if n, ok := c.counters[name]; ok {
				numbers[d.Key()] = n
				break
			}
		}
	}
	return numbers
}

// counterName returns the name of a counter query in a case: the id of the limit, or the arguments
// of history.count.
func counterName(d policy.CounterQuery) string {
	if d.Limit != "" {
		return d.Limit
	}
	var by []string
	for name := range d.Scope {
		if name != "account" {
			by = append(by, name)
		}
	}
	slices.Sort(by)
	return strings.Join(by, ",") + "/" + d.Window.String()
}

func (c testCase) explain(b *strings.Builder, file string, d policy.Decision, problems []string) {
	fmt.Fprintf(b, "FAIL  %s\n", c.name)
	for _, p := range problems {
		fmt.Fprintf(b, "      %s:%d: %s\n", file, c.line, p)
	}
	if d.Policy == "" {
		return
	}
	var explained strings.Builder
	if d.Explain(&explained) == nil {
		for line := range strings.Lines(explained.String()) {
			b.WriteString("        " + line)
		}
	}
}
