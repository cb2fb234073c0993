package auditrec

import (
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
)

// RefusedVerbs are the acts that the audit log has a verb for.
var RefusedVerbs = map[desk.CommandName]audit.Verb{
	desk.CommandApprove: audit.VerbApprove, desk.CommandEdit: audit.VerbApproveWithEdits, desk.CommandReject: audit.VerbReject, desk.CommandRespond: audit.VerbRespond,
	desk.CommandAskClarification: audit.VerbAskClarification, desk.CommandAbandon: audit.VerbAbandon,
}

// RefusedLine is the audit line of an act that was refused.
func RefusedLine(act desk.CommandName, why audit.Refusal) audit.RequestRefused {
	line := audit.RequestRefused{Verb: RefusedVerbs[act], Why: why}
	if line.Verb == "" {
		line.Act = string(act)
	}
	return line
}
