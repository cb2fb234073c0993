// Package store is the port behind which Fermata keeps what must outlive a process.
//
// A checkpoint is everything a run needs to go on. It is kept as named parts under one version, so that a save costs
// what the step changed and not the whole state again:
//
//	version, err := checkpoints.Save(ctx, key, 0, store.Delta{Put: []store.Part{{Name: "run", Data: head}}})
//	...
//	checkpoint, err := checkpoints.Load(ctx, key)
//	version, err = checkpoints.Save(ctx, key, checkpoint.Version, store.Delta{Put: changed, Delete: gone})
//
// The version is the only lock: a save that was prepared on an older version than the stored one changes nothing and
// returns [ErrStale]. Of any number of callers that loaded the same version, one wins. What a part means is the business of the caller.
//
// A graph needs [Checkpoints] alone. An executor needs a [Store], which is all of these:
//
//	Checkpoints   the state of runs
//	Runs          who owns a run, what it asks, what was decided, which effects were begun
//	Events        what happened to runs, for those who follow them
//	Inbox         the questions of an account
//	Desk          papers: documents that are changed by revision, as requests, votes and notices are
//	AuditLog      a chain of lines for each account, which never change
//	Keeping       deletion, export, and changing keys
//	Credentials   API keys and sessions
//
// Implementations are in store/memory, store/sqlite and store/postgres; store/redis puts a cache in front of another one. Each passes the suite in
// store/storetest.
package store

import "context"

// Key names the checkpoint of one run of one account. What belongs to one account cannot be reached with the key of another.
type Key struct {
	// Account is the tenant; empty is an account like any other.
	Account string
	// Run must not be empty.
	Run string
}

// Part is one named piece of a checkpoint. Names are arbitrary non-empty byte strings.
//
// Data does not change any more once it was handed to a store or came from one: a store may keep the very bytes that it was
// given, and may hand them out to everybody who loads the checkpoint.
type Part struct {
	Name string
	Data []byte
}

// Checkpoint is what a run looked like after its newest save.
type Checkpoint struct {
	// Version is 1 after the first save and grows by one with each.
	Version int64
	// Parts holds every part by name. The caller owns the map; the bytes must not be changed, see [Part].
	Parts map[string][]byte
}

// Delta is what one save changes: parts that are new or different, and the names of those that are gone.
// Deleting a part that is not there is not an error. A name must not stand in both lists.
type Delta struct {
	Put    []Part
	Delete []string
}

// Checkpoints keeps the checkpoints of runs. All methods may be called at once from any goroutine.
//
// When a method returns an error other than those named here, the caller does not know whether the store was reached.
// After a failed Save it has to Load again to find out.
type Checkpoints interface {
	// Load returns the newest checkpoint, or ErrNotFound.
	Load(ctx context.Context, key Key) (Checkpoint, error)

	// CheckpointSave applies the delta as a whole or not at all, and is durable when it returns. base is the version the delta was
	// prepared on; 0 creates the checkpoint. It returns the new version, ErrStale if base is not the stored version, or
	// ErrInvalid if the key or a part's name is empty.
	Save(ctx context.Context, key Key, base int64, delta Delta) (version int64, err error)

	// Delete removes the checkpoint. Deleting one that does not exist is not an error.
	Delete(ctx context.Context, key Key) error
}
