package app_test

import (
	"context"
	"os"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/app"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider/inproc"
)

type Refund struct {
	Order  string `json:"order"`
	Amount int    `json:"amount"`
}

func pay(ctx context.Context, r Refund) (Refund, error) {
	yes, err := fermata.Approve(ctx, fermata.Action[Refund]{Name: "refund", Args: r})
	if err != nil {
		return r, err
	}
	_, err = fermata.Effect(ctx, yes, func(context.Context, Refund, string) (string, error) { return "paid", nil })
	return r, err
}

// readme:start
func main() {
	g := graph.New[Refund]("refund")
	g.Node("pay", pay) // asks with fermata.Approve, pays with fermata.Effect
	g.Edge(graph.Start, "pay")
	g.Edge("pay", graph.End)
	refund, err := g.Compile()
	if err != nil {
		panic(err)
	}
	os.Exit(app.Main(app.Graphs(inproc.Flow(refund, inproc.FlowConfig[Refund]{}))))
}

// readme:end

// A server with your own graph is the program fermata, built with that graph.
func Example() {
	_ = main
}
