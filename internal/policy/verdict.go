package policy

import "github.com/fermata-go/fermata"

// Verdict is the verdict of a rule, or of all rules together, on an action.
type Verdict string

// The verdicts, mildest first.
const (
	Allow Verdict = "allow"
	Ask   Verdict = "ask"
	Deny  Verdict = "deny"
)

var verdicts = []string{string(Allow), string(Ask), string(Deny)}

// strictness orders verdicts. An unknown verdict is as strict as deny, so that a mistake never
// allows an action.
func (v Verdict) strictness() int {
	switch v {
	case Allow:
		return 0
	case Ask:
		return 1
	}
	return 2
}

// toRoot converts the verdict to the root package's type.
func (v Verdict) toRoot() fermata.Verdict {
	switch v {
	case Allow:
		return fermata.Allow
	case Ask:
		return fermata.AskPerson
	}
	return fermata.Deny
}
