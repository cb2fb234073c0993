package fermata

import (
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
	// Action is the name, Args the arguments as they would be used.
	Action string
	Args   json.RawMessage
	// Digest names exactly this action with exactly these arguments.
	Digest string
}

// Ruling is a policy's word. The zero value asks a person.
type Ruling struct {
	Verdict Verdict `json:"verdict,omitempty"`
	// Rule names the rule that decided, Reason says why in words for people.
	Rule   string `json:"rule,omitempty"`
	Reason string `json:"reason,omitempty"`
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
