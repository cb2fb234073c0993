package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/policy"
)

// ratedRule is a document that says something of the tool "t", with one rule.
func ratedRule(tools, then, when string) string {
	return "tools: " + tools + "\n" + singleRule(then, when)
}

// What an action does not tell of itself, the file tells of its tool.
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
		// What is not said of the tool is not known.
		{`{t: {risk: 0}}`, `{}`, "allow", `req.effects.size() == 0`, policy.Ask},
		{`{other: {effects: []}}`, `{}`, "allow", `req.effects.size() == 0`, policy.Ask},
		{`{other: {risk: 0}}`, `{}`, "deny", `req.risk >= 2`, policy.Deny},
		// A number that does not come to one within bounds is not known either.
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

// How a tool is rated is for those to say who run it: an input that says otherwise is not heard, and one that cannot be rated is not trusted.
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
		t.Errorf("what is untold after all: %v", in.UnknownFields)
	}
}

// A decision can be made again from the input as it came in: its digest is of that, whatever the file says.
func TestRatings_InputDigestExcludesRating(t *testing.T) {
	in := input("t", `{}`, clearOptionalFields)
	with, without := decide(t, load(t, ratedRule(`{t: {risk: 3}}`, "deny", `req.risk == 3`)), in), decide(t, load(t, singleRule("deny", `req.risk == 3`)), in)
	if with.Input != without.Input {
		t.Errorf("%s and %s", with.Input, without.Input)
	}
}

func TestRatings_MistakesAreLoadErrors(t *testing.T) {
	for name, c := range map[string]struct{ tools, when, want string }{
		"an unknown key":          {`{t: {efects: []}}`, `true`, `"t" has no key "efects"; did you mean "effects"?`},
		"nothing":                 {`{t: {}}`, `true`, `nothing is said of "t": give its effects, cost or risk`},
		"no mapping":              {`{t: 3}`, `true`, `"t" has to be a mapping`},
		"a risk of 4":             {`{t: {risk: 4}}`, `true`, `4 is not from 0 to 3`},
		"a negative cost":         {`{t: {cost: -1}}`, `true`, `-1 is not from 0 to`},
		"a cost that is a text":   {`{t: {cost: "'a'"}}`, `true`, `cost of "t": this is of type string`},
		"a cost of its own":       {`{t: {cost: req.cost + 1}}`, `true`, `cost of "t": it comes of the arguments`},
		"a risk of effects":       {`{t: {risk: req.effects.size()}}`, `true`, `risk of "t": it comes of the arguments`},
		"a risk of the past":      {`{t: {risk: "history.count('tool', '1h')"}}`, `true`, `risk of "t": it comes of the arguments`},
		"a word nobody sees":      {`{t: {effects: [" write"]}}`, `true`, `the effect " write" begins or ends with a space`},
		"a field nobody tells":    {`{t: {risk: 1}}`, `req.cost > 5`, `req.cost is not told here, so the rule could never be judged: say it of the tools`},
		"told of another tool":    {`{u: {cost: 1}}`, `req.tool == "t" && req.cost > 5`, `req.cost is not told here`},
		"told by no file":         {`{t: {risk: 1}}`, `req.revision > 5`, `req.revision is not told here, so the rule could never be judged`},
		"told of the tool":        {`{t: {cost: 1}}`, `req.tool == "t" && req.cost > 5`, ``},
		"told of one of them":     {`{t: {cost: 1}}`, `req.cost > 5`, ``},
		"told of all":             {`{"*": {cost: 1}}`, `req.tool == "t" && req.cost > 5`, ``},
		"told of all, and of one": {`{"*": {cost: 1}, t: {risk: 1}}`, `req.tool == "t" && req.cost > 5`, ``},
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

// A limit can be one of money though no argument says how much.
func TestRatings_LimitCountsCost(t *testing.T) {
	doc := strings.Replace(ratedRule(`{t: {cost: args.hours * 420}}`, "ask", `req.tool == "t"`), "  then: ask\n", "  then: ask\n  limit: {amount: req.cost, max: 1000, window: 24h}\n", 1)
	set := load(t, doc)
	for hours, want := range map[string]policy.Verdict{`{"hours":1}`: policy.Allow, `{"hours":2}`: policy.Ask, `{}`: policy.Ask} {
		if got := decide(t, set, withCounters(set, input("t", hours, clearOptionalFields), 300)); got.Verdict != want {
			t.Errorf("%s after 300: %s, want %s (%+v)", hours, got.Verdict, want, got.Trace)
		}
	}
}
