package fermata

import (
	"errors"
	"fmt"

	"github.com/fermata-go/fermata/internal/activation"
)

var (
	// ErrNoRun says that a call which belongs into a run (Ask, Do, Approve, Effect, Interrupt …) was made with a context
	// that is not part of one. Pass on the context that the node was given.
	ErrNoRun = errors.New("fermata: the context is not part of a run")

	// ErrEnded says that code of a node still ran after the node had returned. A node has to wait for its goroutines.
	ErrEnded = activation.ErrEnded

	// ErrSwallowed says that a node asked, got the interrupt as an error, and did not return it. Nothing the node did since
	// counts; it must return the error (wrapped or joined with others, if it likes).
	ErrSwallowed = activation.ErrSwallowed

	// ErrNotApproved says that an effect was tried with an approval that the runtime did not give for it: a zero value, one
	// of another run or visit, or one that has been used already. Nothing was done.
	ErrNotApproved = errors.New("fermata: no approval for this effect")

	// ErrPolicy wraps the error of a policy that could not decide. Nothing was done; the node may be run again.
	ErrPolicy = errors.New("fermata: the policy failed")

	// ErrProgramChanged says that what a program has kept for a node, as the result of a [Do] or the receipt of an [Effect], is not of the type that this
	// program has there: a member of it seems to be renamed, or means something else. The run can go on in a program that has the type.
	ErrProgramChanged error = activation.ControlError("fermata: kept by another version of the program")
)

// DuplicateError says that one name or address was used twice in one visit of a node, so that answers and results could
// not be told apart. Nothing was asked or done for the second one. Give each its own name.
type DuplicateError = activation.DuplicateError

// AnswerError says that an answer does not fit its question. Nothing ran, and the question is still open.
type AnswerError struct {
	// ID is the interrupt, Kind the kind of its question ("" if it has none).
	ID, Kind string
	// Err says what is wrong with the answer.
	Err error
}

func (e *AnswerError) Error() string {
	what := "answer"
	if e.Kind != "" {
		what += " of kind " + e.Kind
	}
	if e.ID != "" {
		what += " to " + e.ID
	}
	return fmt.Sprintf("fermata: %s: %v", what, e.Err)
}

func (e *AnswerError) Unwrap() error { return e.Err }

// EncodeError says that a value cannot be kept as JSON. What names the value. Change its type, or mark the field with
// `json:"-"` if it need not outlive the process.
type EncodeError struct {
	Value string
	Err   error
}

func (e *EncodeError) Error() string {
	return fmt.Sprintf("fermata: cannot keep %s: %v", e.Value, e.Err)
}
func (e *EncodeError) Unwrap() error { return e.Err }

// RejectedError says that a person or a policy refused an action. It is final: the action must not be done.
type RejectedError struct {
	Action string
	// Reason is what the person or the rule gave, By who it was.
	Reason, By string
	// Codes say why in words for programs, if the person gave any.
	Codes []string
}

func (e *RejectedError) Error() string {
	return refusalText("rejected", e.Action, e.By, e.Reason)
}

// ExpiredError says that nobody decided in time. It is neither a yes nor a no: nothing may be done, and asking again is
// allowed.
type ExpiredError struct {
	Action, Reason string
}

func (e *ExpiredError) Error() string { return refusalText("expired", e.Action, "", e.Reason) }

func refusalText(what, action, by, reason string) string {
	text := fmt.Sprintf("fermata: %s %s", action, what)
	if by != "" {
		text += " by " + by
	}
	if reason != "" {
		text += ": " + reason
	}
	return text
}
