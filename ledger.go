package fermata

import (
	"context"
	"encoding/json"
)

// Ledger records effects in addition to the run's journal. It is needed if several processes may
// execute one run and the database must ensure that no effect happens without its approval.
// [Effect] uses the ledger that the caller of the run provides, if any.
type Ledger interface {
	// Begin records that an effect is about to happen. If it was begun before, begun is false and
	// the entry describes its state. After any error the effect must not happen now. If it was not
	// begun before and the conditions of its approval do not hold, the error is a
	// [*VoidApprovalError].
	Begin(ctx context.Context, intent Intent) (line LedgerEntry, begun bool, err error)

	// End records how the effect ended. It must succeed for the process that performed the effect,
	// even if another process owns the run by now.
	End(ctx context.Context, intent Intent, line LedgerEntry) error
}

// Intent describes an effect that is about to happen.
type Intent struct {
	// InterruptID is the interrupt that was answered with approve. Attempt counts from 1.
	InterruptID string
	Attempt     int
	// Action is the name of the action. Digest identifies the action with its arguments. Key is the
	// idempotency key at the target.
	Action, Digest, Key string
	// Idempotent reports that the target ignores a second call with the same key.
	Idempotent bool
	// Allowed is set if a policy allowed the action without asking a person. InterruptID then does
	// not name an interrupt.
	Allowed *AllowedAction
	// Conditional is set if the approval has conditions that must hold now. An effect in doubt that
	// is repeated began while they held.
	Conditional *ConditionalAction
}

// AllowedAction is an action that a policy allowed, in the form of an approval request.
type AllowedAction struct {
	Address string
	Request ApprovalRequest
	// By is "policy" followed by the name of the rule. PolicyDigest is as in [Ruling].
	By, PolicyDigest string
}

// LedgerEntry is the state of an effect in a ledger.
type LedgerEntry struct {
	State   LedgerState
	Receipt json.RawMessage
	Error   string
}

// LedgerState is the outcome of an effect, if it is known.
type LedgerState string

// The states of an effect in a ledger.
const (
	EffectBegun     LedgerState = "begun" // in progress, or its outcome is unknown
	EffectSucceeded LedgerState = "succeeded"
	EffectFailed    LedgerState = "failed" // was not performed
)
