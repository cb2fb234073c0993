package fermata_test

import (
	"context"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/store/memory"
)

type Refund struct {
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
}

// A refund is paid only after a person has approved it, with the approved amount.
func ExampleApprove() {
	g := graph.New[string]("refunds")
	g.Node("pay", func(ctx context.Context, _ string) (string, error) {
		approved, err := fermata.Approve(ctx, fermata.Action[Refund]{
			Name: "refund", Args: Refund{Customer: "c-7", Cents: 4200}, Summary: "Refund a broken lamp",
		})
		if err != nil {
			return "", err
		}
		return fermata.Effect(ctx, approved, func(_ context.Context, r Refund, key string) (string, error) {
			return fmt.Sprintf("paid %d cents to %s", r.Cents, r.Customer), nil // key goes to the payment service
		})
	})
	g.Edge(graph.Start, "pay")
	g.Edge("pay", graph.End)
	flow, err := g.Compile()
	if err != nil {
		panic(err)
	}
	ctx, st := context.Background(), graph.WithStore(memory.New())

	_, err = flow.Run(ctx, "", st, graph.WithRun("r-1"))
	info, _ := fermata.ExtractInterruptInfo(err)
	request, _ := fermata.Approval.Question(info.Interrupts[0])
	fmt.Println(request.Summary, string(request.Args))

	less := fermata.Yes("ann")
	less.Args = []byte(`{"customer":"c-7","cents":2100}`)
	out, err := flow.Resume(ctx, "r-1", st, graph.Answer(info.Interrupts[0].ID, less))
	fmt.Println(out, err)
	// Output:
	// Refund a broken lamp {"customer":"c-7","cents":4200}
	// paid 2100 cents to c-7 <nil>
}

// Do runs its function once, however often the node is entered.
func ExampleDo() {
	name := fermata.NewKind[string, string]("name")
	g := graph.New[string]("greeting")
	g.Node("greet", func(ctx context.Context, _ string) (string, error) {
		greeting, err := fermata.Do(ctx, "pick", func(context.Context) (string, error) {
			fmt.Println("thinking hard")
			return "Good evening", nil
		})
		if err != nil {
			return "", err
		}
		who, err := name.Ask(ctx, "Who is there?")
		return greeting + ", " + who, err
	})
	g.Edge(graph.Start, "greet")
	g.Edge("greet", graph.End)
	flow, err := g.Compile()
	if err != nil {
		panic(err)
	}
	ctx, st := context.Background(), graph.WithStore(memory.New())
	_, err = flow.Run(ctx, "", st, graph.WithRun("r-1"))
	info, _ := fermata.ExtractInterruptInfo(err)
	out, _ := flow.Resume(ctx, "r-1", st, graph.Answer(info.Interrupts[0].ID, "Clara"))
	fmt.Println(out)
	// Output:
	// thinking hard
	// Good evening, Clara
}
