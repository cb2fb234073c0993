package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/policy"
)

// ratedRule is a document with a rating of the tool "t" and one rule.
func ratedRule(tools, then, when string) string {
	return "tools: " + tools + "\n" + singleRule(then, when)
}

// The file sets what an action does not define itself.
func TestRatings_RulesSeeDeclaredValues(t *testing.T) {
	for _, c := range []struct {
		tools, args string
		then, when  string
		want        policy.Verdict
	}{
		{`{t: {effects: []}}`, `{}`, "allow", `req.effects.size() == 0`, policy.Allow},
		{`{t: {effects: [write]}}`, `{}`, "allow", `req.effects.size() == 0`, policy.Ask},
		{`{t: {effects: [write, spend]}}`, `{}`, "deny", `"spend" in req.effects`, policy.Deny},
		{`{t: {risk: 2}}`, `{}`, "deny", `req.risk >= 2`, policy.Deny},
		{`{t: {risk: 1}}`, `{}`, "deny", `req.risk >= 2`, policy.Ask},
		{`{t: {risk: "args.table.startsWith('tmp_') ? 0 : 3"}}`, `{"table":"tmp_1"}`, "allow", `req.risk == 0`, policy.Allow},
		{`{t: {risk: "args.table.startsWith('tmp_') ? 0 : 3"}}`, `{"table":"users"}`, "allow", `req.risk == 0`, policy.Ask},
		{`{t: {cost: args.hours * 420}}`, `{"hours":11}`, "allow", `req.cost <= 5000`, policy.Allow},
		{`{t: {cost: args.hours * 420}}`, `{"hours":12}`, "allow", `req.cost <= 5000`, policy.Ask},
		{`{t: {cost: "req.environment == 'prod' ? 9 : 1"}}`, `{}`, "deny", `req.cost == 9`, policy.Deny},
		// An omitted field is unknown.
		{`{t: {risk: 0}}`, `{}`, "allow", `req.effects.size() == 0`, policy.Ask},
		{`{other: {effects: []}}`, `{}`, "allow", `req.effects.size() == 0`, policy.Ask},
		{`{other: {risk: 0}}`, `{}`, "deny", `req.risk >= 2`, policy.Deny},
		// A number that is out of range is unknown too.
		{`{t: {cost: args.hours * 420}}`, `{}`, "allow", `req.cost <= 5000`, policy.Ask},
		{`{t: {cost: args.hours * 420}}`, `{"hours":"1"}`, "allow", `req.cost <= 5000`, policy.Ask},
		{`{t: {cost: args.hours * 420}}`, `{"hours":-1}`, "allow", `req.cost <= 5000`, policy.Ask},
		{`{t: {cost: args.hours * 420}}`, `{"hours":0.3}`, "allow", `req.cost <= 5000`, policy.Ask},
		{`{t: {cost: args.hours * 420}}`, `{"hours":9223372036854775807}`, "allow", `req.cost <= 5000`, policy.Ask},
		{`{t: {risk: args.risk}}`, `{"risk":4}`, "deny", `req.risk == 0`, policy.Deny},
		{`{t: {risk: args.risk}}`, `{"risk":-1}`, "allow", `req.risk < 2`, policy.Ask},
		// For all tools.
		{`{"*": {risk: 3}}`, `{}`, "deny", `req.risk == 3`, policy.Deny},
		{`{"*": {risk: 3}, t: {cost: 0}}`, `{}`, "deny", `req.risk == 3 && req.cost == 0`, policy.Deny},
		{`{"*": {risk: 3}, t: {risk: 0}}`, `{}`, "deny", `req.risk == 3`, policy.Ask},
		{`{"*": {effects: [unknown]}, t: {effects: []}}`, `{}`, "allow", `req.effects.size() == 0`, policy.Allow},
	} {
		set := load(t, ratedRule(c.tools, c.then, c.when))
		if got := decide(t, set, input("t", c.args, clearOptionalFields)); got.Verdict != c.want {
			t.Errorf("tools %s, args %s: %s when %s: %s, want %s (%+v)", c.tools, c.args, c.then, c.when, got.Verdict, c.want, got.Trace)
		}
	}
}

