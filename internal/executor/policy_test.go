package executor_test

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy/grant"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// A rule for one tool that counts all actions of a requester counts those with other tools, too.
func TestRules_HistoryCountsActionsOfOtherTools(t *testing.T) {
	var paid atomic.Int64
	e := bank(t, memory.NewStore(nil), payer(t, &paid, "one"), `
default: allow
rules:
- id: busy
  when: req.tool == "delete" && history.count("requester", "24h") >= 3
  then: deny
`)
	for _, key := range []string{"a", "b", "c", "d"} {
		if _, done := began(t, e, key, "inproc:pay", `{"cents":1}`).(fermata.Completed); !done {
			t.Fatal("the payment was not made")
		}
	}
	d, err := e.ExplainAction(t.Context(), executor.HypotheticalAction{Account: "acme", Tool: "delete"})
	if err != nil || d.Verdict != "deny" {
		t.Errorf("after 4 actions the rule counts fewer than 3: %s, %v", d.Verdict, err)
	}
}

// The executor does not know the effects, cost or risk of an undeclared tool. Rules that use them
// must not see "no effects" or "no cost": that would allow what docs/policy.md says they prevent.
func TestRules_UndeclaredValuesAllowNothing(t *testing.T) {
	for name, rule := range map[string]string{
		"no effects":         `{id: it, when: req.effects.size() == 0, then: allow}`,
		"low cost":           `{id: it, when: req.cost <= 5000, then: allow}`,
		"high cost":          `{id: it, when: req.cost > 5000, then: ask}`,
		"high risk":          `{id: it, when: req.risk >= 2, then: ask}`,
		"revision zero":      `{id: it, when: req.revision == 0, then: allow}`,
		"budget of costs":    `{id: it, when: 'true', limit: {amount: req.cost, max: 100, window: 1h}, then: allow}`,
		"under another name": `{id: it, when: '[req].exists(r, r.cost > 5000)', then: ask}`,
	} {
		t.Run(name, func(t *testing.T) {
			var paid atomic.Int64
			fallback := "ask" // distinguishes the rule's verdict from the default
			if strings.HasSuffix(rule, "then: ask}") {
				fallback = "allow"
			}
			e := bank(t, memory.NewStore(nil), payer(t, &paid, "one"),
				"default: "+fallback+"\ndefaults: {ask: {groups: [{from: [\"group:finance\"]}], deadline: 1h}}\nrules:\n- "+rule)
			outcome := began(t, e, "a", "inproc:pay", `{"cents":1000000}`)
			if _, asked := outcome.(fermata.NeedsInput); !asked || paid.Load() != 0 {
				t.Errorf("no approval was needed: %#v; paid %d", outcome, paid.Load())
			}
		})
	}
}

// Rules use the values that the policy file declares for a tool. Requests show the declared risk,
// and a grant can have a cost limit.
func TestRules_DeclaredValuesOfATool(t *testing.T) {
	var paid atomic.Int64
	e := bank(t, memory.NewStore(nil), payer(t, &paid, "one"), `
default: deny
tools:
  pay: {effects: [spend], risk: "args.cents < 1000 ? 1 : 3", cost: args.cents + 50}
rules:
- id: risky
  when: req.risk >= 3
  then: deny
- id: spends
  when: '"spend" in req.effects'
  then: ask
  ask: {groups: [{from: ["group:finance"]}], deadline: 1h, remember_max: 1h}
`)
	if _, failed := began(t, e, "much", "inproc:pay", `{"cents":1000}`).(fermata.Failed); !failed {
		t.Error("a risk of 3 was not denied")
	}
	asked := waits(t, began(t, e, "little", "inproc:pay", `{"cents":50}`)).Interrupts[0].ID
	question, err := e.GetRequest(t.Context(), "acme", asked)
	if err != nil || question.Request.Subject.Risk != 1 {
		t.Fatalf("the request does not show its risk: %+v, %v", question.Request, err)
	}
	completed(t, mustRun(t, e, executor.RunRequest{
		Account: "acme", StateKey: "little", ResumeID: "1", Actor: "ann", Targets: map[string]executor.Answer{asked: {Value: json.RawMessage(yes)}},
	}))
	worth := executor.GrantRequest{By: "ann", TTL: time.Hour, MaxUses: 9, Budget: &grant.Budget{Of: grant.Cost, Max: 250}}
	if _, err := e.CreateGrant(t.Context(), "acme", asked, worth); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b"} {
		completed(t, began(t, e, key, "inproc:pay", `{"cents":50}`)) // 100 each
	}
	waits(t, began(t, e, "c", "inproc:pay", `{"cents":50}`))
}
