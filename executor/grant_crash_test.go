package executor_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store/memory"
)

// A process died after a grant had allowed an action, and before it was done. Who took over used the grant once more; as it was used up by then, people were to be
// asked, and the rules denied even that: what was charged for the action counted against it.
func TestGrants_AUseCountsOnceAlsoIfAProcessDies(t *testing.T) {
	runs := memory.NewRuns(nil)
	var paid, entered atomic.Int64
	dead, hold := make(chan struct{}), make(chan struct{})
	p := pays(t, &paid, func() {
		if entered.Add(1) == 2 {
			close(dead)
			<-hold // this process is dead
		}
	})
	remembering := func(c *executor.Config) {
		c.Desk.Directory = desk.Members{"group:finance": {"ann"}}
		c.Desk.Rules = loadRules(t, `
default: deny
rules:
- {id: pay, when: req.tool == "pay", then: ask, ask: {groups: [{from: ["group:finance"]}], deadline: 1h, remember_max: 1h}}
- {id: day, when: req.tool == "pay", limit: {amount: args.cents, max: 1000, window: 24h}, then: deny}
`)
	}
	first, second := executorOf(t, runs, p, remembering), executorOf(t, runs, p, remembering)
	t.Cleanup(sync.OnceFunc(func() { close(hold) }))
	asked := waits(t, began(t, first, "a", "inproc:pay", `{"cents":400}`)).Interrupts[0].ID
	completed(t, mustRun(t, first, word("ann", "a", "r1", asked, yes)))
	if _, err := first.Remember(t.Context(), "acme", asked, executor.Remember{By: "ann", TTL: time.Hour, MaxUses: 1}); err != nil {
		t.Fatal(err)
	}
	request := executor.Request{Account: "acme", StateKey: "b", Graph: "inproc:pay", Input: []byte(`{"cents":400}`)}
	go func() { _, _ = first.Run(context.Background(), request) }()
	<-dead
	expire(t, runs, "b")
	second.Start()
	completed(t, mustRun(t, second, request))
	all, err := second.Grants(t.Context(), "acme")
	if err != nil || len(all) != 1 || all[0].Usage.Uses != 1 || paid.Load() != 800 || chargedIn(t, runs) != 800 {
		t.Errorf("%d were paid and %d charged, and the grants are %+v, %v", paid.Load(), chargedIn(t, runs), all, err)
	}
	waits(t, began(t, second, "c", "inproc:pay", `{"cents":100}`)) // something else
}
