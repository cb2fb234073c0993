package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
)

type twoAsks struct {
	A string `json:"a"`
	B string `json:"b"`
}

// Abandoning a task abandons everything that its run asks: the other request is withdrawn, too.
func TestAbandon_WithdrawsOtherRequestsOfTheRun(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		kind := fermata.NewKind[string, string]("escape-sibling")
		g := graph.New[twoAsks]("two")
		g.Node("a", func(ctx context.Context, x twoAsks) (twoAsks, error) {
			var err error
			x.A, err = kind.Ask(ctx, "a?")
			return x, err
		})
		g.Node("b", func(ctx context.Context, x twoAsks) (twoAsks, error) {
			var err error
			x.B, err = kind.Ask(ctx, "b?")
			return x, err
		})
		for _, n := range []string{"a", "b"} {
			g.Edge(graph.Start, n)
			g.Edge(n, graph.End)
		}
		p := providing(t, g)
		e := executorOf(t, s, p, nil)
		asked := waits(t, mustRun(t, e, executor.RunRequest{Account: "acme", StateKey: "two", Graph: "inproc:two", Input: json.RawMessage(`{"a":"","b":""}`)}))
		act := desk.Abandon{From: by("ann")}
		if err := e.Abandon(t.Context(), "acme", asked.Interrupts[0].ID, act); err != nil {
			t.Fatal(err)
		}
		doc, err := e.RequestDocument(t.Context(), "acme", asked.Interrupts[1].ID)
		if err != nil || doc.State != desk.StateWithdrawn || doc.Decision == nil {
			t.Errorf("the other request is %s, %+v, %v; want withdrawn", doc.State, doc.Decision, err)
		}
	})
}

// A task can be abandoned at an action, by its requester and by its approvers.
func TestAbandon_AtAnActionEndsTheRunWithoutTheEffect(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := new(dropper)
		e := office(t, s, d, nil)
		id := startAs(t, e, "req").Interrupts[0].ID
		if err := e.Abandon(t.Context(), "acme", id, desk.Abandon{From: by("mallory")}); !errors.Is(err, desk.ErrNotMember) {
			t.Errorf("abandon by a non-member: %v", err)
		}
		if err := e.Abandon(t.Context(), "acme", id, desk.Abandon{From: by("bob"), Reason: "never mind"}); err != nil {
			t.Fatal(err)
		}
		run, err := s.Get(t.Context(), "acme", "drop-1")
		if err != nil || run.Status != store.StatusCancelled || d.dropped.Load() != 0 {
			t.Errorf("the run is %s, %v, dropped %d times", run.Status, err, d.dropped.Load())
		}
		if _, err := says(t, e, "eve", "late", yes); err == nil {
			t.Error("an abandoned request was approved")
		}
	})
}

// Abandoning an old request does not end the run that took its state key.
func TestAbandon_OldRequestDoesNotEndTheNewRun(t *testing.T) {
	s := memory.NewStore(nil)
	p := &scripted{execute: func(n int64, _ provider.Execution) (provider.Result, error) {
		return provider.Result{Outcome: provider.Waiting{Interrupts: []provider.Interrupt{{ID: "q" + string(rune('0'+n)), Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage(`1`)}}}}}, nil
	}}
	e := executorOf(t, s, p, nil)
	old := waits(t, mustRun(t, e, scriptedStart())).Interrupts[0].ID
	next := scriptedStart()
	next.Input, next.Supersede = json.RawMessage(`{"a":1}`), true
	waits(t, mustRun(t, e, next))
	from := by("ann")
	err := e.Abandon(t.Context(), "acme", old, desk.Abandon{From: from})
	if run, _ := s.Get(t.Context(), "acme", "x-1"); run.Status != store.StatusWaiting {
		t.Errorf("the run that took the state key is %s (%v)", run.Status, err)
	}
}
