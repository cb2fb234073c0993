package provider

import (
	"context"
	"encoding/json"
	"time"
)

// Withdrawer is an optional interface of providers that can notify the requester that an interrupt
// was withdrawn because its run was ended.
type Withdrawer interface {
	// NotifyWithdrawn sends the notification. The run has ended and does not change. It may be
	// called again with the same withdrawal. Its errors are like those of Execute.
	NotifyWithdrawn(ctx context.Context, run Run, withdrawal Withdrawal) error
}

// Withdrawal is an interrupt that was open when its run was ended.
type Withdrawal struct {
	// InterruptID identifies the interrupt. Input is the input of the run.
	InterruptID string
	Input       json.RawMessage
	// Reason is "cancelled", or "superseded" if another run took the state key.
	Reason string
	At     time.Time
	// Attempt counts the notifications from 0.
	Attempt int
}
