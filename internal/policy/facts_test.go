package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/policy"
)

// Facts are variables of conditions and of ratings. They are recorded with the input, so that it
// can be judged again, and a missing fact never allows.
func TestFacts_InConditionsAndRatings(t *testing.T) {
	set := load(t, ratedRule(`{t: {risk: "facts.score > 50 ? 3 : 1"}}`, "allow", `req.risk == 1 && facts.vip == true`))
	for facts, want := range map[string]policy.Verdict{
		`{"score":50,"vip":true}`:  policy.Allow,
		`{"score":51,"vip":true}`:  policy.Ask,
		`{"score":50,"vip":false}`: policy.Ask,
		`{"score":50}`:             policy.Ask,
		``:                         policy.Ask,
	} {
		in := input("t", `{}`, func(in *policy.Input) { in.Facts = json.RawMessage(facts) })
		if got := decide(t, set, in); got.Verdict != want {
			t.Errorf("%s: %s", facts, got.Verdict)
		}
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var stored policy.Input
		if err := json.Unmarshal(text, &stored); err != nil || decide(t, set, stored).Input != decide(t, set, in).Input {
			t.Errorf("the stored input %s is another one: %v", text, err)
		}
		if facts != "" && decide(t, set, in).Input == decide(t, set, input("t", `{}`)).Input {
			t.Errorf("the digest of the input does not cover %s", facts)
		}
	}
	if rated := set.WithRating(input("t", `{}`, func(in *policy.Input) { in.Facts = json.RawMessage(`{"score":51}`) })); rated.Risk != 3 {
		t.Errorf("the risk is %d", rated.Risk)
	}
}

// An approver could guess facts by the result of a condition.
func TestCondition_HasNoFacts(t *testing.T) {
	if _, err := policy.CompileCondition(`facts.score < 50`); err == nil || !strings.Contains(err.Error(), "facts is not available") {
		t.Error(err)
	}
}
