// Package store has what programs need to know about stores.
//
// A store keeps what must outlive a process. Programs open one and pass it on:
//
//	st, err := sqlite.Open("fermata.db")                    // one file, one machine
//	st, err := postgres.Open(ctx, url, postgres.Config{})   // several replicas
//	st := memory.New()                                      // tests
//
//	flow.Run(ctx, state, graph.WithStore(st))               // a graph alone: only checkpoints
//	server.New(server.Config{Executor: executor.Config{Store: st}})
//
// The executor encrypts what it stores; see Config.KeyFile of package executor. A graph that runs
// alone stores its checkpoints as they are.
//
// A graph needs only [Checkpoints]. Programs may implement that port for another database; package
// store/redis is an example.
//
// # Checkpoints
//
// A checkpoint is the complete state of a run. It consists of named parts under one version, so
// that a save costs only what the step changed:
//
//	version, err := checkpoints.Save(ctx, key, 0, store.Delta{Put: []store.Part{{Name: "run", Data: head}}})
//	...
//	checkpoint, err := checkpoints.Load(ctx, key)
//	version, err = checkpoints.Save(ctx, key, checkpoint.Version, store.Delta{Put: changed, Delete: removed})
//
// The version is an optimistic lock. A save that was prepared on an older version changes nothing
// and returns [ErrStale]. Of any number of callers that loaded the same version, one wins. The
// store does not interpret the content of parts.
package store

import (
	"context"
	"errors"
)

// Store is an open store with everything that an executor keeps: checkpoints, runs, requests,
// effects, events, audit log and credentials. Packages store/memory, store/sqlite and
// store/postgres open one. It is safe for concurrent use.
type Store struct {
	Checkpoints
	close func() error
}

// New returns a Store for the packages that open one. Its port is an implementation of the internal
// storage port.
func New(port Checkpoints, close func() error) *Store { return &Store{port, close} }

// Close closes the store. Stop the executors that use it first.
func (s *Store) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}

// Key identifies the checkpoint of one run. Data of one account cannot be reached with the key of
// another account.
type Key struct {
	// Account is the tenant. The empty string is a valid account.
	Account string
	// Run must not be empty.
	Run string
}

// Part is one named piece of a checkpoint. Names are arbitrary non-empty byte strings.
//
// Data must not change after it was passed to a store or returned by one. A store may keep the
// slice it was given and may return the same slice to every caller of Load.
type Part struct {
	Name string
	Data []byte
}

// Checkpoint is the state of a run after its newest save.
type Checkpoint struct {
	// Version is 1 after the first save and grows by one with each save.
	Version int64
	// Parts holds every part by name. The caller owns the map but must not change the bytes; see
	// [Part].
	Parts map[string][]byte
}

// Delta describes the changes of one save: parts that are new or different, and the names of parts
// to delete. Deleting a part that does not exist is not an error. A name must not be in both lists.
type Delta struct {
	Put    []Part
	Delete []string
}

// Checkpoints stores the checkpoints of runs. All methods are safe for concurrent use.
//
// If a method returns an error that is not named here, the outcome is unknown. After such an error
// from Save the caller has to Load again.
type Checkpoints interface {
	// Load returns the newest checkpoint, or ErrNotFound.
	Load(ctx context.Context, key Key) (Checkpoint, error)

	// Save applies the delta atomically and is durable when it returns. base is the version that
	// the delta was prepared on; 0 creates the checkpoint. Save returns the new version, ErrStale
	// if base is not the stored version, or ErrInvalid if the key or the name of a part is empty.
	Save(ctx context.Context, key Key, base int64, delta Delta) (version int64, err error)

	// Delete removes the checkpoint. Deleting one that does not exist is not an error.
	Delete(ctx context.Context, key Key) error
}

var (
	// ErrNotFound is returned if nothing is stored under this key in this account.
	ErrNotFound = errors.New("store: not found")

	// ErrStale is returned if the data changed after the version or revision that the write was
	// prepared on. Nothing was changed. The caller must load again and prepare the write again.
	ErrStale = errors.New("store: stale version")

	// ErrInvalid is returned for an argument that cannot be stored: a key or name that is empty or
	// too long. Nothing was changed, and repeating the call does not help.
	ErrInvalid = errors.New("store: invalid key, name or value")
)
