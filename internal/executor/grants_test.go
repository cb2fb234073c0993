package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy/grant"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// oneDBA needs one dba for a drop, and allows a grant for an hour.
const oneDBA = `
default: allow
rules:
- id: drop
  when: req.tool == "drop-table"
  then: ask
  ask: {groups: [{from: ["group:dba"]}], deadline: 1h, remember_max: 1h}
`

// An approval can be remembered within bounds: then no approval is needed for the same action, and
// only for it.
func TestGrants_AllowTheSameActionWithinTheirBounds(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := office(t, s, new(dropper), func(c *executor.Config) { c.Desk.Policy = loadRules(t, oneDBA) })
		drop := func(key, table string) fermata.Outcome {
			request := dropAs("req", key)
			request.Input = json.RawMessage(`{"table":"` + table + `"}`)
			return mustRun(t, e, request)
		}
		asked := waits(t, drop("drop-1", "users")).Interrupts[0].ID
		terms := executor.GrantRequest{By: "bob", TTL: time.Hour, MaxUses: 2}
		if _, err := e.CreateGrant(t.Context(), "acme", asked, terms); !errors.Is(err, executor.ErrInvalid) {
			t.Fatalf("a grant of an undecided request: %v", err)
		}
		if _, err := says(t, e, "bob", "1", yes); err != nil {
			t.Fatal(err)
		}
		if _, err := e.CreateGrant(t.Context(), "acme", asked, executor.GrantRequest{By: "eve", TTL: time.Hour, MaxUses: 2}); !errors.Is(err, executor.ErrInvalid) {
			t.Fatalf("a grant by a person who did not approve: %v", err)
		}
		g, err := e.CreateGrant(t.Context(), "acme", asked, terms)
		if err != nil {
			t.Fatal(err)
		}
		completed(t, drop("drop-2", "users"))
		waits(t, drop("drop-3", "orders")) // another action
		completed(t, drop("drop-4", "users"))
		waits(t, drop("drop-5", "users")) // a third use
		if list, err := e.ListGrants(t.Context(), "acme"); err != nil || len(list) != 1 || list[0].Usage.Uses != 2 {
			t.Errorf("grants %+v, %v", list, err)
		}
		if list, err := e.ListGrants(t.Context(), "other"); err != nil || len(list) != 0 {
			t.Errorf("I8: grants of another account: %+v, %v", list, err)
		}
		wide, err := e.CreateGrant(t.Context(), "acme", asked, executor.GrantRequest{By: "bob", TTL: 48 * time.Hour, MaxUses: 9, Relax: map[string]grant.Constraint{"": grant.HasPrefix("us")}})
		if err != nil || wide.NotAfter.Sub(wide.Since) != time.Hour {
			t.Fatalf("longer than the rules allow: %+v, %v", wide, err)
		}
		completed(t, drop("drop-6", "us_old"))
		if err := e.RevokeGrant(t.Context(), "acme", wide.ID, by("eve")); err != nil {
			t.Fatal(err)
		}
		waits(t, drop("drop-7", "us_older"))
		if err := e.RevokeGrant(t.Context(), "acme", "unknown", by("eve")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("revoke an unknown grant: %v", err)
		}
		counted := make(map[string]int)
		for _, kind := range lines(t, s) {
			counted[kind]++
		}
		if counted["grant.made"] != 2 || counted["grant.used"] != 3 || counted["grant.revoked"] != 1 {
			t.Errorf("%s: audit lines %v", g.ID, counted)
		}
	})
}

// ahead is a store whose clock can be moved.
type ahead struct {
	store.Store
	by *atomic.Int64
}

func (a ahead) Now(ctx context.Context) (time.Time, error) {
	now, err := a.Store.Now(ctx)
	return now.Add(time.Duration(a.by.Load())), err
}

