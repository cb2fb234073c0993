package executor_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store/memory"
)

// Amounts so large that their sum has no int64 do not begin anew at zero.
func TestAttack_ALimitIsNotEmptiedByLargeAmounts(t *testing.T) {
	var paid atomic.Int64
	e := executorOf(t, memory.NewRuns(nil), payer(t, &paid, "one"), func(c *executor.Config) {
		c.Desk.Rules = loadRules(t, `
default: allow
rules:
- {id: day, when: req.tool == "pay", limit: {amount: args.cents, max: 1000, window: 24h}, then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h}}
`)
		c.Desk.Directory = desk.Members{}
	})
	for n := range 4 { // 4 times 2^62 is 2^64
		key := fmt.Sprint("a-", n)
		asked := waits(t, began(t, e, key, "inproc:pay", `{"cents":4611686018427387904}`)).Interrupts[0]
		mustRun(t, e, word("ann", key, key, asked.ID, yes))
	}
	outcome := began(t, e, "b", "inproc:pay", `{"cents":1000}`)
	if _, asked := outcome.(fermata.NeedsInput); !asked {
		t.Errorf("a day of 2^64 cents has room for more: %#v", outcome)
	}
}
