package store

import (
	"context"
	"time"
)

// Store is the complete storage port of an executor.
type Store interface {
	Checkpoints
	Runs
	Events
	Inbox
	Documents
	AuditLog
	Maintenance
	Credentials
}

// Maintenance covers retention, deletion, export and re-encryption of stored data.
type Maintenance interface {
	// FinishedRuns returns runs of all accounts that ended in the interval [from, before), oldest
	// first. A zero from has no lower bound. Of the sealed values only the provider ref is
	// returned. A caller that could not delete some runs continues after them with from.
	FinishedRuns(ctx context.Context, from, before time.Time, limit int) ([]Run, error)

	// DeleteRun deletes a run that has ended, with its interrupts, resumes, effects, events,
	// documents and checkpoint. The audit log stays. It returns ErrRunActive, and deletes nothing,
	// if the run has not ended. Deleting an unknown run is not an error and applies no writes, so
	// of several concurrent calls one applies its writes.
	DeleteRun(ctx context.Context, account, run string, writes Writes) error

	// History returns everything that is stored about a run except the checkpoint, or ErrNotFound.
	History(ctx context.Context, account, run string) (History, error)

	// Size returns how much data is stored.
	Size(ctx context.Context) (Size, error)

	// Vacuum returns the space of deleted data to the system, as far as the database can do this
	// while it is in use.
	Vacuum(ctx context.Context) error

	// Reencrypt passes sealed values of all accounts to a function, some per call, and stores the
	// values that it returns; nil keeps a value. A value that was changed in between is kept,
	// because the writer used the new key. Reencrypt returns the cursor for the next call, or "" at
	// the end. It changes nothing but the bytes of the values.
	Reencrypt(ctx context.Context, after string, limit int, reencrypt func(SealedValue) ([]byte, error)) (next string, err error)

	// PutIfAbsent stores a value under a name unless there is one, and returns the stored value.
	PutIfAbsent(ctx context.Context, name string, value []byte) ([]byte, error)
}

// History is everything that is stored about a run, except its checkpoint.
type History struct {
	Run        Run
	Interrupts []Interrupt
	Resumes    []Resume
	Effects    []Effect
	Events     []Event
	Documents  []Document // by kind and id
}

// Resume is a resume id with its receipt.
type Resume struct {
	Actor, ID, BodyDigest string
	Receipt               DecisionReceipt
}

// Size is the amount of stored data.
type Size struct {
	// Bytes is the size of the database. Free is the unused part of it, or 0 if unknown.
	Bytes, Free int64
	// Rows counts the rows of each table. Counts may be estimates.
	Rows map[string]int64
}

// SealedValue is a sealed value and its location.
type SealedValue struct {
	Account string
	Field   SealedField
	// ID is the id of the run, interrupt or document, or the name given to PutIfAbsent. Part is the
	// name of a checkpoint part, or the kind of a document.
	ID, Part string
	Data     []byte
}

// SealedField names the field that a sealed value is stored in.
type SealedField string

// The sealed fields. The comment says which id identifies the value.
const (
	SealedRef   SealedField = "ref"   // run
	SealedInput SealedField = "input" // run
	// run, also for the outcome of a resume that is stored separately
	SealedOutcome    SealedField = "outcome"
	SealedPart       SealedField = "part"    // run, with the name of the part
	SealedData       SealedField = "data"    // interrupt
	SealedAnswer     SealedField = "answer"  // interrupt
	SealedReceipt    SealedField = "receipt" // interrupt, for all of its effects
	SealedDocument   SealedField = "paper"   // document, with its kind as the part
	SealedNamedValue SealedField = "once"    // name
)

// WriteChecker is implemented by stores that can tell whether this process may write.
type WriteChecker interface {
	// CheckWritable returns nil if the process may write, or the reason why not. It writes nothing.
	CheckWritable(ctx context.Context) error
}
