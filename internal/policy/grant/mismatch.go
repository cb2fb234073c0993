package grant

import "fmt"

// MismatchReason is the reason that a grant does not match.
type MismatchReason string

// The reasons, for statistics. The text of a [Mismatch] is for people.
const (
	MismatchRevoked MismatchReason = "revoked"
	MismatchExpired MismatchReason = "expired"
	MismatchUsedUp  MismatchReason = "used_up"
	MismatchVerdict MismatchReason = "verdict" // the rules deny or allow, and do not ask
	MismatchRule    MismatchReason = "rule"    // a rule that asks is new or has changed
	// another account, environment, graph, requester or tool
	MismatchScope MismatchReason = "scope"
	// an argument is new, missing, of another type or outside its constraint
	MismatchArgument MismatchReason = "argument"
	MismatchAmount   MismatchReason = "amount" // the budget would be exceeded
)

// Mismatch explains why a grant does not replace an approval. Its text contains no argument values.
type Mismatch struct {
	Reason MismatchReason
	Text   string
}

func (m *Mismatch) Error() string { return "grant: no match: " + m.Text }

func newMismatch(why MismatchReason, format string, args ...any) *Mismatch {
	return &Mismatch{Reason: why, Text: fmt.Sprintf(format, args...)}
}
