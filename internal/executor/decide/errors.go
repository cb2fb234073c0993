package decide

import (
	"fmt"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/store"
)

// RefusedError says why a decision was not taken. Nothing was changed by it.
type RefusedError struct {
	Result    store.DecisionResult
	Interrupt string
	// By, At and Verdict say, for one that was decided already, who decided it, when and how.
	By      string
	At      time.Time
	Verdict store.Verdict
	// Err is the error of package desk, if the rules for people refused it, and not the store.
	Err error
}

// Forbidden is the result of a decision that this person may not make; RefusedError.Err says why.
const Forbidden store.DecisionResult = "forbidden"

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// deskErrorByCode is the error of package desk that has a code: what is kept of an error is its
// code.
func deskErrorByCode(code string) error {
	for _, err := range []error{
		desk.ErrNotMember, desk.ErrExcluded, desk.ErrNotAllowed, desk.ErrNotPermitted, desk.ErrNotHuman, desk.ErrChanged, desk.ErrDenied, desk.ErrTooMany,
		desk.ErrForgedIdentity,
	} {
		if desk.Code(err) == code {
			return err
		}
	}
	return desk.ErrNotAllowed
}

// auditReason is the reason as the audit log has it.
func (e *RefusedError) auditReason() audit.Refusal {
	if e.Err == nil {
		return audit.Refusal(e.Result) // the store's words are the same
	}
	return auditrec.AuditRefusal(e.Err)
}

func (e *RefusedError) Error() string {
	text := fmt.Sprintf("executor: decision on %s refused: %s", e.Interrupt, e.Result)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.By != "" {
		text += fmt.Sprintf(": %s by %s at %s", e.Verdict, e.By, e.At.UTC().Format(time.RFC3339))
	}
	return text
}
