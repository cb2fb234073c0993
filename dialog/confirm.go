package dialog

import (
	"context"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/roundtrip"
)

// Confirm asks the end user to confirm an action, if the policy requires it. The policy gets the
// action and its arguments. If it allows the action, Confirm returns a yes without a question; if
// it denies it, a [*fermata.RejectedError]. Otherwise Confirm is [Ask]: the question names the
// rule, and its reason answers "why?".
//
// A question without a risk has [RiskHigh], so that only an explicit yes confirms. An action that
// can be undone may have [RiskLow].
//
// For rules that depend on the user, the policy sets its requester to [User] of the context that it
// gets.
//
// Confirm does not perform the action. Use fermata.Effect for one that must not happen twice.
func Confirm(ctx context.Context, policy fermata.Policy, action string, args any, q Question) (Answer, error) {
	if policy == nil {
		return Answer{}, fmt.Errorf("%w: %s: the policy is missing", fermata.ErrPolicy, action)
	}
	data, err := roundtrip.Marshal(args)
	if err != nil {
		return Answer{}, fmt.Errorf("dialog: arguments of %s: %w", action, err)
	}
	ruling, err := policy.Decide(ctx, fermata.ActionRequest{Action: action, Args: data})
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %s: %w", fermata.ErrPolicy, action, err)
	}
	switch ruling.Verdict {
	case fermata.Allow:
		return Answer{Yes: true, Method: ByPolicy}, nil
	case fermata.Deny:
		return Answer{}, &fermata.RejectedError{Action: action, Reason: ruling.Reason, By: ruling.Rule}
	case fermata.AskPerson:
	}
	q.Kind, q.Rule = Confirmation, ruling.Rule
	if q.Risk == RiskNone {
		q.Risk = RiskHigh
	}
	if q.Why == "" {
		q.Why = ruling.Reason
	}
	return Ask(ctx, q)
}
