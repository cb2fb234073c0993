package executor_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/store"
)

type twoAsks struct {
	A string `json:"a"`
	B string `json:"b"`
}

// Whoever gives up a task gives up all that its run asks: the other request is withdrawn, too, for those who look at it.
func TestEscape_WithdrawsWhatElseTheRunAsks(t *testing.T) {
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
		asked := waits(t, mustRun(t, e, executor.Request{Account: "acme", StateKey: "two", Graph: "inproc:two", Input: json.RawMessage(`{"a":"","b":""}`)}))
		act := desk.Escape{From: desk.From{Actor: desk.Person("ann", desk.AuthSSO), Via: "test"}}
		if err := e.Escape(t.Context(), "acme", asked.Interrupts[0].ID, act); err != nil {
			t.Fatal(err)
		}
		doc, err := e.Request(t.Context(), "acme", asked.Interrupts[1].ID)
		if err != nil || doc.State != desk.Withdrawn || doc.Final == nil {
			t.Errorf("the other request is %s, %+v, %v", doc.State, doc.Final, err)
		}
	})
}
