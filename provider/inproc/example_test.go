package inproc_test

import (
	"context"
	"fmt"
	"log"

	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider/inproc"
)

type note struct {
	Text string `json:"text"`
}

// A graph gets a name, "inproc:shout", and a schema of its input.
func Example() {
	g := graph.New[note]("shout")
	g.Node("shout", func(_ context.Context, n note) (note, error) { return note{n.Text + "!"}, nil })
	g.Edge(graph.Start, "shout")
	g.Edge("shout", graph.End)
	flow, err := g.Compile()
	if err != nil {
		log.Fatal(err)
	}
	p, err := inproc.New(inproc.Flow(flow, inproc.FlowConfig[note]{Description: "Says it louder.", Content: func(n note) string { return n.Text }}))
	if err != nil {
		log.Fatal(err)
	}
	for _, g := range p.Graphs() {
		fmt.Printf("%s:%s %s\n%s\n", p.Name(), g.Name, g.Description, g.Input)
	}
	// Output:
	// inproc:shout Says it louder.
	// {"type":"object","properties":{"text":{"type":"string"}},"additionalProperties":false}
}
