package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/policy/grant"
	"github.com/fermata-go/fermata/store"
)

// ahead is a store whose clock can be moved.
type ahead struct {
	store.Store
	by *atomic.Int64
}

func (a ahead) Now(ctx context.Context) (time.Time, error) {
	now, err := a.Store.Now(ctx)
	return now.Add(time.Duration(a.by.Load())), err
}

// The rules let a yes be remembered for an hour. Whoever gave one could have it remembered anew when the hour was over, again and again, and be asked
// never more: each grant counted its hour from when it was made, and not from the yes.
func TestGrants_AYesIsNotRememberedLongerThanTheRulesAllow(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		text := strings.Replace(strings.Replace(twoPeople, "deadline: 1h", "deadline: 1h\n    remember_max: 1h", 1), `[{from: ["group:dba"]}, {from: ["group:owners"]}]`, `[{from: ["group:dba"]}]`, 1)
		set, err := policy.Load("policy.yaml", []byte(text), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		clock := ahead{s, new(atomic.Int64)}
		e := office(t, clock, new(dropper), func(c *executor.Config) { c.Desk.Rules = set })
		asked := startAs(t, e, "req").Interrupts[0].ID
		if _, err := says(t, e, "bob", "1", yes); err != nil {
			t.Fatal(err)
		}
		terms := executor.Remember{By: "bob", TTL: 24 * time.Hour, MaxUses: 100}
		clock.by.Store(int64(40 * time.Minute))
		now, _ := clock.Now(t.Context())
		late, err := e.Remember(t.Context(), "acme", asked, terms)
		if err != nil || late.NotAfter.After(now.Add(20*time.Minute)) {
			t.Errorf("40 minutes after the yes: until %v, %v", late.NotAfter.Sub(now), err)
		}
		clock.by.Store(int64(61 * time.Minute))
		if g, err := e.Remember(t.Context(), "acme", asked, terms); !errors.Is(err, grant.ErrNotRememberable) {
			t.Errorf("61 minutes after the yes: until %v, %v", g.NotAfter, err)
		}
		waits(t, mustRun(t, e, executor.Request{Account: "acme", StateKey: "drop-2", Graph: "inproc:drop", Input: json.RawMessage(`{"table":"users"}`), Actor: "req"}))
	})
}
