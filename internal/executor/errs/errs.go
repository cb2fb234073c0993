// Package errs has the errors and limits that the parts of the executor share.
package errs

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/internal/store/encrypted"
	"github.com/fermata-go/fermata/internal/strictjson"
)

var (
	// ErrInvalid says that a request is invalid. It changed nothing.
	ErrInvalid = errors.New("executor: invalid request")

	// ErrGraphNotFound says that no provider has this graph.
	ErrGraphNotFound = errors.New("executor: unknown graph")

	// ErrRunNotFound says that the account has no run with this state key.
	ErrRunNotFound = errors.New("executor: unknown state key")

	// ErrStateKeyInUse says that the state key belongs to a run that began with something else.
	ErrStateKeyInUse = errors.New("executor: the state key is in use")

	// ErrRunEnded says that the run has ended.
	ErrRunEnded = errors.New("executor: the run has ended")

	// ErrNotRetryable says that the run is neither parked nor failed, or that its failure is final:
	// a retry could not change it.
	ErrNotRetryable = errors.New("executor: the run cannot be retried")

	// ErrResumeIDReused says that the resume id was used for another decision.
	ErrResumeIDReused = errors.New("executor: the resume id was used for another decision")

	// ErrReceiptExists says that the run has another receipt.
	ErrReceiptExists = errors.New("executor: the run has another receipt")

	// ErrPending says that the start or the decision is recorded and being executed; see
	// [PendingError].
	ErrPending = errors.New("executor: still running")

	// ErrClosed says that the executor was stopped.
	ErrClosed = errors.New("executor: stopped")

	// ErrAccountActive says that an account could not be erased because it goes on starting runs.
	ErrAccountActive = errors.New("executor: the account keeps starting runs: revoke its keys and erase it again")
	// ErrUnreadable says that a stored value cannot be decrypted: its key is missing, or it was
	// changed or deleted. The stored bytes are kept.
	ErrUnreadable = encrypted.ErrUnreadable

	// ErrWrongKey says that the sealer does not have the key of the store.
	ErrWrongKey = encrypted.ErrWrongKey
)

// PendingError says that the start or the decision is recorded and being executed. Repeat the
// request, with the same start or the same resume id, to wait for the outcome.
type PendingError struct {
	Run, StateKey string
	// EffectiveAt is set if the decision waits for the end of its undo window.
	EffectiveAt time.Time
}

func (e *PendingError) Error() string { return fmt.Sprintf("%v: %q", ErrPending, e.StateKey) }

// Is reports whether target is ErrPending.
func (e *PendingError) Is(target error) bool { return target == ErrPending }

// UnnamedInterruptError says that an answer to a decision on an action does not name its interrupt:
// a person who looked at one action could approve the next one. Interrupt is the open one.
type UnnamedInterruptError struct{ Interrupt, Kind string }

func (e *UnnamedInterruptError) Error() string {
	return fmt.Sprintf("%v: an answer of kind %s must name its interrupt; %s is open", ErrInvalid, e.Kind, e.Interrupt)
}

// Is reports whether target is ErrInvalid.
func (e *UnnamedInterruptError) Is(target error) bool { return target == ErrInvalid }

// ErrIsDecision says that an act is a decision, which needs a resume id.
var ErrIsDecision = errors.New("executor: a decision needs a resume id")

// ErrAnswerSchemaChanged says that a run waits for an answer with another schema than this program
// uses: an answer to the request as it is shown would be rejected.
var ErrAnswerSchemaChanged = errors.New("executor: the answer schema has changed in this program")

// ErrNoPolicy says that there is no policy.
var ErrNoPolicy = errors.New("executor: no policy is loaded")

// Sizes at the border, in bytes.
const (
	MaxInput = 1 << 20 // of the JSON that a run may begin with
	MaxName  = 512     // of a state key, a resume id, an actor
)

// ValidateJSON returns ErrInvalid for data that is not JSON, or has more than limit bytes.
func ValidateJSON(what string, data json.RawMessage, limit int) error {
	if len(data) > limit {
		return fmt.Errorf("%w: %s has %d bytes; %d are allowed", ErrInvalid, what, len(data), limit)
	}
	if err := strictjson.CheckValue(data); err != nil { //mutate:answer-strict-json
		return fmt.Errorf("%w: %s: %w", ErrInvalid, what, err)
	}
	return nil
}
