package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/policy/grant"
	"github.com/fermata-go/fermata/store"
)

// ActCreateGrant is what somebody does who wants a grant. It is no act of package desk.
const ActCreateGrant desk.CommandName = "remember"

// refusedVerbs are the acts that the audit log has a verb for.
var refusedVerbs = map[desk.CommandName]audit.Verb{
	desk.CommandApprove: audit.VerbApprove, desk.CommandEdit: audit.VerbApproveWithEdits, desk.CommandReject: audit.VerbReject, desk.CommandRespond: audit.VerbRespond,
	desk.CommandAskClarification: audit.VerbAskClarification, desk.CommandAbandon: audit.VerbAbandon,
}

// refusedLine is the audit line of an act that was refused.
func refusedLine(act desk.CommandName, why audit.Refusal) audit.RequestRefused {
	line := audit.RequestRefused{Verb: refusedVerbs[act], Why: why}
	if line.Verb == "" {
		line.Act = string(act)
	}
	return line
}

// refusedVerb is the verb of a decision that was refused; "" if nobody can tell. Of one that came too late the question is not read any more, so that goes by
// the answer: every question about an action has the same.
func refusedVerb(request DecideRequest, refused *RefusedError) audit.Verb {
	if by, ok := errors.AsType[*desk.RefusedError](refused.Err); ok {
		return refusedVerbs[by.Command]
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

// isRefusedAct reports whether an act failed because somebody was not let do it. What only has the wrong form, and what could not be found out, was not refused.
func isRefusedAct(err error) bool {
	if errors.Is(err, grant.ErrNotRememberable) {
		return true
	}
	switch desk.Code(err) {
	case "", desk.Code(desk.ErrInvalidText), desk.Code(desk.ErrInvalidValue), desk.Code(desk.ErrInvalid), desk.Code(desk.ErrKeyReused), desk.Code(desk.ErrDirectoryUnavailable), desk.Code(desk.ErrPolicyUnavailable):
		return false
	}
	return true
}

// noteAct writes into the audit log that somebody was not let do something with a request. It returns err, or why it could not be written: then nobody
// knows what became of the act, and it is repeated.
func (e *Executor) recordIfRefused(ctx context.Context, asked store.InboxItem, name desk.CommandName, from desk.From, err error) error {
	if from.Actor.Kind == desk.ActorSystem || !isRefusedAct(err) {
		return err
	}
	return cmp.Or(e.recordRefusedAct(ctx, asked, name, from, auditRefusal(err)), err)
}

func (e *Executor) recordRefusedAct(ctx context.Context, asked store.InboxItem, name desk.CommandName, from desk.From, why audit.Refusal) error {
	c := newTx(runOfRequest(asked), runMeta{}, time.Time{})
	if err := c.addAudit(auditActor(from), c.requestPlace(asked.ID), refusedLine(name, why)); err != nil {
		return err
	}
	return e.store.CommitWrites(ctx, asked.Account, c.Writes)
}

// NoteForbidden writes into the audit log that somebody wanted to do something with a request for which they do not have the role. There is no line if the account
// has no such request.
func (e *Executor) RecordForbidden(ctx context.Context, account, id string, name desk.CommandName, from desk.From) error {
	asked, err := e.store.InboxItem(ctx, account, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return e.recordRefusedAct(ctx, asked, name, from, audit.RefusedNoRole)
}

// asRefusedEdit reports whether somebody changed what they may not change. Other answers that do not fit are mistakes, and are not in the log.
func asRefusedEdit(err error) (*fermata.AnswerError, bool) {
	bad, ok := errors.AsType[*fermata.AnswerError](err)
	return bad, ok && errors.Is(bad.Err, desk.ErrInvalidEdit)
}
