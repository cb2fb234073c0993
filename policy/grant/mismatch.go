package grant

import "fmt"

// MismatchReason is the sort of reason for which a grant does not match.
type MismatchReason string

// The reasons. They can be counted; the text of a [Mismatch] is for people.
const (
	MismatchRevoked  MismatchReason = "revoked"
	MismatchExpired  MismatchReason = "expired"
	MismatchUsedUp   MismatchReason = "used_up"
	MismatchVerdict  MismatchReason = "verdict"  // the rules do not ask: they deny, or allow anyway
	MismatchRule     MismatchReason = "rule"     // a rule asks that is new or has changed
	MismatchScope    MismatchReason = "scope"    // another account, environment, graph, requester or tool
	MismatchArgument MismatchReason = "argument" // an argument is new, missing, of another type or outside its constraint
	MismatchAmount   MismatchReason = "amount"   // the sum would be too high
)

// Mismatch says why a grant does not stand for a person's yes. Its text holds no value of the arguments.
type Mismatch struct {
	Reason MismatchReason
	Text   string
}

func (m *Mismatch) Error() string { return "grant: no match: " + m.Text }

func newMismatch(why MismatchReason, format string, args ...any) *Mismatch {
	return &Mismatch{Reason: why, Text: fmt.Sprintf(format, args...)}
}
