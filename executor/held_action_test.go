package executor_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store"
)

// guarded pays what its author wants a person to look at in any case, or lets nobody pay.
func guarded(t *testing.T, paid *atomic.Int64, own, ofTheGraph fermata.Policy) provider.Provider {
	t.Helper()
	return single(t, "pay", inproc.FlowConfig[payment]{Policy: ofTheGraph}, func(ctx context.Context, p payment) (payment, error) {
		return p, pay(ctx, paid, fermata.Action[payment]{Name: "pay", Args: p, Policy: own})
	})
}

// What the rules allow is counted when it goes ahead, and not when its author has a person asked all the same: it was counted then and again with the yes, so
// that a limit of two let one through; and what the person refused had used up the limit as well.
func TestLimits_DoNotCountWhatIsOnlyAskedAbout(t *testing.T) {
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

// A grant stands for a yes. Where its author has a person asked in any case it was used up by that, and the log said that it had let the action through.
func TestGrants_AreNotUsedByWhatIsAskedAllTheSame(t *testing.T) {
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
			t.Errorf("%+v, %v", list, err)
		}
		if used := recorded[audit.GrantUsed](t, s); len(used) != 0 {
			t.Errorf("the log says that it was used: %+v", used)
		}
	})
}
