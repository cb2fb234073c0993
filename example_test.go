package fermata_test

import (
	"context"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/store/memory"
)

// The README quotes the code between the marks; a test keeps both equal.

// readme:start
type Order struct{ Item, Answer string }

var Confirm = fermata.NewKind[string, bool]("confirm") // a question is a string, an answer a bool

func confirm(ctx context.Context, o Order) (Order, error) {
	yes, err := Confirm.Ask(ctx, "Order "+o.Item+"?") // the first time, err stops the run here
	if err != nil {
		return o, err
	}
	o.Answer = fmt.Sprint("confirmed: ", yes) // after the answer it goes on here
	return o, nil
}

func Example() {
	g := graph.New[Order]("order")
	g.Node("confirm", confirm)
	g.Edge(graph.Start, "confirm")
	g.Edge("confirm", graph.End)
	flow, _ := g.Compile()
	st := graph.WithStore(memory.New()) // with a store from sqlite.Open, another process can go on

	_, err := flow.Run(context.Background(), Order{Item: "a piano"}, st, graph.WithRun("order-1"))
	if info, waits := fermata.ExtractInterruptInfo(err); waits {
		fmt.Println(info.Interrupts[0].Info)
		order, _ := flow.Resume(context.Background(), "order-1", st, graph.Answer(info.Interrupts[0].ID, true))
		fmt.Println(order.Answer)
	}
	// Output:
	// Order a piano?
	// confirmed: true
}

// readme:end
