package executor

import (
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/policy/grant"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/encrypted"
)

var (
	// ErrInvalid says that a request is wrong in itself. Nothing was changed.
	ErrInvalid = errors.New("executor: invalid request")

	// ErrGraphNotFound says that no provider has this graph.
	ErrGraphNotFound = errors.New("executor: unknown graph")

	// ErrRunNotFound says that this account has no run of this state key.
	ErrRunNotFound = errors.New("executor: unknown state key")

	// ErrStateKeyInUse says that the state key belongs to a run that began with something else.
	ErrStateKeyInUse = errors.New("executor: the state key is in use")

	// ErrRunEnded says that the run is not alive any more.
	ErrRunEnded = errors.New("executor: the run is over")

	// ErrNotParked says that the run does not wait for an operator: there is nothing to retry.
	ErrNotParked = errors.New("executor: the run is not parked")

	// ErrResumeIDReused says that a resume id was used for another decision.
	ErrResumeIDReused = errors.New("executor: the resume id was used for another decision")

	// ErrPending says that the start or the decision is recorded and being executed; see [PendingError].
	ErrPending = errors.New("executor: under way")

	// ErrClosed says that the executor was stopped.
	ErrClosed = errors.New("executor: stopped")

	// ErrAccountActive says that an account could not be erased as it went on starting runs.
	ErrAccountActive = errors.New("executor: the account goes on starting runs: revoke its keys, and erase it again")
	// ErrUnreadable says that a value in the store cannot be opened: its key is missing, or it was changed, or it is gone. What is there is kept as it is.
	ErrUnreadable = encrypted.ErrUnreadable

	// ErrWrongKey says that the box does not open what is in the store: its key is another one.
	ErrWrongKey = encrypted.ErrWrongKey
)

// PendingError says that the start or the decision is recorded and being executed. Repeat the request, with the same start or the same resume id, to
// wait for the outcome.
type PendingError struct{ Run, StateKey string }

func (e *PendingError) Error() string { return fmt.Sprintf("%v: %q", ErrPending, e.StateKey) }

// Is reports whether target is ErrPending.
func (e *PendingError) Is(target error) bool { return target == ErrPending }

// RefusedError says why a decision was not taken. Nothing was changed by it.
type RefusedError struct {
	Result    store.DecisionResult
	Interrupt string
	// By, At and Verdict say, for one that was decided already, who decided it, when and how.
	By      string
	At      time.Time
	Verdict store.Verdict
	// Err is the error of package desk, if the rules for people refused it, and not the store.
	Err error
}

// Forbidden is the result of a decision that this person may not make; RefusedError.Err says why.
const Forbidden store.DecisionResult = "forbidden"

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// refusalReasons are the reasons in the audit log for errors of package desk, and of grants. The first that fits counts; any other is RefusedNotAllowed.
var refusalReasons = []struct {
	err error
	why audit.Refusal
}{
	{desk.ErrDecided, audit.RefusedAlreadyDecided}, {desk.ErrExpired, audit.RefusedExpired}, {desk.ErrWithdrawn, audit.RefusedSuperseded},
	{desk.ErrChanged, audit.RefusedDigestMismatch}, {desk.ErrExcluded, audit.RefusedOwnRequest}, {desk.ErrWeakAuth, audit.RefusedWeakAuth},
	{desk.ErrNotAllowed, audit.RefusedVerbNotAllowed}, {desk.ErrDenied, audit.RefusedByPolicy}, {desk.ErrInvalidEdit, audit.RefusedBadAnswer},
	{desk.ErrInvalidValue, audit.RefusedBadAnswer}, {desk.ErrInvalidText, audit.RefusedBadAnswer},
	{desk.ErrClaimed, audit.RefusedNotPossible}, {desk.ErrNotClaimed, audit.RefusedNotPossible}, {desk.ErrNoClarification, audit.RefusedNotPossible},
	{desk.ErrNoStep, audit.RefusedNotPossible}, {desk.ErrInvalidTime, audit.RefusedNotPossible}, {grant.ErrNotRememberable, audit.RefusedByPolicy},
}

// deskErrorByCode is the error of package desk that has a code: what is kept of an error is its code.
func deskErrorByCode(code string) error {
	for _, err := range []error{
		desk.ErrNotMember, desk.ErrExcluded, desk.ErrWeakAuth, desk.ErrNotAllowed, desk.ErrNotPermitted, desk.ErrNotHuman, desk.ErrChanged, desk.ErrDenied, desk.ErrTooMany,
	} {
		if desk.Code(err) == code {
			return err
		}
	}
	return desk.ErrNotAllowed
}

// why is the reason as the audit log has it.
func (e *RefusedError) auditReason() audit.Refusal {
	if e.Err == nil {
		return audit.Refusal(e.Result) // the store's words are the same
	}
	return auditRefusal(e.Err)
}

func auditRefusal(err error) audit.Refusal {
	for _, r := range refusalReasons {
		if errors.Is(err, r.err) {
			return r.why
		}
	}
	return audit.RefusedNotAllowed
}

func (e *RefusedError) Error() string {
	text := fmt.Sprintf("executor: decision on %s refused: %s", e.Interrupt, e.Result)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.By != "" {
		text += fmt.Sprintf(": %s by %s at %s", e.Verdict, e.By, e.At.UTC().Format(time.RFC3339))
	}
	return text
}
