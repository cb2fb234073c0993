package fermata

import (
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/limits"
)

var (
	// ErrNoRun is returned by calls that belong to a run (Ask, Do, Approve, Effect, Interrupt …) if
	// ctx is not part of one. Pass the context that the node received.
	ErrNoRun = errors.New("fermata: context is not part of a run")

	// ErrEnded is returned to code of a node that runs after the node has returned. A node must
	// wait for its goroutines.
	ErrEnded = activation.ErrEnded

	// ErrSwallowed reports that a node received an interrupt as an error and did not return it. The
	// work of the node since then is discarded. The node must return the error, possibly wrapped or
	// joined.
	ErrSwallowed = activation.ErrSwallowed

	// ErrNotApproved is returned by [Effect] if the approval was not issued for it: a zero value,
	// one of another run or activation, or one that was already used. Nothing was done.
	ErrNotApproved = errors.New("fermata: effect is not approved")

	// ErrAnswerRefused is the error of an answer that the asking code refused with [RefuseAnswer].
	// Its text is the reason.
	ErrAnswerRefused = activation.ErrRefused

	// ErrPolicy wraps the error of a policy that could not decide. Nothing was done; the node may
	// be run again.
	ErrPolicy = errors.New("fermata: policy failed")

	// ErrProgramChanged is returned if a stored value of a node, for example the result of a [Do]
	// or the receipt of an [Effect], does not match the type in this program: a field was renamed
	// or changed its meaning. The run can continue in a program that has the type.
	ErrProgramChanged error = activation.ControlError("fermata: value was stored by an incompatible version of the program")
)

// DuplicateError reports that a name or address was used twice in one activation of a node, so that
// answers and results would be ambiguous. The second call had no effect. Use a unique name for
// each.
type DuplicateError = activation.DuplicateError

// AnswerError reports that an answer does not match its interrupt. Nothing ran, and the interrupt
// is still open.
type AnswerError struct {
	// ID is the interrupt id. Kind is the kind of the interrupt; "" if it has none.
	ID, Kind string
	// Err is the reason.
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

// EncodeError reports that JSON cannot represent a value. Value describes it. Change its type, or
// mark the field with `json:"-"` if it need not be stored.
type EncodeError struct {
	Value string
	Err   error
}

func (e *EncodeError) Error() string {
	return fmt.Sprintf("fermata: cannot encode %s as JSON: %v", e.Value, e.Err)
}
func (e *EncodeError) Unwrap() error { return e.Err }

// DataSizeError reports that what an interrupt shows is larger than 256 KiB. The node or the
// hold has failed and no request was created. Show a summary, or keep a reference to the data.
type DataSizeError struct {
	Value string // what is too large
	Size  int    // in bytes of JSON
}

func (e *DataSizeError) Error() string {
	return fmt.Sprintf("fermata: %s has %d bytes; at most %d are allowed: show a summary or a reference", e.Value, e.Size, limits.MaxDataBytes)
}

// RejectedError reports that a person or a policy rejected an action. It is final: the action must
// not be performed.
type RejectedError struct {
	Action string
	// Reason is the reason that the person or the rule gave; By is who rejected.
	Reason, By string
	// Codes are the machine-readable reasons of the person, if any.
	Codes []string
	// At is the time of the decision, if a person or the clock made it; Auth is how the person was
	// authenticated.
	At   time.Time
	Auth string
}

func (e *RejectedError) Error() string {
	return refusalText("rejected", e.Action, e.By, e.Reason)
}

// ReturnedError reports that a person returned an action, or a question, for redesign. It is
// neither an approval nor a rejection: nothing may be done, and the program may propose something
// else.
type ReturnedError struct {
	// Action is the name of the action; for a question it is the kind.
	Action string
	// Reason says what to change. By is the person.
	Reason, By string
	// At is the time of the decision, Auth how the person was authenticated.
	At   time.Time
	Auth string
}

func (e *ReturnedError) Error() string {
	return refusalText("returned for redesign", e.Action, e.By, e.Reason)
}

// ExpiredError reports that no decision was made before the deadline. It is neither an approval nor
// a rejection: nothing may be done, and the program may ask again.
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
