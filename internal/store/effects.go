package store

import "time"

// NewEffect is an effect that is about to be called.
type NewEffect struct {
	// Interrupt is the approved interrupt, Attempt counts its calls from 1, ActionDigest is the
	// digest of the action.
	Interrupt    string
	Attempt      int
	ActionDigest string
	// IdempotencyKey is passed to the target of the effect.
	IdempotencyKey string
	// Ruling is set if a policy allows the effect without approval. Interrupt is then the id of an
	// interrupt that was never raised.
	Ruling *PolicyRuling
	// Writes are applied if the effect is begun now. In an [Effect] they are empty, and Ruling is
	// nil.
	Writes Writes
}

// PolicyRuling is the decision of a policy that an effect needs no approval.
type PolicyRuling struct {
	Address, Kind string
	Data          []byte // the question that would have been asked, sealed by the caller
	// By names the policy and its rule.
	By string
}

// EffectState is the state of an effect.
type EffectState string

// The states of an effect.
const (
	EffectStarted   EffectState = "started" // possibly done; the outcome is unknown
	EffectSucceeded EffectState = "succeeded"
	EffectFailed    EffectState = "failed"
)

// Effect is an entry of the effect ledger.
type Effect struct {
	Account, Run string
	NewEffect
	Fence   int64
	State   EffectState
	Receipt []byte // sealed by the caller
	Error   string
	Started time.Time
	Ended   time.Time
}

// EffectEnd is the end of an effect.
type EffectEnd struct {
	Account   string
	Interrupt string
	Attempt   int
	// State is EffectSucceeded or EffectFailed.
	State   EffectState
	Receipt []byte
	Error   string
	// Writes are applied if the effect had not ended before.
	Writes Writes
}
