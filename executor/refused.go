package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/policy/grant"
	"github.com/fermata-go/fermata/store"
)

// Remembers is what somebody does who wants a grant. It is no act of package desk.
const Remembers desk.Name = "remember"

// refusedVerbs are the acts that the audit log has a verb for.
var refusedVerbs = map[desk.Name]audit.Verb{
	desk.NameApprove: audit.Approve, desk.NameEdit: audit.ApproveWithEdits, desk.NameReject: audit.Reject, desk.NameRespond: audit.Respond,
	desk.NameAskBack: audit.AskBack, desk.NameEscape: audit.Escape,
}

// refusedAct is the audit line of an act that was refused.
func refusedAct(act desk.Name, why audit.Refusal) audit.Refused {
	line := audit.Refused{Verb: refusedVerbs[act], Why: why}
	if line.Verb == "" {
		line.Act = string(act)
	}
	return line
}

// wouldSay is the verb of a decision that was refused; "" if nobody can tell. Of one that came too late the question is not read any more, so that goes by
// the answer: every question about an action has the same.
func wouldSay(request Request, refused *RefusedError) audit.Verb {
	if by, ok := errors.AsType[*desk.RefusedError](refused.Err); ok {
		return refusedVerbs[by.Act]
	}
	var said fermata.Decision
	if json.Unmarshal(request.Targets[refused.Interrupt].Value, &said) != nil {
		return ""
	}
	switch {
	case said.Verb == fermata.VerbReject:
		return audit.Reject
	case said.Verb == fermata.VerbApprove && said.Args != nil:
		return audit.ApproveWithEdits
	case said.Verb == fermata.VerbApprove:
		return audit.Approve
	}
	return ""
}

// isRefusal reports whether an act failed because somebody was not let do it. What only has the wrong form, and what could not be found out, was not refused.
func isRefusal(err error) bool {
	if errors.Is(err, grant.ErrNotRememberable) {
		return true
	}
	switch desk.Code(err) {
	case "", desk.Code(desk.ErrText), desk.Code(desk.ErrValue), desk.Code(desk.ErrInvalid), desk.Code(desk.ErrReused), desk.Code(desk.ErrDirectory), desk.Code(desk.ErrPolicy):
		return false
	}
	return true
}

// noteAct writes into the audit log that somebody was not let do something with a request. It returns err, or why it could not be written: then nobody
// knows what became of the act, and it is repeated.
func (e *Executor) noteAct(ctx context.Context, asked store.Asked, name desk.Name, from desk.From, err error) error {
	if from.Actor.Kind == desk.System || !isRefusal(err) {
		return err
	}
	return cmp.Or(e.writeRefused(ctx, asked, name, from, whyRefused(err)), err)
}

func (e *Executor) writeRefused(ctx context.Context, asked store.Asked, name desk.Name, from desk.From, why audit.Refusal) error {
	c := &filing{run: whoAsked(asked)}
	if err := c.line(personOf(from), c.placeOf(asked.ID), refusedAct(name, why)); err != nil {
		return err
	}
	return e.store.Amend(ctx, asked.Account, c.Beside)
}

// NoteForbidden writes into the audit log that somebody wanted to do something with a request for which they do not have the role. There is no line if the account
// has no such request.
func (e *Executor) NoteForbidden(ctx context.Context, account, id string, name desk.Name, from desk.From) error {
	asked, err := e.store.Question(ctx, account, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return e.writeRefused(ctx, asked, name, from, audit.RefusedNoRole)
}

// refusedEdit reports whether somebody changed what they may not change. Other answers that do not fit are mistakes, and are not in the log.
func refusedEdit(err error) (*fermata.AnswerError, bool) {
	bad, ok := errors.AsType[*fermata.AnswerError](err)
	return bad, ok && errors.Is(bad.Err, desk.ErrEdit)
}
