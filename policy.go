package fermata

import (
	"bytes"
	"context"
	"encoding/json"
)

// Policy says of an action whether it may be done at once, must not be done, or needs a person. A run without a policy asks
// a person about every action.
//
// Decide may be called from several goroutines. An error refuses the action for now ([ErrPolicy]): a policy that cannot
// decide never lets anything through.
type Policy interface {
	Decide(ctx context.Context, action ActionRequest) (Ruling, error)
}

// ActionRequest is what a policy decides on.
type ActionRequest struct {
	Run     string
	Address Address
	// Place names where in the run it is. It is another in every round of a loop, and the same when what was interrupted is done again.
	Path string
	// Action is the name, Args the arguments as they would be used.
	Action string
	Args   json.RawMessage
	// Digest names exactly this action with exactly these arguments.
	Digest string
	// Held says that another policy does not let it be done at once. If this one allows it, nothing is done for that: a policy that counts what it lets
	// through has nothing to count.
	Blocked bool
}

// Ruling is a policy's word. The zero value asks a person.
type Ruling struct {
	Verdict Verdict `json:"verdict,omitempty"`
	// Rule names the rule that decided, Reason says why in words for people.
	Rule   string `json:"rule,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Policy, if there are versions of it, is the digest of the one that decided.
	PolicyDigest string `json:"policy,omitempty"`
}

// Verdict is what a policy can say. Any other value asks a person, as AskPerson does.
type Verdict string

// The verdicts of a policy.
const (
	AskPerson Verdict = ""
	Allow     Verdict = "allow"
	Deny      Verdict = "deny"
)

// PolicyFunc makes a policy of a function.
type PolicyFunc func(ctx context.Context, action ActionRequest) (Ruling, error)

// Decide calls f.
func (f PolicyFunc) Decide(ctx context.Context, action ActionRequest) (Ruling, error) {
	return f(ctx, action)
}

// AlwaysAsk is a policy that has a person asked about everything.
var AlwaysAsk Policy = alwaysAsk{}

type alwaysAsk struct{}

func (alwaysAsk) Decide(context.Context, ActionRequest) (Ruling, error) { return Ruling{}, nil }

// Strictest makes one policy of several: each is asked, and the word that allows least counts, deny before ask before allow.
// Of two that say the same the first counts, and each is told if one before it has held the action. If one fails, all have failed. Nil policies are passed
// over; without any, a person is asked.
func Strictest(policies ...Policy) Policy { return strictest(1, policies) }

// strictest is Strictest for policies of which a later one counts if it is stricter by so much.
func strictest(by int, policies []Policy) Policy {
	return PolicyFunc(func(ctx context.Context, action ActionRequest) (Ruling, error) {
		var strict Ruling
		first := true
		for _, policy := range policies {
			if policy == nil {
				continue
			}
			seen := action
			//mutate:policy-gets-copy
			seen.Args = bytes.Clone(action.Args)                               // a policy that changes what it looks at must not blind the next
			seen.Blocked = action.Blocked || !first && strict.Verdict != Allow //mutate:held-action-not-counted
			ruling, err := policy.Decide(ctx, seen)
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
