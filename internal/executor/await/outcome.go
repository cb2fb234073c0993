package await

import (
	"context"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/store"
)

// LastOutcome returns the run's final outcome, or the outcome of its last execution if it is still
// active.
func (w *Waiter) LastOutcome(ctx context.Context, run store.Run) (fermata.Outcome, error) {
	now, err := w.docs.FindRun(ctx, run.Account, run.StateKey)
	if err != nil {
		return nil, err
	}
	if now.ID != run.ID {
		return w.RunOutcome(ctx, run.Account, run.ID)
	}
	if outcome, err := w.CurrentOutcome(now, true); outcome != nil || err != nil {
		return outcome, err
	}
	return w.decodeOutcome(now.Account, now.ID, now.Outcome)
}

// Execution is an execution in this process that a caller may wait for.
type Execution struct {
	Done chan struct{}
	// set when it is done; nil if the execution was not finished, or did not apply all decisions
	Outcome fermata.Outcome
}

// FailedOutcome returns the outcome of a run that failed with a code.
func FailedOutcome(run store.Run, code, message string) fermata.Failed {
	return fermata.Failed{Run: run.ID, Code: code, Message: message}
}
