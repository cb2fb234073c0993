package tool

import (
	"errors"
	"fmt"

	"github.com/fermata-go/fermata"
)

// Error is a failure that is reported to the model, for example "no such file". The run continues.
type Error struct{ Message string }

// Errorf returns a formatted [Error].
func Errorf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

func (e *Error) Error() string { return e.Message }

// ReportErrors reports all failures of the tool to the model: for tools whose errors the model can
// handle better than the operator. Interrupts, the end of the context and [fermata.Retry] are not
// failures. An error with an unknown outcome is reported, too, so do not use it for a tool with
// approval unless it says whether the call happened.
func ReportErrors(t *Tool) *Tool {
	checkWrapped(t, "ReportErrors")
	call := t.call
	return t.with(func(w *Tool) { w.call = reportErrors(call) })
}

// argsError reports that a model passed arguments that the tool does not accept.
type argsError struct {
	tool string
	err  error
}

func (e *argsError) Error() string { return fmt.Sprintf("tool: arguments of %s: %v", e.tool, e.err) }
func (e *argsError) Unwrap() error { return e.err }

// ProgramChangedError reports that a person was asked about a call, and that the program no longer
// asks, or no longer accepts the arguments that the person saw. The call is not made, regardless of
// the answer. Resume with a program that does; the answer is kept.
type ProgramChangedError struct{ Tool string }

func (e *ProgramChangedError) Error() string {
	return fmt.Sprintf("tool: a person was asked about this call of %s, but this program does not ask or accepts other arguments: resume with the earlier program", e.Tool)
}

// RunError marks the error as an error of the run: it is not reported to the model.
func (e *ProgramChangedError) RunError() {}

// declinedError reports that a person declined to answer.
type declinedError struct{ by, reason string }

func (e *declinedError) Error() string { return "tool: declined" + reasonText(e.by, e.reason) }

// ofTool names the tool in the error of a question about it that was returned or rejected.
func ofTool(name string, err error) error {
	switch e := err.(type) {
	case *fermata.ReturnedError:
		e.Action = name
	case *fermata.RejectedError:
		e.Action = name
	}
	return err
}

// toResult converts an error that the model should know about to a result. Other errors are
// returned unchanged.
func toResult(name string, err error) (Result, error) {
	var text string
	switch e := cause(err).(type) {
	case *Error:
		text = e.Message
	case *argsError:
		text = fmt.Sprintf("%s was not called: its arguments are invalid: %v. Correct them and call again.", name, e.err)
	case *fermata.RejectedError:
		text = fmt.Sprintf("%s was refused%s. It was not done. Do not ask for the same again; take another way, or say that it cannot be done.", e.Action, reasonText(e.By, e.Reason))
	case *fermata.ReturnedError:
		text = fmt.Sprintf("%s was returned for redesign%s. It was not done, and it was not refused either: propose something else that follows the reason.", e.Action, reasonText(e.By, e.Reason))
	case *fermata.ExpiredError:
		text = fmt.Sprintf("%s was not decided in time%s. It was not done, and it was not refused either.", e.Action, reasonText("", e.Reason))
	case *declinedError:
		text = fmt.Sprintf("%s was not called: the person did not answer%s.", name, reasonText(e.by, e.reason))
	default:
		return Result{}, err
	}
	return Result{Text: text, Failed: true}, nil
}

// cause follows a chain of wrapped errors to its end or to an explainable error. It does not
// inspect joined errors: they may contain another error that must not be lost.
func cause(err error) error {
	for {
		if _, again := err.(*fermata.RetryError); again || isExplainable(err) {
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
	case *Error, *argsError, *fermata.RejectedError, *fermata.ReturnedError, *fermata.ExpiredError, *declinedError:
		return true
	}
	return false
}

// isAlwaysReported reports whether an error is reported to the model even without [ReportErrors],
// with a more specific text.
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
