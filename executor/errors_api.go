package executor

import (
	"github.com/fermata-go/fermata/executor/internal/errs"
)

// ErrInvalid says that a request is wrong in itself. Nothing was changed.
var ErrInvalid = errs.ErrInvalid

// ErrGraphNotFound says that no provider has this graph.
var ErrGraphNotFound = errs.ErrGraphNotFound

// ErrRunNotFound says that this account has no run of this state key.
var ErrRunNotFound = errs.ErrRunNotFound

// ErrStateKeyInUse says that the state key belongs to a run that began with something else.
var ErrStateKeyInUse = errs.ErrStateKeyInUse

// ErrRunEnded says that the run is not alive any more.
var ErrRunEnded = errs.ErrRunEnded

// ErrNotParked says that the run does not wait for an operator: there is nothing to retry.
var ErrNotParked = errs.ErrNotParked

// ErrResumeIDReused says that a resume id was used for another decision.
var ErrResumeIDReused = errs.ErrResumeIDReused

// ErrPending says that the start or the decision is recorded and being executed; see [PendingError].
var ErrPending = errs.ErrPending

// ErrClosed says that the executor was stopped.
var ErrClosed = errs.ErrClosed

// ErrAccountActive says that an account could not be erased as it went on starting runs.
var ErrAccountActive = errs.ErrAccountActive

// ErrUnreadable says that a value in the store cannot be opened: its key is missing, or it was changed, or it is gone. What is there is kept as it is.
var ErrUnreadable = errs.ErrUnreadable

// ErrWrongKey says that the box does not open what is in the store: its key is another one.
var ErrWrongKey = errs.ErrWrongKey

// ErrIsDecision says that an act is a decision, which has to come with a resume id: see [Executor.Run].
var ErrIsDecision = errs.ErrIsDecision

// ErrAnswerSchemaChanged says that a run waits for an answer of another form than this program would take: whoever answers as it was shown would be refused.
var ErrAnswerSchemaChanged = errs.ErrAnswerSchemaChanged

// ErrNoPolicy says that this installation has no policy.
var ErrNoPolicy = errs.ErrNoPolicy

// PendingError says that the start or the decision is recorded and being executed. Repeat the request, with the same start or the same resume id, to
// wait for the outcome.
type PendingError = errs.PendingError

// Sizes of requests, in bytes.
const (
	MaxInput = errs.MaxInput // of the JSON that a run may begin with
	MaxName  = errs.MaxName  // of a state key, a resume id, an actor
)
