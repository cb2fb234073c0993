package conversation

import (
	"context"
	"errors"

	"github.com/fermata-go/fermata/internal/store"
)

// Documents is the part of the store that conversations need. *encrypted.Store implements it, so
// that conversations are encrypted at rest.
type Documents interface {
	Document(ctx context.Context, account string, kind store.DocumentKind, id string) (store.Document, error)
	Documents(ctx context.Context, account string, kind store.DocumentKind, filter store.DocumentFilter) ([]store.Document, error)
	DueDocuments(ctx context.Context, kind store.DocumentKind, limit int) ([]store.Document, error)
	CommitWrites(ctx context.Context, account string, writes store.Writes) error
	// Body returns the decrypted body of a document.
	Body(doc store.Document) ([]byte, error)
}

// The kinds of documents. They are emptied with their account (executor.EraseAccount).
const (
	ConversationDocument store.DocumentKind = "conversation"
	EntityDocument       store.DocumentKind = "conversation-entity" // id: hash of the user/entity
	FactsDocument        store.DocumentKind = "conversation-facts"  // id: hash of the user/entity
	MemoryDocument       store.DocumentKind = "conversation-memory" // id: hash of the user
	ListDocument         store.DocumentKind = "conversation-list"   // id: hash of the user
	PartDocument         store.DocumentKind = "conversation-part"   // id: conversation/number; "~" and a number if the id is used again
	ReportDocument       store.DocumentKind = "conversation-report" // id: day/shard
)

// Runs is the port to the runs of a conversation. All methods may be repeated: a start with the
// same key and a resume with the same id count once. Package internal/dialog/runs implements it
// with an executor.
type Runs interface {
	// Start starts a run. It returns when the run waits, has ended, or takes long. It returns
	// ErrRejected if a repetition cannot succeed; the user is told that the request failed.
	Start(ctx context.Context, account string, start Start) error
	// Resume answers an interrupt. It returns ErrGone if the run does not wait for it any more.
	Resume(ctx context.Context, account string, resume Resume) error
	// State returns the state of a run that was started.
	State(ctx context.Context, account, run string) (RunState, error)
}

// Resume is an answer to deliver.
type Resume struct {
	Run, Interrupt, ID, User string
	Via                      string // the channel, for audit records; "" for the usual one
	Answer                   Answer
	// NoWait returns at once, without waiting for the run.
	NoWait bool
}

// RunState is the state of a run.
type RunState struct {
	// Executing means that the run is not ended and does not wait.
	Executing bool
	Ended     bool
	// Output is the text for the user; Failed means that the run has failed.
	Output string
	Failed bool
	// Held means that the run waits for an approver.
	Held bool
	// Open are the questions that the run waits for.
	Open []OpenQuestion
	// Answer is the answer of the person that a question was handed over to; nil for other runs.
	Answer *Answer
}

// OpenQuestion is a question that a run waits for.
type OpenQuestion struct {
	Interrupt string
	Question  Question
}

var (
	// ErrGone is returned by [Runs] if a run does not wait for the answer any more.
	ErrGone = errors.New("dialog: the run does not wait for this answer")
	// ErrRejected is returned by [Runs] if a run can never start: its input is too large, its graph
	// is unknown, or another run has its state key.
	ErrRejected = errors.New("dialog: the run cannot be started")
)
