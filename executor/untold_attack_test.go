package executor_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store/memory"
)

// Nobody tells the executor what a tool does to the outside world, what an action costs, or how risky it is. Rules that look at it must not find that it
// has no effects and costs nothing: that opens every door that docs/policy.md teaches to close.
func TestAttack_WhatNobodyTellsOpensNothing(t *testing.T) {
	for name, rule := range map[string]string{
		"it only reads":        `{id: it, when: req.effects.size() == 0, then: allow}`,
		"it costs little":      `{id: it, when: req.cost <= 5000, then: allow}`,
		"it costs much":        `{id: it, when: req.cost > 5000, then: ask}`,
		"it is risky":          `{id: it, when: req.risk >= 2, then: ask}`,
		"it was never changed": `{id: it, when: req.revision == 0, then: allow}`,
		"a budget of costs":    `{id: it, when: 'true', limit: {amount: req.cost, max: 100, window: 1h}, then: allow}`,
		"by another name":      `{id: it, when: '[req].exists(r, r.cost > 5000)', then: ask}`,
	} {
		t.Run(name, func(t *testing.T) {
			var paid atomic.Int64
			fallback := "ask" // what the rule's own word can be told from
			if strings.HasSuffix(rule, "then: ask}") {
				fallback = "allow"
			}
			e := executorOf(t, memory.NewRuns(nil), payer(t, &paid, "one"), func(c *executor.Config) {
				c.Desk.Rules = loadRules(t, "default: "+fallback+"\ndefaults: {ask: {groups: [{from: [\"group:finance\"]}], deadline: 1h}}\nrules:\n- "+rule)
				c.Desk.Directory = desk.Members{"group:finance": {"ann"}}
			})
			outcome := began(t, e, "a", "inproc:pay", `{"cents":1000000}`)
			if _, asked := outcome.(fermata.NeedsInput); !asked || paid.Load() != 0 {
				t.Errorf("nobody was asked: %#v; paid %d", outcome, paid.Load())
			}
		})
	}
}
