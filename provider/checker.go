package provider

import (
	"context"
	"encoding/json"
)

// Checker is a provider that can say beforehand whether this program could go on with a run. It is optional.
type Checker interface {
	// Resumable returns nil, or why this program could not go on with the run: a graph or a place in it that is gone, a question of a
	// kind that nobody knows, a state that cannot be read. It runs and changes nothing. That a node which is there would ask something
	// else now cannot be known before it runs.
	CheckResumable(ctx context.Context, run Run) error
}

// BatchAnswerChecker is a provider that has to read a run before it can check an answer, and reads it once for many. It is optional.
type BatchAnswerChecker interface {
	// Checks returns what does for each answer to a run what [Provider.CheckAnswer] does.
	AnswerChecks(ctx context.Context, run Run) (AnswerCheck, error)
}

// AnswerCheck is [Provider.CheckAnswer] for one run.
type AnswerCheck func(interrupt string, answer json.RawMessage) (json.RawMessage, error)
