// Package store defines the storage port of Fermata: the data that must outlive a process.
//
// A graph needs only [Checkpoints]; see the public package store. An executor needs a [Store],
// which combines:
//
//	Checkpoints   the state of runs
//	Runs          ownership, interrupts, decisions and effects of runs
//	Events        the event log of runs
//	Inbox         the interrupts of an account, as people see them
//	Documents     revisioned records such as requests, votes and notices
//	AuditLog      an append-only hash chain of lines for each account
//	Maintenance   retention, deletion, export and re-encryption
//	Credentials   API keys and sessions
//
// Implementations are the packages memory, sqlite and postgres below this one; the public packages
// of the same names open them. store/redis implements only [Checkpoints]. Each implementation
// passes the suite in storetest.
package store

import (
	"errors"

	public "github.com/fermata-go/fermata/store"
)

// The checkpoint port is public, because programs may implement it.
type (
	Key         = public.Key
	Part        = public.Part
	Checkpoint  = public.Checkpoint
	Delta       = public.Delta
	Checkpoints = public.Checkpoints
)

// Of returns the port of an open store.
func Of(s *public.Store) (Store, error) {
	if s == nil {
		return nil, errors.New("store: nil; open one with memory.New, sqlite.Open or postgres.Open")
	}
	port, ok := s.Checkpoints.(Store)
	if !ok {
		return nil, errors.New("store: only a store of store/memory, store/sqlite or store/postgres keeps runs")
	}
	return port, nil
}
