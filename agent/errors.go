package agent

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

var (
	// ErrTooDeep says that agents called each other deeper than any sensible arrangement does.
	ErrTooDeep = errors.New("agent: too many agents below each other")

	// ErrHistory says that an edited history is none that a model accepts, as one with the result of a call that is not in
	// it. Nothing was sent; the run can be resumed with another edit.
	ErrHistory = errors.New("agent: the edited history cannot be used")

	// ErrCancelTimeout says that the point at which a run was to be cancelled did not come in time: it was cancelled at once.
	ErrCancelTimeout = errors.New("agent: cancelled at once, because the point to cancel at did not come in time")

	// ErrRunEnded says that a run was over, or waited for a person, before it could be cancelled.
	ErrRunEnded = errors.New("agent: the run came to rest before it could be cancelled")
)

// MaxTurnsError says that an agent called its model as often as it may and still wants to call tools. The run can be resumed by
// a program that allows more.
type MaxTurnsError struct {
	Agent string
	Max   int
}

func (e *MaxTurnsError) Error() string {
	return fmt.Sprintf("agent: %s is not done after %d turns", e.Agent, e.Max)
}

// LimitError says that the run reached one of its limits and a person said that it should not go on.
type LimitError struct {
	Reached    LimitReached
	By, Reason string
}

func (e *LimitError) Error() string {
	text := fmt.Sprintf("agent: stopped at the limit of %g %s", e.Reached.Max, e.Reached.Limit)
	if e.By != "" {
		text += " by " + e.By
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// CancelError says that the run was cancelled. It can be resumed; or, if it was cancelled before it began, started again.
type CancelError struct {
	Run string
	// Escalated is true if the point to cancel at did not come in time.
	Escalated bool
	// Err is what the run reported.
	Err error
}

func (e *CancelError) Error() string {
	if e.Escalated {
		return fmt.Sprintf("agent: run %s was cancelled at once", e.Run)
	}
	return fmt.Sprintf("agent: run %s was cancelled", e.Run)
}

// Is makes it a [graph.ErrStopped], whatever the agents made of the end of their context.
func (e *CancelError) Is(target error) bool { return target == graph.ErrStopped }
func (e *CancelError) Unwrap() error        { return e.Err }

// ProgramChangedError says that the run waits at places which the program no longer has, or has an answer for them: an agent or a tool
// was renamed or removed. Nothing was passed by. Resume with a program that has them; the answer is kept.
type ProgramChangedError struct {
	Run     string
	Missing []fermata.Address
}

func (e *ProgramChangedError) Error() string {
	places := make([]string, len(e.Missing))
	for i, place := range e.Missing {
		places[i] = place.String()
	}
	return fmt.Sprintf("agent: run %s waits where the program no longer asks: %s", e.Run, strings.Join(places, ", "))
}

// OfTheRun keeps it from being taken for a tool's error.
func (e *ProgramChangedError) OfTheRun() {}

// OfTheRun keeps it from being taken for a tool's error.
func (e *LimitError) OfTheRun() {}
