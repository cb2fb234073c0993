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
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/policy/grant"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// oneDBA is enough for a drop, and may have it remembered for an hour.
const oneDBA = `
default: allow
rules:
- id: drop
  when: req.tool == "drop-table"
  then: ask
  ask: {groups: [{from: ["group:dba"]}], deadline: 1h, remember_max: 1h}
`

// A yes can be remembered within bounds: then nobody is asked again for the same, and for nothing else.
func TestGrants_StandForAYesWithinTheirBounds(t *testing.T) {
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
			t.Fatalf("what nobody approved: %v", err)
		}
		if _, err := says(t, e, "bob", "1", yes); err != nil {
			t.Fatal(err)
		}
		if _, err := e.CreateGrant(t.Context(), "acme", asked, executor.GrantRequest{By: "eve", TTL: time.Hour, MaxUses: 2}); !errors.Is(err, executor.ErrInvalid) {
			t.Fatalf("by somebody who did not approve it: %v", err)
		}
		g, err := e.CreateGrant(t.Context(), "acme", asked, terms)
		if err != nil {
			t.Fatal(err)
		}
		completed(t, drop("drop-2", "users"))
		waits(t, drop("drop-3", "orders")) // something else
		completed(t, drop("drop-4", "users"))
		waits(t, drop("drop-5", "users")) // a third time
		if list, err := e.ListGrants(t.Context(), "acme"); err != nil || len(list) != 1 || list[0].Usage.Uses != 2 {
			t.Errorf("%+v, %v", list, err)
		}
		if list, err := e.ListGrants(t.Context(), "other"); err != nil || len(list) != 0 {
			t.Errorf("I8: %+v, %v", list, err)
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
			t.Errorf("an unknown one: %v", err)
		}
		counted := make(map[string]int)
		for _, kind := range lines(t, s) {
			counted[kind]++
		}
		if counted["grant.made"] != 2 || counted["grant.used"] != 3 || counted["grant.revoked"] != 1 {
			t.Errorf("%s: the log says %v", g.ID, counted)
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

// Who has no answer wants it again, and gets the grant that was made: two of them could be used twice as often as somebody meant.
func TestGrants_WhatIsWantedAgainUnderItsKeyIsOneGrant(t *testing.T) {
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
			t.Errorf("%+v, %v; each got %+v", grants, err, made)
		}
		terms.MaxUses, terms.Idempotency.Digest = 3, "three"
		if _, err := e.CreateGrant(t.Context(), "acme", asked, terms); !errors.Is(err, desk.ErrKeyReused) {
			t.Errorf("something else under the same key: %v", err)
		}
		terms.Idempotency = desk.IdempotencyKey{}
		if _, err := e.CreateGrant(t.Context(), "acme", asked, terms); err != nil {
			t.Error(err)
		}
		if grants, err = e.ListGrants(t.Context(), "acme"); err != nil || len(grants) != 2 {
			t.Errorf("one without a key is another: %+v, %v", grants, err)
		}
	})
}

// The rules let a yes be remembered for an hour. Whoever gave one could have it remembered anew when the hour was over, again and again, and be asked
// never more: each grant counted its hour from when it was made, and not from the yes.
func TestGrants_AYesIsNotRememberedLongerThanTheRulesAllow(t *testing.T) {
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
			t.Errorf("40 minutes after the yes: until %v, %v", late.NotAfter.Sub(now), err)
		}
		clock.by.Store(int64(61 * time.Minute))
		if g, err := e.CreateGrant(t.Context(), "acme", asked, terms); !errors.Is(err, grant.ErrNotRememberable) {
			t.Errorf("61 minutes after the yes: until %v, %v", g.NotAfter, err)
		}
		waits(t, mustRun(t, e, dropAs("req", "drop-2")))
	})
}

// Whoever has lost the right to decide makes no grant of what they decided then, nor does one speak for two.
func TestGrants_NeedWhatTheGateNeeds(t *testing.T) {
	members := desk.StaticDirectory{"group:dba": {"bob"}, "group:owners": {"eve"}}
	e := office(t, memory.NewStore(nil), new(dropper), func(c *executor.Config) {
		c.Desk.Directory = members
		c.Desk.Policy = loadRules(t, strings.Replace(oneDBA, `{from: ["group:dba"]}], deadline: 1h`, `{from: ["group:dba"]}, {from: ["group:owners"]}], deadline: 1h, min_auth: hardware`, 1))
	})
	asked := startAs(t, e, "req").Interrupts[0].ID
	for _, who := range []string{"bob", "eve"} {
		request := word(who, "drop-1", "by "+who, asked, yes)
		request.Auth = desk.AuthHardware
		mustRun(t, e, request)
	}
	delete(members, "group:dba") // bob is gone
	if _, err := e.CreateGrant(t.Context(), "acme", asked, executor.GrantRequest{By: "bob", TTL: time.Hour, MaxUses: 1000}); err == nil {
		t.Error("bob, who is no dba any more, whom nobody authenticated, and without an owner, has had it remembered")
	}
}

// Bob approved a drop when one dba was enough. The rules have become stricter since; his old yes must not be made into a grant that stands for the
// yes of all whom they ask now.
func TestGrants_AnOldYesIsNoneUnderStricterRules(t *testing.T) {
	for name, stricter := range map[string]string{
		"more people":    strings.Replace(oneDBA, `[{from: ["group:dba"]}]`, `[{from: ["group:dba"]}, {from: ["group:owners"]}]`, 1),
		"other people":   strings.Replace(oneDBA, "group:dba", "group:owners", 1),
		"a stronger key": strings.Replace(oneDBA, "deadline: 1h", "deadline: 1h, min_auth: hardware", 1),
	} {
		t.Run(name, func(t *testing.T) {
			live, set := liveRules(t, oneDBA)
			e := office(t, memory.NewStore(nil), new(dropper), func(c *executor.Config) { c.Desk.Policy = live })
			asked := startAs(t, e, "req").Interrupts[0].ID
			mustRun(t, e, word("bob", "drop-1", "r1", asked, yes))
			set(stricter)
			_, err := e.CreateGrant(t.Context(), "acme", asked, executor.GrantRequest{By: "bob", TTL: time.Hour, MaxUses: 1})
			if !errors.Is(err, executor.ErrInvalid) {
				t.Errorf("bob alone has had it remembered: %v", err)
			}
		})
	}
}

// What is judged again because a counter has moved uses the grant once.
func TestGrants_AUseIsCountedOnce(t *testing.T) {
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
		t.Errorf("of 8 uses %d were of use", d.dropped.Load()-1)
	}
}

// A process died after a grant had allowed an action, and before it was done. Who took over used the grant once more; as it was used up by then, people were to be
// asked, and the rules denied even that: what was charged for the action counted against it.
func TestGrants_AUseCountsOnceAlsoIfAProcessDies(t *testing.T) {
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
		t.Errorf("%d were paid and %d charged, and the grants are %+v, %v", paid.Load(), chargedIn(t, runs), all, err)
	}
	waits(t, began(t, second, "c", "inproc:pay", `{"cents":100}`)) // something else
}
