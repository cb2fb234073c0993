package agent

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

var (
	// ErrTooDeep is returned if agents are nested too deeply, for example because they call each
	// other endlessly.
	ErrTooDeep = errors.New("agent: agents are nested too deeply")

	// ErrHistory is returned if a model would not accept an edited history, for example because it
	// contains a result without its call. Nothing was sent; the run can be resumed with another
	// edit.
	ErrHistory = errors.New("agent: edited history is invalid")

	// ErrCancelTimeout is returned if the cancel point was not reached in time and the run was
	// cancelled immediately.
	ErrCancelTimeout = errors.New("agent: cancelled immediately because the cancel point was not reached in time")

	// ErrRunEnded is returned if a run had ended or waited for a person before it could be
	// cancelled.
	ErrRunEnded = errors.New("agent: run ended before it could be cancelled")
)

// MaxTurnsError reports that an agent reached its maximum number of model calls and still requests
// tool calls. The run can be resumed by a program that allows more.
type MaxTurnsError struct {
	Agent string
	Max   int
}

func (e *MaxTurnsError) Error() string {
	return fmt.Sprintf("agent: %s is not done after %d turns", e.Agent, e.Max)
}

// FinishedError reports that the run has finished, and carries its output. errors.Is finds
// [graph.ErrFinished].
type FinishedError struct {
	Run    string
	Output *Output
	// Err is the error of the graph that the agent runs in.
	Err error
}

func (e *FinishedError) Error() string { return fmt.Sprintf("agent: run %s is finished", e.Run) }
func (e *FinishedError) Unwrap() error { return e.Err }

// LimitError reports that the run reached one of its limits and a person decided not to continue.
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

// CancelError reports that the run was cancelled. It can be resumed; if it was cancelled before it
// began, it can be started again.
type CancelError struct {
	Run string
	// Escalated is true if the cancel point was not reached in time.
	Escalated bool
	// Err is the error that the run returned.
	Err error
}

func (e *CancelError) Error() string {
	if e.Escalated {
		return fmt.Sprintf("agent: run %s was cancelled immediately", e.Run)
	}
	return fmt.Sprintf("agent: run %s was cancelled", e.Run)
}

// Is matches [graph.ErrStopped], regardless of how the agents handled the end of their context.
func (e *CancelError) Is(target error) bool { return target == graph.ErrStopped }
func (e *CancelError) Unwrap() error        { return e.Err }

// ProgramChangedError reports that the run waits at addresses that the program no longer has, or
// has answers for them: an agent or a tool was renamed or removed. Nothing was bypassed. Resume
// with a program that has them; the answer is kept.
type ProgramChangedError struct {
	Run     string
	Missing []fermata.Address
}

func (e *ProgramChangedError) Error() string {
	places := make([]string, len(e.Missing))
	for i, place := range e.Missing {
		places[i] = place.String()
	}
	return fmt.Sprintf("agent: run %s waits at addresses that this program does not have: %s", e.Run, strings.Join(places, ", "))
}

// RunError marks the error as an error of the run, not of a tool.
func (e *ProgramChangedError) RunError() {}

// RunError marks the error as an error of the run, not of a tool.
func (e *LimitError) RunError() {}
