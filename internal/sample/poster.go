package sample

import (
	"context"
	"fmt"
	"sync"

	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// poster is the state of a print job.
type poster struct {
	Text    string `json:"text"`
	Printed bool   `json:"printed,omitempty"`
}

// press is a provider that fails the first time: the run is parked until an operator retries it.
type press struct {
	provider.Provider
	mu     sync.Mutex
	jammed map[string]bool // runs that were tried before
}

// Press returns a provider that prints posters, each only after an operator has retried it.
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
		Description: "Prints a poster (not a real one), after an operator has fixed the machine.", Content: func(p poster) string { return "printed: " + p.Text },
	}))
	return &press{Provider: own, jammed: make(map[string]bool)}, err
}

// Name is the prefix before the colon.
func (*press) Name() string { return "press" }

// Execute fails the first time.
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
