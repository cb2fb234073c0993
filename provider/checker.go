package provider

import (
	"context"
	"encoding/json"
)

// Checker is an optional interface of providers that can check whether this program can resume a
// run.
type Checker interface {
	// CheckResumable returns nil, or why this program cannot resume the run: a graph or node is
	// missing, an interrupt has an unknown kind, or the state cannot be decoded. It runs and
	// changes nothing. It cannot detect that an existing node would now ask something else.
	CheckResumable(ctx context.Context, run Run) error
}

// BatchAnswerChecker is an optional interface of providers that must load a run to validate
// answers. It loads the run once for many answers.
type BatchAnswerChecker interface {
	// AnswerChecks returns a function that validates answers to a run like [Provider.CheckAnswer].
	AnswerChecks(ctx context.Context, run Run) (AnswerCheck, error)
}

// AnswerCheck is [Provider.CheckAnswer] for one run.
type AnswerCheck func(interrupt string, answer json.RawMessage) (json.RawMessage, error)

// InputChecker is an optional interface of providers that can validate the input of a run before
// the run exists.
type InputChecker interface {
	// CheckInput returns nil, or an [*InputError] if a run of the graph would fail because of its
	// input. After any other error it is unknown. It changes nothing.
	CheckInput(ctx context.Context, account, graph string, input json.RawMessage) error
}

// InputError says what is wrong with the input of a run. It has no data of the input.
type InputError struct {
	// Code is CodeInvalidInput or CodeDataTooLarge.
	Code string
	// Field is the invalid member, for example "callback.url"; "" is the whole input.
	Field, Problem string
}

// The codes of an [InputError].
const (
	CodeInvalidInput = "invalid_input"
	CodeDataTooLarge = "data_too_large"
)

func (e *InputError) Error() string {
	if e.Field == "" {
		return "the input: " + e.Problem
	}
	return e.Field + ": " + e.Problem
}
