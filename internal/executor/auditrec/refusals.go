package auditrec

import (
	"errors"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/policy/grant"
)

// refusalReasons are the reasons in the audit log for errors of package desk, and of grants. The
// first that fits counts; any other is RefusedNotAllowed.
var refusalReasons = []struct {
	err error
	why audit.Refusal
}{
	{desk.ErrDecided, audit.RefusedAlreadyDecided}, {desk.ErrExpired, audit.RefusedExpired}, {desk.ErrWithdrawn, audit.RefusedSuperseded},
	{desk.ErrChanged, audit.RefusedDigestMismatch}, {desk.ErrExcluded, audit.RefusedOwnRequest}, {desk.ErrWeakAuth, audit.RefusedWeakAuth},
	{desk.ErrNotAllowed, audit.RefusedVerbNotAllowed}, {desk.ErrDenied, audit.RefusedByPolicy}, {desk.ErrInvalidEdit, audit.RefusedBadAnswer},
	{desk.ErrInvalidConditions, audit.RefusedConditions}, {desk.ErrNotConfirmed, audit.RefusedBadAnswer},
	{desk.ErrForgedIdentity, audit.RefusedIdentity}, {desk.ErrInvalidValue, audit.RefusedBadAnswer}, {desk.ErrInvalidText, audit.RefusedBadAnswer},
	{desk.ErrClaimed, audit.RefusedNotPossible}, {desk.ErrNotClaimed, audit.RefusedNotPossible}, {desk.ErrNoClarification, audit.RefusedNotPossible},
	{desk.ErrNoStep, audit.RefusedNotPossible}, {desk.ErrDecisionPending, audit.RefusedNotPossible}, {desk.ErrNothingToUndo, audit.RefusedNotPossible}, {desk.ErrInvalidTime, audit.RefusedNotPossible}, {grant.ErrNotRememberable, audit.RefusedByPolicy},
}

// AuditRefusal returns the reason for an error of package desk, or of a grant, as the audit log has
// it.
func AuditRefusal(err error) audit.Refusal {
	for _, r := range refusalReasons {
		if errors.Is(err, r.err) {
			return r.why
		}
	}
	return audit.RefusedNotAllowed
}