// A client that got no response repeats the call and gets the grant that was made. Two grants could
// be used twice as often as intended.
func TestGrants_SameIdempotencyKeyIsOneGrant(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := office(t, s, new(dropper), func(c *executor.Config) { c.Desk.Policy = loadRules(t, oneDBA) })
		asked := waits(t, mustRun(t, e, dropAs("req", "drop-1"))).Interrupts[0].ID
		if _, err := says(t, e, "bob", "1", yes); err != nil {
			t.Fatal(err)
		}
		terms := executor.GrantRequest{By: "bob", TTL: time.Hour, MaxUses: 2, Idempotency: desk.IdempotencyKey{Key: "k", Digest: "two"}}
		made := make([]executor.Grant, 6)
		var all sync.WaitGroup
		for n := range made {
			all.Go(func() {
				var err error
				if made[n], err = e.CreateGrant(t.Context(), "acme", asked, terms); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		grants, err := e.ListGrants(t.Context(), "acme")
		if err != nil || len(grants) != 1 || slices.ContainsFunc(made, func(g executor.Grant) bool { return g.ID != grants[0].ID }) {
			t.Errorf("grants %+v, %v; the calls returned %+v", grants, err, made)
		}
		terms.MaxUses, terms.Idempotency.Digest = 3, "three"
		if _, err := e.CreateGrant(t.Context(), "acme", asked, terms); !errors.Is(err, desk.ErrKeyReused) {
			t.Errorf("another body under the same key: %v", err)
		}
		terms.Idempotency = desk.IdempotencyKey{}
		if _, err := e.CreateGrant(t.Context(), "acme", asked, terms); err != nil {
			t.Error(err)
		}
		if grants, err = e.ListGrants(t.Context(), "acme"); err != nil || len(grants) != 2 {
			t.Errorf("a call without a key makes another grant: %+v, %v", grants, err)
		}
	})
}

// The rules let an approval be remembered for an hour. Regression: each grant counted its hour from
// its creation, not from the approval, so an approver could renew it again and again.
func TestGrants_ApprovalIsNotRememberedLongerThanTheRulesAllow(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		clock := ahead{s, new(atomic.Int64)}
		e := office(t, clock, new(dropper), func(c *executor.Config) { c.Desk.Policy = loadRules(t, oneDBA) })
		asked := startAs(t, e, "req").Interrupts[0].ID
		if _, err := says(t, e, "bob", "1", yes); err != nil {
			t.Fatal(err)
		}
		terms := executor.GrantRequest{By: "bob", TTL: 24 * time.Hour, MaxUses: 100}
		clock.by.Store(int64(40 * time.Minute))
		now, _ := clock.Now(t.Context())
		late, err := e.CreateGrant(t.Context(), "acme", asked, terms)
		if err != nil || late.NotAfter.After(now.Add(20*time.Minute)) {
			t.Errorf("40 minutes after the approval: until %v, %v", late.NotAfter.Sub(now), err)
		}
		clock.by.Store(int64(61 * time.Minute))
		if g, err := e.CreateGrant(t.Context(), "acme", asked, terms); !errors.Is(err, grant.ErrNotRememberable) {
			t.Errorf("61 minutes after the approval: until %v, %v", g.NotAfter, err)
		}
		waits(t, mustRun(t, e, dropAs("req", "drop-2")))
	})
}

// A person who lost the right to decide cannot make a grant from an old decision, and one person
// cannot stand for two.
func TestGrants_NeedTheCurrentRequirement(t *testing.T) {
	members := desk.StaticDirectory{"group:dba": {"bob"}, "group:owners": {"eve"}}
	e := office(t, memory.NewStore(nil), new(dropper), func(c *executor.Config) {
		c.Desk.Directory = members
		c.Desk.Policy = loadRules(t, strings.Replace(oneDBA, `{from: ["group:dba"]}], deadline: 1h`, `{from: ["group:dba"]}, {from: ["group:owners"]}], deadline: 1h, min_auth: hardware`, 1))
	})
	asked := startAs(t, e, "req").Interrupts[0].ID
	for _, who := range []string{"bob", "eve"} {
		request := word(who, "drop-1", "by "+who, asked, yes)
		request.Auth = requirement.AuthHardware
		mustRun(t, e, request)
	}
	delete(members, "group:dba") // bob is no longer a member
	if _, err := e.CreateGrant(t.Context(), "acme", asked, executor.GrantRequest{By: "bob", TTL: time.Hour, MaxUses: 1000}); err == nil {
		t.Error("bob made a grant, though he is no longer a dba, was not authenticated, and no owner approved")
	}
}

