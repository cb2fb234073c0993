package executor_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
)

// What an account had remembered and counted goes with it. The log stays, and says that the grant ended.
func TestErase_LeavesNoGrantsAndNoCounters(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		var paid atomic.Int64
		e := executorOf(t, s, payer(t, &paid, "pay"), func(c *executor.Config) {
			c.Desk.Rules = loadRules(t, strings.NewReplacer("deadline: 1h}", "deadline: 1h, remember_max: 1h}", "max: 1000", "max: 1200").Replace(budgeted))
			c.Desk.Directory = desk.Members{"group:finance": {"ann"}}
		})
		pays := func(account string) {
			t.Helper()
			asked := waits(t, mustRun(t, e, executor.Request{Account: account, StateKey: "p-1", Graph: "inproc:pay", Input: json.RawMessage(`{"cents":600}`), Actor: "req"}))
			id := asked.Interrupts[0].ID
			completed(t, mustRun(t, e, executor.Request{
				Account: account, StateKey: "p-1", ResumeID: "r-" + id, Actor: "ann", Targets: map[string]executor.Answer{id: {Value: json.RawMessage(yes)}},
			}))
			if _, err := e.Remember(t.Context(), account, id, executor.Remember{By: "ann", TTL: time.Hour, MaxUses: 2}); err != nil {
				t.Fatal(err)
			}
		}
		pays("acme")
		pays("other")
		if _, err := e.Erase(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []store.PaperKind{"grant", "counter"} {
			papers, err := s.Papers(t.Context(), "acme", kind, store.PaperFilter{})
			if err != nil || len(papers) != 1 || papers[0].Body != nil || string(papers[0].Facts) != "{}" {
				t.Errorf("%s: %+v, %v", kind, papers, err)
			}
		}
		if list, err := e.Grants(t.Context(), "acme"); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
		papers, err := s.Papers(t.Context(), "acme", "grant", store.PaperFilter{})
		if err == nil {
			err = e.Revoke(t.Context(), "acme", papers[0].ID, by("ann"))
		}
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("taking back what is erased: %v", err)
		}
		if list, err := e.Grants(t.Context(), "other"); err != nil || len(list) != 1 {
			t.Errorf("I8: that of another account is %+v, %v", list, err)
		}
		log := lines(t, s)
		if last := log[len(log)-1]; last != "grant.revoked" || !slices.Contains(log, "effect.ended") {
			t.Errorf("the log says %q", log)
		}
		if _, err := e.Erase(t.Context(), "acme"); err != nil || len(lines(t, s)) != len(log) {
			t.Errorf("again: %v, %d lines", err, len(lines(t, s)))
		}
		pays("acme") // and the account begins anew, with its whole budget
		if paid.Load() != 1800 {
			t.Errorf("paid %d", paid.Load())
		}
	})
}

// A task can be given up where it wants to do something, by who asks for it and by who would decide it.
func TestEscape_OfAnActionEndsTheRunAndDoesNothing(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := new(dropper)
		e := office(t, s, d, nil)
		id := startAs(t, e, "req").Interrupts[0].ID
		from := func(who string) desk.From { return desk.From{Actor: desk.Person(who, desk.AuthSSO)} }
		if err := e.Escape(t.Context(), "acme", id, desk.Escape{From: from("mallory")}); !errors.Is(err, desk.ErrNotMember) {
			t.Errorf("a stranger gives it up: %v", err)
		}
		if err := e.Escape(t.Context(), "acme", id, desk.Escape{From: from("bob"), Reason: "never mind"}); err != nil {
			t.Fatal(err)
		}
		run, err := s.Get(t.Context(), "acme", "drop-1")
		if err != nil || run.Status != store.Cancelled || d.dropped.Load() != 0 {
			t.Errorf("it is %s, %v, dropped %d times", run.Status, err, d.dropped.Load())
		}
		if _, err := says(t, e, "eve", "late", yes); err == nil {
			t.Error("somebody approves what was given up")
		}
	})
}
