package fermata

import (
	"bytes"
	"context"
	"encoding/json"
)

// Policy decides whether an action is allowed, denied, or needs a person's approval. A run without
// a policy asks a person about every action.
//
// Decide may be called concurrently. An error blocks the action for now ([ErrPolicy]): a failing
// policy never allows anything.
type Policy interface {
	Decide(ctx context.Context, action ActionRequest) (Ruling, error)
}

// ActionRequest describes an action for a policy.
type ActionRequest struct {
	Run     string
	Address Address
	// Path identifies the call within the run. It differs in every iteration of a loop and is the
	// same when interrupted work is repeated.
	Path string
	// Action is the name; Args are the arguments that would be used.
	Action string
	Args   json.RawMessage
	// Digest identifies this action with these arguments.
	Digest string
	// Blocked reports that another policy already denies the action or requires approval. An Allow
	// from this policy will not execute the action, so rate-limiting policies must not count it.
	Blocked bool
}

// Ruling is the result of a policy. The zero value asks a person.
type Ruling struct {
	Verdict Verdict `json:"verdict,omitempty"`
	// Rule is the name of the rule that decided; Reason is its explanation for people.
	Rule   string `json:"rule,omitempty"`
	Reason string `json:"reason,omitempty"`
	// PolicyDigest identifies the version of the policy that decided, if it is versioned.
	PolicyDigest string `json:"policy,omitempty"`
	// Editable reports that an approver may edit some of the arguments, and that the caller checks
	// which. It counts for actions with EditableByPolicy.
	Editable bool `json:"editable,omitempty"`
}

// Verdict is the result type of a policy. Unknown values ask a person, like AskPerson.
type Verdict string

// The verdicts of a policy.
const (
	AskPerson Verdict = ""
	Allow     Verdict = "allow"
	Deny      Verdict = "deny"
)

// PolicyFunc adapts a function to a [Policy].
type PolicyFunc func(ctx context.Context, action ActionRequest) (Ruling, error)

// Decide calls f.
func (f PolicyFunc) Decide(ctx context.Context, action ActionRequest) (Ruling, error) {
	return f(ctx, action)
}

// AlwaysAsk is a policy that requires a person's approval for every action.
var AlwaysAsk Policy = alwaysAsk{}

type alwaysAsk struct{}

func (alwaysAsk) Decide(context.Context, ActionRequest) (Ruling, error) { return Ruling{}, nil }

// Strictest combines policies: all are evaluated, and the strictest ruling counts, deny before ask
// before allow. Of equally strict rulings the first counts. Each policy sees in Blocked whether an
// earlier one blocks the action. If one fails, the combination fails. Nil policies are skipped;
// without any policy, a person is asked.
func Strictest(policies ...Policy) Policy { return strictest(1, policies) }

// strictest is Strictest where a later ruling counts only if it is stricter by at least this much.
func strictest(by int, policies []Policy) Policy {
	return PolicyFunc(func(ctx context.Context, action ActionRequest) (Ruling, error) {
		var strict Ruling
		first := true
		for _, policy := range policies {
			if policy == nil {
				continue
			}
			request := action
			//mutate:policy-gets-copy
			// a policy that modifies its arguments must not affect the next one
			request.Args = bytes.Clone(action.Args)
			request.Blocked = action.Blocked || !first && strict.Verdict != Allow //mutate:held-action-not-counted
			ruling, err := policy.Decide(ctx, request)
			if err != nil {
				return Ruling{}, err
			}
			if first || ruling.Verdict.strictness() >= strict.Verdict.strictness()+by {
				strict, first = ruling, false
			}
		}
		return strict, nil
	})
}

func (v Verdict) strictness() int {
	switch v {
	case Allow:
		return 0
	case Deny:
		return 2 //mutate:deny-is-strictest
	}
	return 1
}
