package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/fermata-go/fermata/policy"
)

// The scenarios policy/… evaluate a policy for one action. Each rule is for one tool, and only the
// last one matches; or for one graph, which is not indexed, so that every rule must be evaluated.

// ruleCounts are the sizes of the policies. A goal compares neighbours.
var ruleCounts = []int{10, 100, 1000}

func policyScenarios() (list []scenario) {
	for _, form := range []struct{ name, field, what string }{
		{"policy/by-tool/", "req.tool", "each for its own tool"},
		{"policy/any-tool/", "req.graph", "all of them must be evaluated"},
	} {
		for _, n := range ruleCounts {
			list = append(list, scenario{
				name: fmt.Sprint(form.name, n), description: fmt.Sprintf("one action with %d rules, %s", n, form.what),
				ours: func() (*engine, error) { return oursPolicy(form.field, n) },
			})
		}
	}
	return list
}

// rulesOf returns a policy with n rules. Only the last one matches, and it denies.
func rulesOf(field string, n int) (*policy.Set, error) {
	var text strings.Builder
	text.WriteString("default: allow\nrules:\n")
	for i := range n {
		fmt.Fprintf(&text, "- {id: r%d, when: '%s == \"name.%d\" && req.environment == \"prod\" && args[?\"amount\"].orValue(0) > %d', then: deny}\n", i, field, i, i)
	}
	return policy.Load("policy.yaml", []byte(text.String()), policy.Options{})
}

func oursPolicy(field string, n int) (*engine, error) {
	set, err := rulesOf(field, n)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("name.%d", n-1)
	in := policy.Input{
		Account: benchAccount, Environment: "prod", Graph: name, Node: "act", Run: "run-1", Tool: name, Args: json.RawMessage(fmt.Sprintf(`{"amount":%d}`, n)),
		Effects: []string{"write"}, Requester: "bob", Agent: "helper", Risk: 1, At: time.Unix(1_750_000_000, 0),
	}
	return &engine{do: func(context.Context) error {
		d, err := set.Decide(in)
		if err == nil && d.Verdict != policy.Deny {
			err = fmt.Errorf("the policy decides %v, but its last rule should deny", d.Verdict)
		}
		return err
	}}, nil
}

// maxGrowthByTool is how much more a decision may cost when a hundred times as many tools have
// rules.
const maxGrowthByTool = 2

// policies judges how decisions grow with the number of rules.
func (rs results) policies() (verdicts []verdict) {
	last := len(ruleCounts) - 1
	small, big := fmt.Sprint("policy/by-tool/", ruleCounts[0]), fmt.Sprint("policy/by-tool/", ruleCounts[last])
	v := verdict{Goal: fmt.Sprintf("%s → %s: CPU at most ×%d", small, big, maxGrowthByTool)}
	if growth, ok := rs.cpuGrowth(small, big); ok {
		v.Judged, v.Met, v.Measured = true, growth <= maxGrowthByTool, fmt.Sprintf("×%.1f", growth)
	}
	verdicts = append(verdicts, v)
	for i := range last {
		small, big := fmt.Sprint("policy/any-tool/", ruleCounts[i]), fmt.Sprint("policy/any-tool/", ruleCounts[i+1])
		v := verdict{Goal: fmt.Sprintf("%s → %s: CPU no worse than linear (×10)", small, big)}
		if growth, ok := rs.cpuGrowth(small, big); ok {
			v.growth(1, growth, 10)
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// cpuGrowth returns the CPU ratio of two scenarios on our side.
func (rs results) cpuGrowth(small, big string) (growth float64, known bool) {
	a, haveSmall := rs[small]
	b, haveBig := rs[big]
	if !haveSmall || !haveBig || a.Ours.Best.CPU == 0 {
		return 0, false
	}
	return b.Ours.Best.CPU / a.Ours.Best.CPU, true
}
