package providers

import (
	"fmt"
	"strings"

	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// Of finds the provider of a run.
func (s *Set) Of(run store.Run) (provider.Provider, error) {
	if p := s.all[run.Provider]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%w: this process has no provider %q", errs.ErrGraphNotFound, run.Provider)
}

// RunView is a run as its provider sees it.
func (s *Set) RunView(run store.Run, state store.Checkpoints) (provider.Run, error) {
	ref, err := s.store.Ref(run)
	return provider.Run{Account: run.Account, ID: run.ID, StateKey: run.StateKey, Ref: string(ref), Graph: run.Graph, State: state}, err
}

// Graphs lists what can be run, by graph id.
func (s *Set) Graphs() map[string]provider.Graph {
	all := make(map[string]provider.Graph)
	for name, p := range s.all {
		for _, g := range p.Graphs() {
			all[name+":"+g.Name] = g
		}
	}
	return all
}

// Graph returns one of them.
func (s *Set) Graph(id string) (provider.Graph, error) {
	_, g, err := s.Find(id)
	return g, err
}

// ParseGraphID takes a graph id apart: "inproc:review" is the graph review of the provider inproc.
func ParseGraphID(id string) (provider, graph string, err error) {
	provider, graph, ok := strings.Cut(id, ":")
	if !ok || provider == "" || graph == "" {
		return "", "", fmt.Errorf("%w: %q is not a graph id such as inproc:review", errs.ErrInvalid, id)
	}
	return provider, graph, nil
}

// Find finds the provider of a graph id, and the graph.
func (s *Set) Find(id string) (provider.Provider, provider.Graph, error) {
	prefix, name, err := ParseGraphID(id)
	p := s.all[prefix]
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
