package executor

import (
	"errors"
	"fmt"
	"time"

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

	// ErrNotParked says that nobody has to look at this run.
	ErrNotParked = errors.New("executor: the run is not parked")

	// ErrReused says that a resume id was used for another decision.
	ErrReused = errors.New("executor: the resume id was used for another decision")

	// ErrPending says that what was asked for is recorded and under way; see [PendingError].
	ErrPending = errors.New("executor: under way")

	// ErrClosed says that the executor was stopped.
	ErrClosed = errors.New("executor: stopped")

	// ErrKey says that the box does not open what is in the store: its key is another one.
	ErrKey = errors.New("executor: the key is not the one of this store")
)

// PendingError says that what was asked for is recorded and under way. Ask again, with the same start or the same resume id.
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
}

func (e *RefusedError) Error() string {
	text := fmt.Sprintf("executor: decision on %s refused: %s", e.Interrupt, e.Result)
	if e.By != "" {
		text += fmt.Sprintf(": %s by %s at %s", e.Verdict, e.By, e.At.UTC().Format(time.RFC3339))
	}
	return text
}
