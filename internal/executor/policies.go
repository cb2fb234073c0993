package executor

import (
	"context"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/govern"
	"github.com/fermata-go/fermata/internal/executor/requests"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/replay"
)

// Grant is a remembered approval and its usage.
type Grant = govern.Grant

// GrantRequest says how an approval is remembered. The policy may allow less, or nothing.
type GrantRequest = requests.GrantRequest

// HypotheticalAction is an action to try the policy on.
type HypotheticalAction = govern.HypotheticalAction

// PolicyText is the text of a policy.
type PolicyText = govern.PolicyText

// ActCreateGrant names the creation of a grant in the audit log. It is not an act of package desk.
const ActCreateGrant = requests.ActCreateGrant

// MaxReplay is how many rulings [Policies.Replay] reads at most.
const MaxReplay = govern.MaxReplay

// Policies are the methods of an [Executor] for its policy and grants.
type Policies struct {
	governor *govern.Governor
	requests *requests.Service
}

// CurrentPolicy returns the policy in force, or nil.
func (p Policies) CurrentPolicy() *policy.Set { return p.governor.CurrentPolicy() }

// PolicyByDigest returns the text of a policy: the one in force, or one that was applied to an
// action of the account. It returns store.ErrNotFound if there is none.
func (p Policies) PolicyByDigest(ctx context.Context, account, digest string) (PolicyText, error) {
	return p.governor.PolicyByDigest(ctx, account, digest)
}

// ExplainAction returns what the policy would decide on an action, and why. It changes nothing.
func (p Policies) ExplainAction(ctx context.Context, s HypotheticalAction) (policy.Decision, error) {
	return p.governor.ExplainAction(ctx, s)
}

// Replay applies another policy to the rulings of an account since a time, and returns the
// differences. It reads earlier rulings as far back as the limits of the candidate look. Rulings of
// deleted runs are not available.
func (p Policies) Replay(ctx context.Context, account string, candidate *policy.Set, since time.Time) (replay.HistoryReport, error) {
	return p.governor.Replay(ctx, account, candidate, since)
}

// CreateGrant creates a grant from an approved request: the same action with the same arguments, at
// the same address and for the same requester, is allowed for a while without asking again. It
// returns ErrInvalid if the policy does not allow the grant or the actor did not approve the
// request, and desk.ErrIdempotencyKeyReused if the idempotency key was used for something else.
func (p Policies) CreateGrant(ctx context.Context, account, request string, r GrantRequest) (Grant, error) {
	return p.requests.CreateGrant(ctx, account, request, r)
}

// ListGrants returns the grants of an account, including those that have ended.
func (p Policies) ListGrants(ctx context.Context, account string) ([]Grant, error) {
	return p.governor.ListGrants(ctx, account)
}

// RevokeGrant ends a grant: the next time, people are asked again. It returns store.ErrNotFound if
// there is none.
func (p Policies) RevokeGrant(ctx context.Context, account, id string, by desk.From) error {
	return p.governor.RevokeGrant(ctx, account, id, by)
}
