package graph_test

import (
	"context"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/store/memory"
)

type invoices struct {
	Amounts []int
	Paid    []string
}

var payable = fermata.NewKind[int, bool]("example-payable")

// Every invoice is checked separately; only large ones wait for a person.
func ExampleEach() {
	g := graph.New[invoices]("invoices")
	graph.Each(g, "check", func(s invoices) []int { return s.Amounts },
		func(ctx context.Context, amount int) (string, error) {
			if amount < 100 {
				return fmt.Sprint(amount, " paid"), nil
			}
			yes, err := payable.Ask(ctx, amount)
			return fmt.Sprint(amount, " approved: ", yes), err
		},
		func(s invoices, results []string) invoices { s.Paid = results; return s })
	g.Edge(graph.Start, "check")
	g.Edge("check", graph.End)
	flow, err := g.Compile()
	if err != nil {
		panic(err)
	}
	ctx, st := context.Background(), graph.WithStore(memory.New())
	_, err = flow.Run(ctx, invoices{Amounts: []int{7, 900, 12}}, st, graph.WithRun("r-1"))
	info, _ := fermata.ExtractInterruptInfo(err)
	for _, question := range info.Interrupts {
		fmt.Println(question.Address, question.Info)
	}
	out, _ := flow.Resume(ctx, "r-1", st, graph.Answer(info.Interrupts[0].ID, true))
	fmt.Println(out.Paid)
	// Output:
	// runnable:invoices;node:check;item:1 900
	// [7 paid 900 approved: true 12 paid]
}

type cleanup struct {
	Table string
	Done  string
}

// A hold shows the state before a dangerous node and accepts it back, edited.
func ExampleGraph_HoldBefore() {
	g := graph.New[cleanup]("cleanup")
	g.Node("drop", func(_ context.Context, s cleanup) (cleanup, error) {
		s.Done = "dropped " + s.Table
		return s, nil
	})
	g.Edge(graph.Start, "drop")
	g.Edge("drop", graph.End)
	g.HoldBefore("drop")
	flow, err := g.Compile()
	if err != nil {
		panic(err)
	}
	ctx, st := context.Background(), graph.WithStore(memory.New())
	_, err = flow.Run(ctx, cleanup{Table: "users"}, st, graph.WithRun("r-1"))
	info, _ := fermata.ExtractInterruptInfo(err)
	state, _ := fermata.InfoAs[cleanup](info.Interrupts[0])
	fmt.Println(info.Interrupts[0].Address, state.Table)
	state.Table = "users_2019"
	out, _ := flow.Resume(ctx, "r-1", st, graph.Answer(info.Interrupts[0].ID, state))
	fmt.Println(out.Done)
	// Output:
	// runnable:cleanup;hold:before#drop users
	// dropped users_2019
}

// Sub runs a graph with its own state inside a node.
func ExampleSub() {
	double := graph.New[int]("double")
	double.Node("add", func(_ context.Context, n int) (int, error) { return n + n, nil })
	double.Edge(graph.Start, "add")
	double.Edge("add", graph.End)
	inner, err := double.Compile()
	if err != nil {
		panic(err)
	}
	g := graph.New[invoices]("sum")
	graph.Sub(g, "double", inner, func(s invoices) int { return s.Amounts[0] }, func(s invoices, n int) invoices {
		s.Amounts = []int{n}
		return s
	})
	g.Edge(graph.Start, "double")
	g.Edge("double", graph.End)
	flow, err := g.Compile()
	if err != nil {
		panic(err)
	}
	out, err := flow.Run(context.Background(), invoices{Amounts: []int{21}})
	fmt.Println(out.Amounts, err)
	// Output: [42] <nil>
}
