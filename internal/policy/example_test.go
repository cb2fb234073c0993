package policy_test

import (
	"fmt"
	"os"
	"time"

	"github.com/fermata-go/fermata/internal/policy"
)

// Two rules ask about one action. The approvers must satisfy both.
func ExampleSet_Decide() {
	set, err := policy.Load("policy.yaml", []byte(`
default: deny
rules:
- id: large
  when: req.tool == "refund" && args.cents > 2000
  then: ask
  reason: a large refund
  ask: {groups: [{from: ["group:finance"]}], deadline: 24h, editable: ["/cents"]}
- id: new-customer
  when: req.tool == "refund" && args.customer.startsWith("new-")
  then: ask
  reason: a new customer
  ask: {groups: [{from: ["group:support"]}], deadline: 4h, min_auth: sso}
`), policy.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	decision, err := set.Decide(policy.Input{
		Account: "acme", Tool: "refund", Args: []byte(`{"cents": 4200, "customer": "new-7"}`), At: time.Date(2026, 11, 16, 10, 0, 0, 0, time.UTC),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	decision.Policy, decision.Input = "sha256:…", "sha256:…"
	if err := decision.Explain(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ask: a large refund; a new customer
	//   decided by large, new-customer
	//   needs 1 of group:finance
	//   needs 1 of group:support
	//   within 4h, then expire
	//   authenticated with at least sso
	// rules:
	//   hit   ask   large cost=6
	//   hit   ask   new-customer cost=6
	// policy sha256:…
	// input  sha256:…
}

// All errors are reported at once, each with its line.
func ExampleLoad() {
	_, err := policy.Load("policy.yaml", []byte(`default: alow
rules:
- id: night
  when: local.hours < 6
  then: ask
  ask: {groups: [{from: ["group:oncall"]}], on_timeout: approve}
`), policy.Options{})
	fmt.Println(err)
	// Output:
	// policy: load failed:
	// policy.yaml:1: default: "alow" is not one of allow, ask, deny; did you mean "allow"?
	// policy.yaml:4: rule "night": when: unknown field "hours"; did you mean "hour"?
	// policy.yaml:6: rule "night": ask.on_timeout: approve is not possible: waiting never approves anything. To approve in advance, create a grant
	// policy.yaml:6: rule "night": ask: deadline is missing, here and in defaults.ask: set it, for example deadline: 24h
}

// The rules name the counters they need. The caller reads them and passes the values.
func ExampleSet_CounterQueries() {
	set, err := policy.Load("policy.yaml", []byte(`
default: allow
rules:
- id: daily
  when: req.tool == "transfer"
  limit: {amount: args.cents, max: 10000, window: 24h, by: [requester]}
  then: deny
`), policy.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	in := policy.Input{Account: "acme", Requester: "bob", Tool: "transfer", Args: []byte(`{"cents": 600}`)}
	in.History = make(map[string]int64)
	for _, demand := range set.CounterQueries(in) {
		fmt.Println(demand.Key())
		in.History[demand.Key()] = 9_500 // from the store
	}
	decision, err := set.Decide(in)
	fmt.Println(decision.Verdict, decision.Charges, err)
	// Output:
	// limit "daily" account="acme" requester="bob" in 24h
	// deny [{limit "daily" account="acme" requester="bob" 600}] <nil>
}
