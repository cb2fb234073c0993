package provider

import (
	"context"
	"encoding/json"
	"time"
)

// Withdrawer is a provider that can tell whoever asked that nobody will answer: somebody has ended the run. It is optional.
type Withdrawer interface {
	// Withdrawn tells it. The run is over, and nothing of it changes. It may be called again with the same. Its error is as that of Execute.
	NotifyWithdrawn(ctx context.Context, run Run, gone Withdrawal) error
}

// Withdrawal is a question that was open when its run was ended.
type Withdrawal struct {
	// Interrupt is the id of the question. Input is what the run began with.
	InterruptID string
	Input       json.RawMessage
	// Why is "cancelled", or "superseded" if another run took the state key.
	Reason string
	At     time.Time
	// Attempt counts, from 0, how often it was told.
	Attempt int
}
