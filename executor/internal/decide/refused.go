package decide

import (
	"encoding/json"
	"errors"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor/internal/auditrec"
)

// refusedVerb is the verb of a decision that was refused; "" if nobody can tell. Of one that came too late the question is not read any more, so that goes by
// the answer: every question about an action has the same.
func refusedVerb(request DecideRequest, refused *RefusedError) audit.Verb {
	if by, ok := errors.AsType[*desk.RefusedError](refused.Err); ok {
		return auditrec.RefusedVerbs[by.Command]
	}
	var said fermata.Decision
	if json.Unmarshal(request.Targets[refused.Interrupt].Value, &said) != nil {
		return ""
	}
	switch {
	case said.Verb == fermata.VerbReject:
		return audit.VerbReject
	case said.Verb == fermata.VerbApprove && said.Args != nil:
		return audit.VerbApproveWithEdits
	case said.Verb == fermata.VerbApprove:
		return audit.VerbApprove
	}
	return ""
}

// asRefusedEdit reports whether somebody changed what they may not change. Other answers that do not fit are mistakes, and are not in the log.
func asRefusedEdit(err error) (*fermata.AnswerError, bool) {
	bad, ok := errors.AsType[*fermata.AnswerError](err)
	return bad, ok && errors.Is(bad.Err, desk.ErrInvalidEdit)
}
