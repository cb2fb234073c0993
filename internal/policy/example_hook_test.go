package policy_test

import (
	"context"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// A rule file decides on every action of a run.
func ExampleHook() {
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
	set, err := policy.Load("policy.yaml", src, policy.Options{})
	if err != nil {
		fmt.Println(err) // every error, with its line
		return
	}
	hook := &policy.Hook{
		Rules: set,
		FillInput: func(_ context.Context, _ fermata.ActionRequest, in *policy.Input) error {
			in.Account, in.Requester = "acme", "bob" // values that the run knows
			return nil
		},
		OnDecision: func(_ context.Context, _ policy.Input, d policy.Decision) (policy.Decision, error) {
			fmt.Println(d.Verdict, d.Rules) // store it: the requirement for the desk, the trace for the record
			return d, nil
		},
	}
	out, err = flow.Run(ctx, "", graph.WithPolicy(hook), graph.WithStore(memory.New()), graph.WithRun("r-1"))
	fmt.Println(out, err)
	// Output:
	// allow [small]
	// paid, by policy small <nil>
}
