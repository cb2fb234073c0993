package grant

import "fmt"

// Why is the sort of reason for which a grant does not match.
type Why string

// The reasons. They can be counted; the text of a [Mismatch] is for people.
const (
	WhyRevoked  Why = "revoked"
	WhyExpired  Why = "expired"
	WhyUsedUp   Why = "used_up"
	WhyVerdict  Why = "verdict"  // the rules do not ask: they deny, or allow anyway
	WhyRule     Why = "rule"     // a rule asks that is new or has changed
	WhyScope    Why = "scope"    // another account, environment, graph, requester or tool
	WhyArgument Why = "argument" // an argument is new, missing, of another type or outside its constraint
	WhyAmount   Why = "amount"   // the sum would be too high
)

// Mismatch says why a grant does not stand for a person's yes. Its text holds no value of the arguments.
type Mismatch struct {
	Why  Why
	Text string
}

func (m *Mismatch) Error() string { return "grant: no match: " + m.Text }

func mismatch(why Why, format string, args ...any) *Mismatch {
	return &Mismatch{Why: why, Text: fmt.Sprintf(format, args...)}
}