// Bob approved a drop when one dba was enough. The rules became stricter since. His old approval
// must not become a grant that replaces the approvals which are now required.
func TestGrants_OldApprovalIsNotValidUnderStricterRules(t *testing.T) {
	for name, stricter := range map[string]string{
		"more approvers":          strings.Replace(oneDBA, `[{from: ["group:dba"]}]`, `[{from: ["group:dba"]}, {from: ["group:owners"]}]`, 1),
		"other approvers":         strings.Replace(oneDBA, "group:dba", "group:owners", 1),
		"stronger authentication": strings.Replace(oneDBA, "deadline: 1h", "deadline: 1h, min_auth: hardware", 1),
	} {
		t.Run(name, func(t *testing.T) {
			live, set := liveRules(t, oneDBA)
			e := office(t, memory.NewStore(nil), new(dropper), func(c *executor.Config) { c.Desk.Policy = live })
			asked := startAs(t, e, "req").Interrupts[0].ID
			mustRun(t, e, word("bob", "drop-1", "r1", asked, yes))
			set(stricter)
			_, err := e.CreateGrant(t.Context(), "acme", asked, executor.GrantRequest{By: "bob", TTL: time.Hour, MaxUses: 1})
			if !errors.Is(err, executor.ErrInvalid) {
				t.Errorf("bob alone made a grant: %v", err)
			}
		})
	}
}

// An action that is evaluated again because a counter has changed uses the grant once.
func TestGrants_UseIsCountedOnce(t *testing.T) {
	d := new(dropper)
	e := office(t, memory.NewStore(nil), d, func(c *executor.Config) {
		c.Desk.Policy = loadRules(t, oneDBA+`
- id: many
  when: req.tool == "drop-table"
  limit: {max: 1000, window: 1h}
  then: deny
`)
	})
	asked := startAs(t, e, "req").Interrupts[0].ID
	mustRun(t, e, word("bob", "drop-1", "r1", asked, yes))
	if _, err := e.CreateGrant(t.Context(), "acme", asked, executor.GrantRequest{By: "bob", TTL: time.Hour, MaxUses: 8}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			if _, err := e.Run(t.Context(), dropAs("req", fmt.Sprint("drop-x", n))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if d.dropped.Load() != 9 {
		t.Errorf("of 8 uses %d allowed a drop", d.dropped.Load()-1)
	}
}

// Regression: a process died after a grant had allowed an action, and before the effect. The next
// owner used the grant once more. As the grant was used up, approval was needed, and the rules
// denied that because the charge of the action counted against it.
func TestGrants_UseIsCountedOnceAfterATakeover(t *testing.T) {
	runs := memory.NewStore(nil)
	var paid, entered atomic.Int64
	dead, hold := make(chan struct{}), make(chan struct{})
	p := pays(t, &paid, func() {
		if entered.Add(1) == 2 {
			close(dead)
			<-hold // this process is dead
		}
	})
	remembering := func(c *executor.Config) {
		c.Desk.Directory = desk.StaticDirectory{"group:finance": {"ann"}}
		c.Desk.Policy = loadRules(t, `
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
	if _, err := first.CreateGrant(t.Context(), "acme", asked, executor.GrantRequest{By: "ann", TTL: time.Hour, MaxUses: 1}); err != nil {
		t.Fatal(err)
	}
	request := executor.RunRequest{Account: "acme", StateKey: "b", Graph: "inproc:pay", Input: []byte(`{"cents":400}`)}
	go func() { _, _ = first.Run(context.Background(), request) }()
	<-dead
	expire(t, runs, "b")
	second.StartWorkers()
	completed(t, mustRun(t, second, request))
	all, err := second.ListGrants(t.Context(), "acme")
	if err != nil || len(all) != 1 || all[0].Usage.Uses != 1 || paid.Load() != 800 || chargedIn(t, runs) != 800 {
		t.Errorf("paid %d, charged %d, grants %+v, %v", paid.Load(), chargedIn(t, runs), all, err)
	}
	waits(t, began(t, second, "c", "inproc:pay", `{"cents":100}`)) // another action
}
