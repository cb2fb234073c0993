package store

import (
	"context"
	"time"
)

// Store is everything that an executor needs to keep.
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

// Maintenance is the life of what is kept, after it was written.
type Maintenance interface {
	// Finished returns runs of all accounts that were over before a time, the longest first, without what is sealed in them but the ref. Those that were
	// over before from, if that is not zero, are left out: whoever could not forget them goes on behind them.
	FinishedRuns(ctx context.Context, from, before time.Time, limit int) ([]Run, error)

	// Forget deletes a run that is over, and everything that is known of it: interrupts, resumes, effects, events, papers, the
	// checkpoint; but not what the audit log says of it. It returns ErrRunActive, and deletes nothing, if the run is not over. To forget an unknown one is no error,
	// and writes nothing: so of several who do, one writes what is beside.
	DeleteRun(ctx context.Context, account, run string, beside Writes) error

	// History returns everything that is known of a run, but for the checkpoint, or ErrNotFound.
	History(ctx context.Context, account, run string) (History, error)

	// Size says how much there is.
	Size(ctx context.Context) (Size, error)

	// Vacuum gives the room of what was deleted back, as far as the database can while others use it.
	Vacuum(ctx context.Context) error

	// Reseal hands sealed values of all accounts to a function, some at a time, and keeps what that returns in their place; nil keeps the
	// value as it is. A value that was changed meanwhile stays as it is, too: whoever changed it sealed it anew. It returns where to
	// go on, or "" at the end. Nothing but the bytes of the values changes.
	Reencrypt(ctx context.Context, after string, limit int, reseal func(SealedValue) ([]byte, error)) (next string, err error)

	// Once keeps a value under a name, unless there is one already, and returns the one that is kept.
	PutIfAbsent(ctx context.Context, name string, value []byte) ([]byte, error)
}

// History is everything that is known of a run.
type History struct {
	Run        Run
	Interrupts []Interrupt
	Resumes    []Resume
	Effects    []Effect
	Events     []Event
	Documents  []Document // by kind and id
}

// Resume is a resume id and what it was answered with.
type Resume struct {
	Actor, ID, BodyDigest string
	Receipt               DecisionReceipt
}

// Size is how much there is.
type Size struct {
	// Bytes is what the database takes, Free how much of that is unused. Free is 0 where the database cannot say.
	Bytes, Free int64
	// Rows counts the rows of each table, perhaps as an estimate.
	Rows map[string]int64
}

// SealedValue is a sealed value and where it belongs.
type SealedValue struct {
	Account string
	Field   SealedField
	// ID is that of the run, of the interrupt, of the paper, or the name given to Once; Part that of a part of a checkpoint, or a paper's kind.
	ID, Part string
	Data     []byte
}

// SealedField is what a sealed value is.
type SealedField string

// What is sealed. The comment says whose id stands with it.
const (
	SealedRef        SealedField = "ref"     // the run's
	SealedInput      SealedField = "input"   // the run's
	SealedOutcome    SealedField = "outcome" // the run's, also for the outcome of a resume, where that is kept apart
	SealedPart       SealedField = "part"    // the run's, with the name of the part
	SealedData       SealedField = "data"    // the interrupt's
	SealedAnswer     SealedField = "answer"  // the interrupt's
	SealedReceipt    SealedField = "receipt" // the interrupt's, of all effects
	SealedDocument   SealedField = "paper"   // the paper's, with its kind as the part
	SealedNamedValue SealedField = "once"    // the name
)

// WriteChecker is a store that knows whether this process may write to it. Others find out when they do.
type WriteChecker interface {
	// WriteChecker returns nil if it may, or says why not. It writes nothing.
	CheckWritable(ctx context.Context) error
}

// DigestCheckpoints are checkpoints that can be read without their bytes, for whoever has the bytes from elsewhere.
type DigestCheckpoints interface {
	Checkpoints
	// CheckpointDigests returns the newest checkpoint with the SHA-256 of each part, or ErrNotFound.
	Digests(ctx context.Context, key Key) (CheckpointDigests, error)
	// Parts returns some parts of a version, or ErrStale if that is not the newest any more.
	LoadParts(ctx context.Context, key Key, version int64, names []string) (map[string][]byte, error)
}

// CheckpointDigests is a checkpoint without its bytes.
type CheckpointDigests struct {
	Version int64
	Digests map[string][32]byte
}
