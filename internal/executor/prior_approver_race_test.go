package executor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// meanwhile wraps a store and calls a function as soon as the requests of a run were read.
type meanwhile struct {
	store.Store
	happens func()
}

func (m *meanwhile) Documents(ctx context.Context, account string, kind store.DocumentKind, filter store.DocumentFilter) ([]store.Document, error) {
	papers, err := m.Store.Documents(ctx, account, kind, filter)
	if happens := m.happens; happens != nil && kind == store.RequestDocument {
		m.happens = nil
		happens()
	}
	return papers, err
}

// Regression: ann approved two requests at two replicas, although one person may approve only one
// of them. The first replica read the approvals before the document that detects such conflicts.
// The second replica had changed it by then, so both approvals counted.
func TestPriorApprover_ConcurrentApprovalsConflict(t *testing.T) {
	runs := memory.NewStore(nil)
	var paid atomic.Int64
	p := payer(t, &paid, "one", "two")
	apart := func(c *executor.Config) {
		c.Desk.Directory = desk.StaticDirectory{"group:finance": {"ann", "bob"}}
		c.Desk.Policy = loadRules(t, `
default: deny
rules:
- {id: pay, when: 'true', then: ask, ask: {groups: [{from: ["group:finance"]}], separation_of_duties: [prior_approver], deadline: 1h}}
`)
	}
	slow := &meanwhile{Store: runs}
	here, there := executorOf(t, slow, p, apart), executorOf(t, runs, p, apart)
	asked := waits(t, began(t, here, "a", "inproc:pay", `{"cents":1}`)).Interrupts
	slow.happens = func() { mustRun(t, there, word("ann", "a", "r1", asked[1].ID, yes)) }
	if outcome, err := here.Run(t.Context(), word("ann", "a", "r2", asked[0].ID, yes)); !errors.Is(err, desk.ErrExcluded) || paid.Load() != 1 {
		t.Errorf("ann approved both: %#v, %v; paid %d", outcome, err, paid.Load())
	}
}