// The operator rates the tools: the file overrides the input, and a rating that fails makes the
// field unknown.
func TestRatings_FileOverridesInput(t *testing.T) {
	set := load(t, ratedRule(`{t: {effects: [write], risk: 3, cost: args.hours * 420}}`, "allow", `req.effects.size() == 0 || req.risk < 3 || req.cost < 420`))
	harmless := func(in *policy.Input) { in.Effects, in.Risk, in.Cost = []string{}, 0, 1 }
	for _, args := range []string{`{"hours":1}`, `{}`} {
		if got := decide(t, set, input("t", args, harmless)); got.Verdict != policy.Ask {
			t.Errorf("args %s: %s: %s", args, got.Verdict, got.Reason)
		}
	}
	in := set.WithRating(input("t", `{"hours":2}`, harmless))
	if !slices.Equal(in.Effects, []string{"write"}) || in.Risk != 3 || in.Cost != 840 || in.UnknownFields != nil {
		t.Errorf("the input as rules see it: %+v", in)
	}
	if in := set.WithRating(input("other", `{}`, withCost(7))); in.Cost != 7 {
		t.Errorf("of another tool: %+v", in)
	}
	in = set.WithRating(input("t", `{}`, clearOptionalFields))
	if !slices.Equal(in.UnknownFields, []string{"revision", "cost"}) {
		t.Errorf("unknown after all: %v", in.UnknownFields)
	}
}

// A decision can be reproduced from the original input: the digest is of the input without the
// rating.
func TestRatings_InputDigestExcludesRating(t *testing.T) {
	in := input("t", `{}`, clearOptionalFields)
	with, without := decide(t, load(t, ratedRule(`{t: {risk: 3}}`, "deny", `req.risk == 3`)), in), decide(t, load(t, singleRule("deny", `req.risk == 3`)), in)
	if with.Input != without.Input {
		t.Errorf("%s and %s", with.Input, without.Input)
	}
}

func TestRatings_MistakesAreLoadErrors(t *testing.T) {
	for name, c := range map[string]struct{ tools, when, want string }{
		"an unknown key":              {`{t: {efects: []}}`, `true`, `tools.t.efects: unknown key; did you mean "effects"?`},
		"nothing":                     {`{t: {}}`, `true`, `tools.t: the rating is empty: set effects, cost or risk`},
		"no mapping":                  {`{t: 3}`, `true`, `tools.t: expected a mapping`},
		"a risk of 4":                 {`{t: {risk: 4}}`, `true`, `4 is not between 0 and 3`},
		"a negative cost":             {`{t: {cost: -1}}`, `true`, `-1 is not between 0 and`},
		"a cost that is a text":       {`{t: {cost: "'a'"}}`, `true`, `tools.t.cost: the type is string`},
		"a cost of its own":           {`{t: {cost: req.cost + 1}}`, `true`, `tools.t.cost: the expression must use only the arguments`},
		"a risk of effects":           {`{t: {risk: req.effects.size()}}`, `true`, `tools.t.risk: the expression must use only the arguments`},
		"risk from history":           {`{t: {risk: "history.count('tool', '1h')"}}`, `true`, `tools.t.risk: the expression must use only the arguments`},
		"invisible character":         {`{t: {effects: [" write"]}}`, `true`, `tools.t.effects[0]: " write" begins or ends with a space`},
		"field that cannot be rated":  {`{t: {risk: 1}}`, `req.cost > 5`, `req.cost is never set here, so the rule would always fail: rate the tools`},
		"rated for another tool":      {`{u: {cost: 1}}`, `req.tool == "t" && req.cost > 5`, `req.cost is never set here`},
		"not ratable":                 {`{t: {risk: 1}}`, `req.revision > 5`, `req.revision is never set here, so the rule would always fail`},
		"rated for the tool":          {`{t: {cost: 1}}`, `req.tool == "t" && req.cost > 5`, ``},
		"rated for one of the tools":  {`{t: {cost: 1}}`, `req.cost > 5`, ``},
		"rated for all tools":         {`{"*": {cost: 1}}`, `req.tool == "t" && req.cost > 5`, ``},
		"rated for all tools and one": {`{"*": {cost: 1}, t: {risk: 1}}`, `req.tool == "t" && req.cost > 5`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := policy.Load("policy.yaml", []byte(ratedRule(c.tools, "deny", c.when)), policy.Options{UnknownFields: policy.OptionalFields})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

// A limit can be on cost although no argument has the amount.
func TestRatings_LimitCountsCost(t *testing.T) {
	doc := strings.Replace(ratedRule(`{t: {cost: args.hours * 420}}`, "ask", `req.tool == "t"`), "  then: ask\n", "  then: ask\n  limit: {amount: req.cost, max: 1000, window: 24h}\n", 1)
	set := load(t, doc)
	for hours, want := range map[string]policy.Verdict{`{"hours":1}`: policy.Allow, `{"hours":2}`: policy.Ask, `{}`: policy.Ask} {
		if got := decide(t, set, withCounters(set, input("t", hours, clearOptionalFields), 300)); got.Verdict != want {
			t.Errorf("%s after 300: %s, want %s (%+v)", hours, got.Verdict, want, got.Trace)
		}
	}
}
