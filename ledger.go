package fermata

import (
	"context"
	"encoding/json"
)

// Ledger is where effects are begun when a run's own journal is not enough: where several processes may work on one run, and the database
// itself has to see to it that nothing happens without an approval of exactly that. [Effect] uses it beside the journal; a run has one if
// whoever executes it gives it one.
type Ledger interface {
	// Begin writes down that an effect is about to happen. If it was begun before, begun is false and the line says what
	// is known of it. Any error means that the effect must not happen now.
	Begin(ctx context.Context, intent Intent) (line LedgerEntry, begun bool, err error)

	// End writes down how it ended. It has to succeed for whoever did it, also when another process owns the run by now.
	End(ctx context.Context, intent Intent, line LedgerEntry) error
}

// Intent is an effect that is about to happen.
type Intent struct {
	// Interrupt is the id of the question that was answered with an approve, Try counts the attempts from 1.
	InterruptID string
	Attempt     int
	// Digest names the action with its arguments, Key is what the target knows the effect by.
	Digest, Key string
	// Repeatable says that the target ignores a second call with the same key.
	Idempotent bool
	// AllowedAction is set if a policy allowed it and nobody was asked. Then Interrupt is an id that no question has.
	Allowed *AllowedAction
}

// AllowedAction is an action that a policy allowed, as a person would have been asked for it.
type AllowedAction struct {
	Address string
	Request ApprovalRequest
	// By is "policy" with the name of the rule, Policy as in [Ruling].
	By, PolicyDigest string
}

// LedgerEntry is what a ledger knows of an effect.
type LedgerEntry struct {
	State   LedgerState
	Receipt json.RawMessage
	Error   string
}

// LedgerState is how an effect ended, or that nobody knows.
type LedgerState string

// The states of an effect in a ledger.
const (
	EffectBegun     LedgerState = "begun" // and perhaps done
	EffectSucceeded LedgerState = "succeeded"
	EffectFailed    LedgerState = "failed" // and perhaps done all the same
)
