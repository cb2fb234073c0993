package simtest

import (
	"context"
	"errors"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/policy"
)

// GateResult is how a gate ended.
type GateResult string

// The results of a gate.
const (
	Executed GateResult = "done"
	Rejected GateResult = "rejected"
	Expired  GateResult = "expired"
)

// Gate requests approval of an action and executes it. A rejection or an expiry is a result and not
// an error: it ends the gate but not the run, so that a later gate could be passed by mistake.
func Gate[A any](ctx context.Context, action fermata.Action[A], call func(ctx context.Context, args A, key string) (receipt string, err error), options ...fermata.EffectOption) (result GateResult, receipt string, err error) {
	yes, err := fermata.Approve(ctx, action)
	if _, rejected := errors.AsType[*fermata.RejectedError](err); rejected {
		return Rejected, "", nil
	}
	if _, expired := errors.AsType[*fermata.ExpiredError](err); expired {
		return Expired, "", nil
	}
	if err != nil {
		return "", "", err
	}
	receipt, err = fermata.Effect(ctx, yes, call, options...)
	return Executed, receipt, err
}

// FixedPolicy is a policy that never changes.
type FixedPolicy struct{ *policy.Set }

// Current returns the policy.
func (p FixedPolicy) Current() *policy.Set { return p.Set }
