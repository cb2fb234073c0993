package policy_test

import (
	"context"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/store/memory"
)

type refund struct {
	Cents int `json:"cents"`
}

// A rule file decides on every action of a run.
func Example() {
	g := graph.New[string]("refunds")
	g.Node("pay", func(ctx context.Context, _ string) (string, error) {
		approved, err := fermata.Approve(ctx, fermata.Action[refund]{Name: "refund", Args: refund{Cents: 1500}})
		if err != nil {
			return "", err
		}
		return "paid, by " + approved.By(), nil
	})
	g.Edge(graph.Start, "pay")
	g.Edge("pay", graph.End)
	flow, err := g.Compile()
	if err != nil {
		fmt.Println(err)
		return
	}
	src := []byte("default: deny\nrules:\n- {id: small, when: 'req.account == \"acme\" && args.cents <= 2000', then: allow}\n")
	ctx, out := context.Background(), ""
	// docs:start
	rules, err := policy.Load("policy.yaml", src, policy.Config{Account: "acme"})
	if err != nil {
		fmt.Println(err) // every mistake, with its line
		return
	}
	out, err = flow.Run(ctx, "", graph.WithPolicy(rules), graph.WithStore(memory.New()), graph.WithRun("r-1"))
	// docs:end
	fmt.Println(out, err)
	// Output:
	// paid, by policy small <nil>
}
