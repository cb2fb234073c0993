package inproc

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider"
)

var _ provider.Checker = (*Provider)(nil)

// inspector is a graph that can read a run.
type inspector interface {
	// inspect returns the open interrupts of the run, or why it cannot be resumed.
	inspect(ctx context.Context, run provider.Run) ([]*fermata.InterruptCtx, error)
}

// CheckResumable reports whether this program can resume a run; see [provider.Checker].
func (p *Provider) CheckResumable(ctx context.Context, run provider.Run) error {
	g, err := p.graph(run.Graph)
	if err != nil {
		return err
	}
	insp, ok := g.(inspector)
	if !ok {
		return nil
	}
	open, err := insp.inspect(ctx, run)
	if errors.Is(err, graph.ErrUnknownRun) {
		return nil // not started
	}
	errs := []error{err}
	for _, ic := range open {
		if _, known := fermata.LookupKind(ic.Kind); !known && ic.Kind != "" && ic.Kind != graph.KindHold {
			errs = append(errs, fmt.Errorf("inproc: %s has an interrupt of kind %q, which this program does not have", ic.Address, ic.Kind))
		}
	}
	return errors.Join(errs...)
}

func (g *flowGraph[S]) inspect(ctx context.Context, run provider.Run) ([]*fermata.InterruptCtx, error) {
	loaded, err := g.flow.Load(ctx, run.ID, g.options(run)...)
	if err != nil {
		return nil, err
	}
	if err := loaded.Check(); err != nil {
		return nil, err
	}
	saved, err := loaded.Inspect()
	if err != nil {
		return nil, err
	}
	return saved.Interrupts, nil
}

// inspect reads the run of an agent, and checks the agents and tools that wait.
func (g *agentGraph) inspect(ctx context.Context, run provider.Run) ([]*fermata.InterruptCtx, error) {
	runner, err := g.runner(run, nil, nil)
	if err != nil {
		return nil, err
	}
	saved, err := runner.Inspect(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	return saved.Interrupts, agent.CheckOpen(g.config.Agent, saved.Interrupts)
}
