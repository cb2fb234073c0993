package decide

import (
	"encoding/json"
	"errors"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
)

// refusedVerb returns the verb of a refused decision, or "" if it is unknown. The request of a late
// decision is not read any more, so the verb comes from the answer.
func refusedVerb(request Request, refused *RefusedError) audit.Verb {
	if by, ok := errors.AsType[*desk.RefusedError](refused.Err); ok {
		if by.Command == desk.CommandEscalate { // as a decision it returns the request
			return audit.VerbReturn
		}
		return auditrec.RefusedVerbs[by.Command]
	}
	var decision fermata.Decision
	if json.Unmarshal(request.Targets[refused.Interrupt].Value, &decision) != nil {
		return ""
	}
	switch {
	case decision.Verb == fermata.VerbReject:
		return audit.VerbReject
	case decision.Verb == fermata.VerbReturn:
		return audit.VerbReturn
	case decision.Verb == fermata.VerbApprove && decision.Args != nil:
		return audit.VerbApproveWithEdits
	case decision.Verb == fermata.VerbApprove:
		return audit.VerbApprove
	}
	return ""
}

// asRefusedEdit reports whether an actor changed arguments that must not be changed, or set
// conditions that do not hold: these say something about arguments that may be masked. Other
// invalid answers are mistakes and are not in the audit log.
func asRefusedEdit(err error) (*fermata.AnswerError, bool) {
	bad, ok := errors.AsType[*fermata.AnswerError](err)
	return bad, ok && (errors.Is(bad.Err, desk.ErrInvalidEdit) || errors.Is(bad.Err, desk.ErrInvalidConditions))
}
