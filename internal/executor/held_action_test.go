package executor_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// guarded pays, with a policy of the action and a policy of the graph.
func guarded(t *testing.T, paid *atomic.Int64, own, ofTheGraph fermata.Policy) provider.Provider {
	t.Helper()
	return single(t, "pay", inproc.FlowConfig[payment]{Policy: ofTheGraph}, func(ctx context.Context, p payment) (payment, error) {
		return p, pay(ctx, paid, fermata.Action[payment]{Name: "pay", Args: p, Policy: own})
	})
}

// An action that the rules allow is charged when it goes ahead, not when its author requires
// approval anyway. Regression: it was charged then and again with the approval, so a limit of two
// let one through, and rejected actions used up the limit.
func TestLimits_ActionThatOnlyAsksIsNotCharged(t *testing.T) {
	const no = `{"verb":"reject","reason":"not now"}`
	never := fermata.PolicyFunc(func(context.Context, fermata.ActionRequest) (fermata.Ruling, error) {
		return fermata.Ruling{Verdict: fermata.Deny, Rule: "never"}, nil
	})
	const twice = `
default: allow
rules:
- id: twice
  when: req.tool == "pay"
  limit: {max: 2, window: 24h}
  then: deny
`
	for name, p := range map[string]func(*atomic.Int64) provider.Provider{
		"by the action": func(paid *atomic.Int64) provider.Provider { return guarded(t, paid, fermata.AlwaysAsk, nil) },
		"by the graph":  func(paid *atomic.Int64) provider.Provider { return guarded(t, paid, nil, fermata.AlwaysAsk) },
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s store.Store) {
				paid := new(atomic.Int64)
				forbidden := bank(t, s, guarded(t, paid, never, nil), twice)
				for _, key := range []string{"never-1", "never-2"} {
					failedWith(t, began(t, forbidden, key, "inproc:pay", `{"cents":1}`), "rejected")
				}
				e := bank(t, s, p(paid), twice)
				for _, said := range []struct{ key, value string }{{"pay-1", no}, {"pay-2", yes}, {"pay-3", no}, {"pay-4", yes}} {
					asked := waits(t, began(t, e, said.key, "inproc:pay", `{"cents":1}`)).Interrupts[0].ID
					if _, err := e.Run(t.Context(), word("ann", said.key, said.key, asked, said.value)); err != nil {
						t.Fatalf("%s: %v", said.key, err)
					}
				}
				failedWith(t, began(t, e, "pay-5", "inproc:pay", `{"cents":1}`), "rejected")
				if paid.Load() != 2 {
					t.Errorf("%d were paid", paid.Load())
				}
			})
		})
	}
}

// A grant replaces an approval. Regression: where the author always requires approval, the request
// used up the grant, and the log said that the grant had allowed the action.
func TestGrants_AreNotUsedIfApprovalIsRequiredAnyway(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := bank(t, s, guarded(t, new(atomic.Int64), fermata.AlwaysAsk, nil), `
default: deny
rules:
- id: pay
  when: req.tool == "pay"
  then: ask
  ask: {groups: [{from: ["group:finance"]}], deadline: 1h, remember_max: 1h}
`)
		asked := waits(t, began(t, e, "pay-1", "inproc:pay", `{"cents":1}`)).Interrupts[0].ID
		if _, err := e.Run(t.Context(), word("ann", "pay-1", "1", asked, yes)); err != nil {
			t.Fatal(err)
		}
		if _, err := e.CreateGrant(t.Context(), "acme", asked, executor.GrantRequest{By: "ann", TTL: time.Hour, MaxUses: 1}); err != nil {
			t.Fatal(err)
		}
		waits(t, began(t, e, "pay-2", "inproc:pay", `{"cents":1}`))
		if list, err := e.ListGrants(t.Context(), "acme"); err != nil || list[0].Usage.Uses != 0 {
			t.Errorf("grants %+v, %v", list, err)
		}
		if used := recorded[audit.GrantUsed](t, s); len(used) != 0 {
			t.Errorf("the log has uses of the grant: %+v", used)
		}
	})
}
