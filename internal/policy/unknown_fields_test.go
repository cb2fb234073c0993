package policy_test

import (
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/policy"
)

func clearOptionalFields(in *policy.Input) {
	in.Effects, in.Risk, in.UnknownFields = nil, 0, policy.OptionalFields
}

// Unknown is not zero: a rule that depends on an unknown field fails, and other rules are not
// affected.
func TestUnknownFields_DependentRuleFails(t *testing.T) {
	for _, c := range []struct {
		then, when string
		want       policy.Verdict
	}{
		{"allow", `req.effects.size() == 0`, policy.Ask},
		{"allow", `req.cost <= 5000`, policy.Ask},
		{"allow", `!(req.cost > 5000)`, policy.Ask},
		{"allow", `[req].all(r, r.cost <= 5000)`, policy.Ask},
		{"ask", `req.cost > 5000`, policy.Ask},
		{"deny", `req.risk >= 2 || req.tool == "other"`, policy.Deny},
		// it does not match prod, whatever the risk is
		{"deny", `req.environment == "dev" && req.risk >= 2`, policy.Ask},
		{"allow", `req.environment == "prod" || req.cost == 0`, policy.Allow},
	} {
		if got := decide(t, load(t, singleRule(c.then, c.when)), input("t", `{}`, clearOptionalFields)); got.Verdict != c.want {
			t.Errorf("%s when %s: %s, want %s (%+v)", c.then, c.when, got.Verdict, c.want, got.Trace)
		}
	}
}

func TestUnknownFields_DependentRuleIsLoadError(t *testing.T) {
	_, err := policy.Load("policy.yaml", []byte(singleRule("ask", `req.tool == "t" && req.cost > 5`)), policy.Options{UnknownFields: policy.OptionalFields})
	if err == nil || !strings.Contains(err.Error(), "req.cost is never set here") {
		t.Errorf("a rule that always fails was loaded: %v", err)
	}
}
