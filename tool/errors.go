package tool

import (
	"errors"
	"fmt"

	"github.com/fermata-go/fermata"
)

// Error is a failure that the model should know of and deal with, as "no such file". The run goes on.
type Error struct{ Message string }

// Errorf makes an [Error].
func Errorf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

func (e *Error) Error() string { return e.Message }

// ReportErrors makes every failure of the tool one that the model is told: for tools whose errors it can do more about than
// whoever operates the run. Waiting for a person and the end of the context are none.
func ReportErrors(t *Tool) *Tool {
	call := t.call
	return t.with(func(w *Tool) { w.call = reportErrors(call) })
}

// argsError says that a model gave arguments which the tool does not take.
type argsError struct {
	tool string
	err  error
}

func (e *argsError) Error() string { return fmt.Sprintf("tool: arguments of %s: %v", e.tool, e.err) }
func (e *argsError) Unwrap() error { return e.err }

// ProgramChangedError says that a person was asked about a call, and that the program no longer asks, or no longer takes what the person saw: the
// call is not made, whatever the answer was. Resume with a program that does; the answer is kept.
type ProgramChangedError struct{ Tool string }

func (e *ProgramChangedError) Error() string {
	return fmt.Sprintf("tool: a person was asked about this call of %s, and the program no longer asks, or takes other arguments: resume with one as it was", e.Tool)
}

// OfTheRun keeps it from being told to the model.
func (e *ProgramChangedError) OfTheRun() {}

// declinedError says that a person did not want to answer.
type declinedError struct{ by, reason string }

func (e *declinedError) Error() string { return "tool: declined" + reasonText(e.by, e.reason) }

// toResult makes a result of what the model has to know, and leaves every other error as it is.
func toResult(name string, err error) (Result, error) {
	var text string
	switch e := cause(err).(type) {
	case *Error:
		text = e.Message
	case *argsError:
		text = fmt.Sprintf("%s was not called: its arguments do not fit: %v. Correct them and call again.", name, e.err)
	case *fermata.RejectedError:
		text = fmt.Sprintf("%s was refused%s. It was not done. Do not ask for the same again; take another way, or say that it cannot be done.", e.Action, reasonText(e.By, e.Reason))
	case *fermata.ExpiredError:
		text = fmt.Sprintf("Nobody decided on %s in time%s. It was not done, and it was not refused either.", e.Action, reasonText("", e.Reason))
	case *declinedError:
		text = fmt.Sprintf("%s was not called: the person did not answer%s.", name, reasonText(e.by, e.reason))
	default:
		return Result{}, err
	}
	return Result{Text: text, Failed: true}, nil
}

// cause follows a chain of wrapped errors to its end or to one that can be explained. It does not look into joined errors:
// beside what can be explained there may be what must not be lost.
func cause(err error) error {
	for {
		if isExplainable(err) {
			return err
		}
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

func isExplainable(err error) bool {
	switch err.(type) {
	case *Error, *argsError, *fermata.RejectedError, *fermata.ExpiredError, *declinedError:
		return true
	}
	return false
}

// isAlwaysReported reports whether the model is told of an error even without [ReportErrors], and in better words.
func isAlwaysReported(err error) bool { return isExplainable(cause(err)) }

func reasonText(by, reason string) string {
	text := ""
	if by != "" {
		text = " by " + by
	}
	if reason != "" {
		text += ": " + reason
	}
	return text
}
