package executor

import (
	"github.com/fermata-go/fermata/internal/executor/errs"
)

// ErrInvalid says that a request is invalid. It changed nothing.
var ErrInvalid = errs.ErrInvalid

// ErrGraphNotFound says that no provider has this graph.
var ErrGraphNotFound = errs.ErrGraphNotFound

// ErrRunNotFound says that the account has no run with this state key.
var ErrRunNotFound = errs.ErrRunNotFound

// ErrStateKeyInUse says that the state key belongs to a run that began with something else.
var ErrStateKeyInUse = errs.ErrStateKeyInUse

// ErrRunEnded says that the run has ended.
var ErrRunEnded = errs.ErrRunEnded

// ErrNotRetryable says that the run is neither parked nor failed, or that its failure is final: a
// retry could not change it.
var ErrNotRetryable = errs.ErrNotRetryable

// ErrResumeIDReused says that the resume id was used for another decision.
var ErrResumeIDReused = errs.ErrResumeIDReused

// ErrReceiptExists says that the run has another receipt.
var ErrReceiptExists = errs.ErrReceiptExists

// ErrPending says that the start or the decision is recorded and being executed; see
// [PendingError].
var ErrPending = errs.ErrPending

// ErrClosed says that the executor was stopped.
var ErrClosed = errs.ErrClosed

// ErrAccountActive says that an account could not be erased because it goes on starting runs.
var ErrAccountActive = errs.ErrAccountActive

// ErrUnreadable says that a stored value cannot be decrypted: its key is missing, or it was changed
// or deleted. The stored bytes are kept.
var ErrUnreadable = errs.ErrUnreadable

// ErrWrongKey says that the sealer does not have the key of the store.
var ErrWrongKey = errs.ErrWrongKey

// ErrIsDecision says that an act is a decision, which needs a resume id.
var ErrIsDecision = errs.ErrIsDecision

// ErrAnswerSchemaChanged says that a run waits for an answer with another schema than this program
// uses: an answer to the request as it is shown would be rejected.
var ErrAnswerSchemaChanged = errs.ErrAnswerSchemaChanged

// ErrNoPolicy says that there is no policy.
var ErrNoPolicy = errs.ErrNoPolicy

// PendingError says that the start or the decision is recorded and being executed. Repeat the
// request, with the same start or the same resume id, to wait for the outcome.
type PendingError = errs.PendingError

// UnnamedInterruptError says that an answer to a decision on an action does not name its interrupt.
type UnnamedInterruptError = errs.UnnamedInterruptError

// Sizes of requests, in bytes.
const (
	MaxInput = errs.MaxInput // of the JSON that a run may begin with
	MaxName  = errs.MaxName  // of a state key, a resume id, an actor
)
