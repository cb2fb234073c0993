package executor

import (
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/policy/grant"
	"github.com/fermata-go/fermata/store"
)

var (
	// ErrInvalid says that a request is wrong in itself. Nothing was changed.
	ErrInvalid = errors.New("executor: invalid request")

	// ErrUnknownGraph says that no provider has this graph.
	ErrUnknownGraph = errors.New("executor: unknown graph")

	// ErrUnknownRun says that this account has no run of this state key.
	ErrUnknownRun = errors.New("executor: unknown state key")

	// ErrInUse says that the state key belongs to a run that began with something else.
	ErrInUse = errors.New("executor: the state key is in use")

	// ErrOver says that the run is not alive any more.
	ErrOver = errors.New("executor: the run is over")

	// ErrNotParked says that the run does not wait for an operator: there is nothing to retry.
	ErrNotParked = errors.New("executor: the run is not parked")

	// ErrReused says that a resume id was used for another decision.
	ErrReused = errors.New("executor: the resume id was used for another decision")

	// ErrPending says that the start or the decision is recorded and being executed; see [PendingError].
	ErrPending = errors.New("executor: under way")

	// ErrClosed says that the executor was stopped.
	ErrClosed = errors.New("executor: stopped")

	// ErrGrows says that an account could not be erased as it went on starting runs.
	ErrGrows = errors.New("executor: the account goes on starting runs: revoke its keys, and erase it again")
	// ErrUnreadable says that a value in the store cannot be opened: its key is missing, or it was changed, or it is gone. What is there is kept as it is.
	ErrUnreadable = errors.New("executor: unreadable")

	// ErrKey says that the box does not open what is in the store: its key is another one.
	ErrKey = errors.New("executor: the key is not the one of this store")
)

// PendingError says that the start or the decision is recorded and being executed. Repeat the request, with the same start or the same resume id, to
// wait for the outcome.
type PendingError struct{ Run, StateKey string }

func (e *PendingError) Error() string { return fmt.Sprintf("%v: %q", ErrPending, e.StateKey) }

// Is reports whether target is ErrPending.
func (e *PendingError) Is(target error) bool { return target == ErrPending }

// RefusedError says why a decision was not taken. Nothing was changed by it.
type RefusedError struct {
	Result    store.Result
	Interrupt string
	// By, At and Verdict say, for one that was decided already, who decided it, when and how.
	By      string
	At      time.Time
	Verdict store.Verdict
	// Err is the error of package desk, if the rules for people refused it, and not the store.
	Err error
}

// Forbidden is the result of a decision that this person may not make; RefusedError.Err says why.
const Forbidden store.Result = "forbidden"

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// refusals are the reasons in the audit log for errors of package desk, and of grants. The first that fits counts; any other is RefusedNotAllowed.
var refusals = []struct {
	err error
	why audit.Refusal
}{
	{desk.ErrAnswered, audit.RefusedAlreadyDecided}, {desk.ErrExpired, audit.RefusedTooLate}, {desk.ErrWithdrawn, audit.RefusedSuperseded},
	{desk.ErrChanged, audit.RefusedDigestMismatch}, {desk.ErrExcluded, audit.RefusedOwnRequest}, {desk.ErrWeakAuth, audit.RefusedWeakAuth},
	{desk.ErrNotAllowed, audit.RefusedVerbNotAllowed}, {desk.ErrDenied, audit.RefusedByPolicy}, {desk.ErrEdit, audit.RefusedBadAnswer},
	{desk.ErrValue, audit.RefusedBadAnswer}, {desk.ErrText, audit.RefusedBadAnswer},
	{desk.ErrClaimed, audit.RefusedNotPossible}, {desk.ErrNotClaimed, audit.RefusedNotPossible}, {desk.ErrNoQuestion, audit.RefusedNotPossible},
	{desk.ErrNoStep, audit.RefusedNotPossible}, {desk.ErrTime, audit.RefusedNotPossible}, {grant.ErrNotRememberable, audit.RefusedByPolicy},
}

// deskError is the error of package desk that has a code: what is kept of an error is its code.
func deskError(code string) error {
	for _, err := range []error{
		desk.ErrNotMember, desk.ErrExcluded, desk.ErrWeakAuth, desk.ErrNotAllowed, desk.ErrNotYours, desk.ErrNotHuman, desk.ErrChanged, desk.ErrDenied, desk.ErrTooMany,
	} {
		if desk.Code(err) == code {
			return err
		}
	}
	return desk.ErrNotAllowed
}

// why is the reason as the audit log has it.
func (e *RefusedError) why() audit.Refusal {
	if e.Err == nil {
		return audit.Refusal(e.Result) // the store's words are the same
	}
	return whyRefused(e.Err)
}

func whyRefused(err error) audit.Refusal {
	for _, r := range refusals {
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
