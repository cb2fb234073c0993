// Package memory opens a store in the memory of the process: for tests, and for programs whose runs
// need not outlive them. It behaves like the stores that write to disk.
package memory

import (
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/store"
)

// New returns an empty store. It is lost with the process.
func New() *store.Store { return store.New(memory.NewStore(nil), nil) }
