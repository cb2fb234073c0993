package executor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store/memory"
)

type rounds struct {
	Cents int64 `json:"cents"`
	N     int   `json:"n"`
}

// A run that was tried more than once does the same again and again: each time it is another action, and is charged.
func TestAttack_ARunThatWasTriedAgainIsChargedForEachRound(t *testing.T) {
	var paid, tries atomic.Int64
	g := graph.New[rounds]("pay")
	g.Node("one", func(ctx context.Context, p rounds) (rounds, error) {
		if tries.Add(1) == 1 {
			return p, &provider.RetryError{After: time.Millisecond, Err: errors.New("not now")}
		}
		yes, err := fermata.Approve(ctx, fermata.Action[payment]{Name: "pay", Args: payment{p.Cents}})
		if err != nil {
			return p, err
		}
		_, err = fermata.Effect(ctx, yes, func(_ context.Context, args payment, _ string) (string, error) {
			paid.Add(args.Cents)
			return "paid", nil
		})
		p.N++
		return p, err
	})
	g.Edge(graph.Start, "one")
	g.Branch("one", func(p rounds) string {
		if p.N < 5 {
			return "one"
		}
		return graph.End
	}, "one", graph.End)
	p := providing(t, g)
	e := executorOf(t, memory.NewRuns(nil), p, func(c *executor.Config) {
		c.Desk.Rules = loadRules(t, `
default: deny
rules:
- {id: pay, when: req.tool == "pay", limit: {amount: args.cents, max: 1000, window: 24h}, then: allow}
`)
	})
	e.Start()
	outcome := began(t, e, "a", "inproc:pay", `{"cents":600,"n":0}`)
	if failed, ok := outcome.(fermata.Failed); !ok || failed.Code != "rejected" || paid.Load() != 600 {
		t.Errorf("%d cents were paid without asking, of 1000 that may be (%#v)", paid.Load(), outcome)
	}
}
