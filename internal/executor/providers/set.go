// Package providers finds the provider of a graph or a run.
package providers

import (
	"fmt"

	"github.com/fermata-go/fermata/internal/store/encrypted"
	"github.com/fermata-go/fermata/provider"
)

// Set is the providers of an executor, by name.
type Set struct {
	all   map[string]provider.Provider
	store *encrypted.Store
}

// New returns a set of providers. It fails if two have the same name.
func New(store *encrypted.Store, list []provider.Provider) (*Set, error) {
	s := &Set{all: make(map[string]provider.Provider), store: store}
	for _, p := range list {
		if s.all[p.Name()] != nil {
			return nil, fmt.Errorf("executor: two providers are named %s", p.Name())
		}
		s.all[p.Name()] = p
	}
	return s, nil
}
