package executor

import (
	"context"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/executor/internal/errs"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// Graphs lists what can be run, by graph id.
func (e *Executor) Graphs() map[string]provider.Graph {
	all := make(map[string]provider.Graph)
	for name, p := range e.providers {
		for _, g := range p.Graphs() {
			all[name+":"+g.Name] = g
		}
	}
	return all
}

// Graph returns one of them.
func (e *Executor) Graph(id string) (provider.Graph, error) {
	_, g, err := e.graph(id)
	return g, err
}

// GraphOf returns the graph of the newest run of a state key and its id, as this program has it, with the nodes marked at which the run waits.
func (e *Executor) RunGraph(ctx context.Context, account, stateKey string) (id string, g provider.Graph, err error) {
	run, err := e.findRun(ctx, account, stateKey)
	if err != nil {
		return "", g, err
	}
	id = run.Provider + ":" + run.Graph
	if _, g, err = e.graph(id); err != nil || g.Drawing == nil {
		return id, g, err
	}
	asked, err := e.store.Interrupts(ctx, account, run.ID)
	if err != nil {
		return id, g, err
	}
	var waiting []fermata.Address
	for _, i := range asked {
		if i.State != store.InterruptPending {
			continue
		}
		if at, err := fermata.ParseAddress(i.Address); err == nil { // one that somebody else wrote may be no place in a drawing
			waiting = append(waiting, at)
		}
	}
	g.Drawing = g.Drawing.Marked(waiting...)
	return id, g, nil
}

// ParseGraphID takes a graph id apart: "inproc:review" is the graph review of the provider inproc.
func ParseGraphID(id string) (provider, graph string, err error) {
	provider, graph, ok := strings.Cut(id, ":")
	if !ok || provider == "" || graph == "" {
		return "", "", fmt.Errorf("%w: %q is no graph id, as inproc:review", errs.ErrInvalid, id)
	}
	return provider, graph, nil
}

// graph finds the provider of a graph id, and the graph.
func (e *Executor) graph(id string) (provider.Provider, provider.Graph, error) {
	prefix, name, err := ParseGraphID(id)
	p := e.providers[prefix]
	if err != nil || p == nil {
		return nil, provider.Graph{}, fmt.Errorf("%w: %q", errs.ErrGraphNotFound, id)
	}
	for _, g := range p.Graphs() {
		if g.Name == name {
			return p, g, nil
		}
	}
	return nil, provider.Graph{}, fmt.Errorf("%w: %q", errs.ErrGraphNotFound, id)
}
