package sample

import (
	"context"
	"fmt"
	"sync"

	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// poster is the state of something to be printed.
type poster struct {
	Text    string `json:"text"`
	Printed bool   `json:"printed,omitempty"`
}

// press is a provider that does not work at first: what it is given is parked, until somebody has looked at it and lets it go on.
type press struct {
	provider.Provider
	mu     sync.Mutex
	jammed map[string]bool // by run, whether it was tried before
}

// Press prints posters; but each of them only after somebody has looked at the machine.
func Press() (provider.Provider, error) {
	g := graph.New[poster]("poster")
	g.Node("print", func(_ context.Context, p poster) (poster, error) {
		p.Printed = true
		return p, nil
	})
	g.Edge(graph.Start, "print")
	g.Edge("print", graph.End)
	flow, err := g.Compile()
	if err != nil {
		return nil, err
	}
	own, err := inproc.New(inproc.Flow(flow, inproc.FlowConfig[poster]{
		Description: "Prints a poster (not a real one), once somebody has looked after the machine.", Content: func(p poster) string { return "printed: " + p.Text },
	}))
	return &press{Provider: own, jammed: make(map[string]bool)}, err
}

// Name is the word before the colon.
func (*press) Name() string { return "press" }

// Execute gives up the first time.
func (p *press) Execute(ctx context.Context, execution provider.Execution) (provider.Result, error) {
	p.mu.Lock()
	known := p.jammed[execution.Run.ID]
	p.jammed[execution.Run.ID] = true
	p.mu.Unlock()
	if !known {
		return provider.Result{}, fmt.Errorf("%w: there is paper in the machine", provider.ErrPark)
	}
	return p.Provider.Execute(ctx, execution)
}
