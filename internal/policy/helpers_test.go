package policy_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/policy"
)

// monday is a working day, at 10:00 in London and 11:00 in Zurich.
var monday = time.Date(2026, 11, 16, 10, 0, 0, 0, time.UTC)

func load(t testing.TB, doc string) *policy.Set {
	t.Helper()
	set, err := policy.Load("policy.yaml", []byte(doc), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func decide(t testing.TB, set *policy.Set, in policy.Input) policy.Decision {
	t.Helper()
	d, err := set.Decide(in)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// input returns an action of acme in production.
func input(tool, args string, changes ...func(*policy.Input)) policy.Input {
	in := policy.Input{
		Account: "acme", Environment: "prod", Graph: "ops", Node: "act", Run: "r-1", Tool: tool, Args: json.RawMessage(args),
		Effects: []string{"write"}, Requester: "bob", Agent: "helper", Risk: 1, At: monday,
	}
	for _, change := range changes {
		change(&in)
	}
	return in
}

func atTime(t time.Time) func(*policy.Input) { return func(in *policy.Input) { in.At = t } }

func inEnvironment(environment string) func(*policy.Input) {
	return func(in *policy.Input) { in.Environment = environment }
}

func withCost(minor int64) func(*policy.Input) { return func(in *policy.Input) { in.Cost = minor } }

// withCounters sets every counter that the set needs to one value.
func withCounters(set *policy.Set, in policy.Input, number int64) policy.Input {
	in.History = make(map[string]int64)
	for _, d := range set.CounterQueries(in) {
		in.History[d.Key()] = number
	}
	return in
}

// askClause is a requirement that any rule can have.
const askClause = `{groups: [{from: ["group:oncall"]}], deadline: 24h}`

// singleRule is a document with one rule for the tool "t", and a default with a different verdict.
func singleRule(then, when string) string {
	fallback := "ask"
	if then == "ask" {
		fallback = "allow"
	}
	return "default: " + fallback + "\ndefaults: {ask: " + askClause + "}\nrules:\n- id: it\n  then: " + then + "\n  when: " + quoted(when) + "\n"
}

// quoted returns a text as a single-quoted YAML string.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func asJSON(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
