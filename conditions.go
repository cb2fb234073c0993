package fermata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/activation"
)

// Conditions limit an approval. They are checked when the effect begins. If they do not hold then,
// the approval is void: nothing runs, and the approver is asked again.
type Conditions struct {
	// Until is when the approval ends.
	Until time.Time `json:"until,omitzero"`
	// OnlyIf is a CEL expression with the variables of policy rules, for example
	// "args.amount <= 100". Only an executor can check it.
	OnlyIf string `json:"onlyIf,omitempty"`
}

// maxOnlyIf is the maximum length of [Conditions.OnlyIf] in one vote, in bytes.
const maxOnlyIf = 1000

// IsZero reports whether there are no conditions.
func (c Conditions) IsZero() bool { return c.Until.IsZero() && c.OnlyIf == "" }

// String describes the conditions for people, for example "until 2026-11-18T12:00:00Z, only if
// args.amount <= 100".
func (c Conditions) String() string {
	var parts []string
	if !c.Until.IsZero() {
		parts = append(parts, "until "+c.Until.UTC().Format(time.RFC3339))
	}
	if c.OnlyIf != "" {
		parts = append(parts, "only if "+c.OnlyIf)
	}
	return strings.Join(parts, ", ")
}

// And returns conditions that hold if both hold.
func (c Conditions) And(other Conditions) Conditions {
	if c.Until.IsZero() || !other.Until.IsZero() && other.Until.Before(c.Until) {
		c.Until = other.Until
	}
	switch {
	case c.OnlyIf == "" || c.OnlyIf == other.OnlyIf:
		c.OnlyIf = other.OnlyIf
	case other.OnlyIf != "":
		c.OnlyIf = inParentheses(c.OnlyIf) + " && " + inParentheses(other.OnlyIf)
	}
	return c
}

// inParentheses returns the expression in parentheses. It may end with a comment.
func inParentheses(expression string) string {
	if strings.Contains(expression, "//") {
		expression += "\n"
	}
	return "(" + expression + ")"
}

// check checks the conditions of a vote, without the expression itself.
func (c Conditions) check(verb Verb) error {
	switch {
	case c.IsZero():
		return nil
	case verb != VerbApprove:
		return fmt.Errorf("conditions are allowed only with %q, not with %q", VerbApprove, verb)
	case len(c.OnlyIf) > maxOnlyIf:
		return fmt.Errorf("onlyIf has %d bytes; %d are allowed", len(c.OnlyIf), maxOnlyIf)
	}
	return nil
}

// ConditionalAction is an approved action whose conditions must hold when it begins.
type ConditionalAction struct {
	Conditions
	Address string
	Args    json.RawMessage
}

// VoidApprovalError is returned by [Ledger.Begin] if the conditions of an approval do not hold.
// Nothing was begun.
type VoidApprovalError struct {
	// Reason says which condition does not hold, without argument values.
	Reason string
}

func (e *VoidApprovalError) Error() string { return "fermata: the approval is void: " + e.Reason }

var errOnlyIf = errors.New("onlyIf can be checked only by a server")

// checkUntil checks the conditions of an approval in a run without a ledger.
func (e *effect[T, R]) checkUntil(entry *effectEntry) error {
	until := e.approved.conditions.Until
	if entry.Repeats || until.IsZero() || e.place.Host.Time().Before(until) {
		return nil
	}
	return &VoidApprovalError{Reason: "it was valid until " + until.UTC().Format(time.RFC3339)}
}

// askAgain records that nothing was done because the approval is void, and asks the approver again.
func (e *effect[T, R]) askAgain(ctx context.Context, entry *effectEntry, void *VoidApprovalError) error {
	entry.State, entry.Error = effectNotCalled, void.Error()
	if err := e.saveEntry(ctx, *entry); err != nil {
		return err
	}
	return e.approved.askAgain(ctx, void.Reason)
}

// recordVoid records that an approval is void. changed is the place where the approver is asked
// again.
func recordVoid(ctx context.Context, changed *activation.Scope, reason string) error {
	data, err := json.Marshal(reason)
	if err == nil {
		err = changed.Record(ctx, entryVoid, data, activation.SaveNow)
	}
	return err
}

// voidReason returns why the approval before this place is void, or "" if it is not.
func voidReason(changed *activation.Scope) (reason string, err error) {
	data, ok := changed.Recorded(entryVoid)
	if ok {
		err = json.Unmarshal(data, &reason)
	}
	return reason, err
}
