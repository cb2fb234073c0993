package executor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/policy/grant"
	"github.com/fermata-go/fermata/store"
)

// A yes can be remembered within bounds: then nobody is asked again for the same, and for nothing else.
func TestGrants_StandForAYesWithinTheirBounds(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := new(dropper)
		text := strings.Replace(strings.Replace(twoPeople, "deadline: 1h", "deadline: 1h\n    remember_max: 1h", 1), `[{from: ["group:dba"]}, {from: ["group:owners"]}]`, `[{from: ["group:dba"]}]`, 1)
		set, err := policy.Load("policy.yaml", []byte(text), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		e := office(t, s, d, func(c *executor.Config) { c.Desk.Rules = set })
		drop := func(key, table string) fermata.Outcome {
			return mustRun(t, e, executor.Request{Account: "acme", StateKey: key, Graph: "inproc:drop", Input: json.RawMessage(`{"table":"` + table + `"}`), Actor: "req"})
		}
		asked := waits(t, drop("drop-1", "users")).Interrupts[0].ID
		terms := executor.Remember{By: "bob", TTL: time.Hour, MaxUses: 2}
		if _, err := e.Remember(t.Context(), "acme", asked, terms); !errors.Is(err, executor.ErrInvalid) {
			t.Fatalf("what nobody approved: %v", err)
		}
		if _, err := says(t, e, "bob", "1", yes); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Remember(t.Context(), "acme", asked, executor.Remember{By: "eve", TTL: time.Hour, MaxUses: 2}); !errors.Is(err, executor.ErrInvalid) {
			t.Fatalf("by somebody who did not approve it: %v", err)
		}
		g, err := e.Remember(t.Context(), "acme", asked, terms)
		if err != nil {
			t.Fatal(err)
		}
		completed(t, drop("drop-2", "users"))
		waits(t, drop("drop-3", "orders")) // something else
		completed(t, drop("drop-4", "users"))
		waits(t, drop("drop-5", "users")) // a third time
		if list, err := e.Grants(t.Context(), "acme"); err != nil || len(list) != 1 || list[0].Usage.Uses != 2 {
			t.Errorf("%+v, %v", list, err)
		}
		if list, err := e.Grants(t.Context(), "other"); err != nil || len(list) != 0 {
			t.Errorf("I8: %+v, %v", list, err)
		}
		wide, err := e.Remember(t.Context(), "acme", asked, executor.Remember{By: "bob", TTL: 48 * time.Hour, MaxUses: 9, Relax: map[string]grant.Constraint{"": grant.Beginning("us")}})
		if err != nil || wide.NotAfter.Sub(wide.Since) != time.Hour {
			t.Fatalf("longer than the rules allow: %+v, %v", wide, err)
		}
		completed(t, drop("drop-6", "us_old"))
		if err := e.Revoke(t.Context(), "acme", wide.ID, by("eve")); err != nil {
			t.Fatal(err)
		}
		waits(t, drop("drop-7", "us_older"))
		if err := e.Revoke(t.Context(), "acme", "unknown", by("eve")); !errors.Is(err, store.ErrNotFound) {
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

// Limits hold also for actions that come at the same time.
func TestRules_LimitsCountWhatWentAhead(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := new(dropper)
		set, err := policy.Load("policy.yaml", []byte(`
default: allow
rules:
- id: three
  when: req.tool == "drop-table"
  limit: {max: 3, window: 1h, by: [requester]}
  then: ask
  ask: {groups: [{from: ["group:dba"]}], deadline: 1h}
`), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		e := office(t, s, d, func(c *executor.Config) { c.Desk.Rules = set })
		outcomes := make(chan fermata.Outcome, 8)
		for n := range cap(outcomes) {
			go func() {
				outcome, err := e.Run(t.Context(), executor.Request{
					Account: "acme", StateKey: fmt.Sprint("drop-", n), Graph: "inproc:drop", Input: json.RawMessage(`{"table":"users"}`), Actor: "req",
				})
				if err != nil {
					t.Error(err)
				}
				outcomes <- outcome
			}()
		}
		done := 0
		for range cap(outcomes) {
			if _, ok := (<-outcomes).(fermata.Completed); ok {
				done++
			}
		}
		if done != 3 || d.dropped.Load() != 3 {
			t.Errorf("%d went ahead, %d were dropped", done, d.dropped.Load())
		}
		other := mustRun(t, e, executor.Request{Account: "acme", StateKey: "other", Graph: "inproc:drop", Input: json.RawMessage(`{"table":"users"}`), Actor: "somebody else"})
		completed(t, other)
	})
}
