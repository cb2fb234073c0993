package requests

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor/internal/auditrec"
	"github.com/fermata-go/fermata/executor/internal/docs"
	"github.com/fermata-go/fermata/executor/internal/txn"
	"github.com/fermata-go/fermata/policy/grant"
	"github.com/fermata-go/fermata/store"
)

// ActCreateGrant is what somebody does who wants a grant. It is no act of package desk.
const ActCreateGrant desk.CommandName = "remember"

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

// recordIfRefused writes into the audit log that somebody was not let do something with a request. It returns err, or why it could not be written: then nobody
// knows what became of the act, and it is repeated.
func (s *Service) recordIfRefused(ctx context.Context, asked store.InboxItem, name desk.CommandName, from desk.From, err error) error {
	if from.Actor.Kind == desk.ActorSystem || !isRefusedAct(err) {
		return err
	}
	return cmp.Or(s.recordRefusedAct(ctx, asked, name, from, auditrec.AuditRefusal(err)), err)
}

func (s *Service) recordRefusedAct(ctx context.Context, asked store.InboxItem, name desk.CommandName, from desk.From, why audit.Refusal) error {
	c := txn.New(runOfRequest(asked), docs.RunMeta{}, time.Time{})
	if err := c.AddAudit(auditrec.AuditActor(from), c.RequestPlace(asked.ID), auditrec.RefusedLine(name, why)); err != nil {
		return err
	}
	return s.store.CommitWrites(ctx, asked.Account, c.Writes)
}

// RecordForbidden writes into the audit log that somebody wanted to do something with a request for which they do not have the role. There is no line if the account
// has no such request.
func (s *Service) RecordForbidden(ctx context.Context, account, id string, name desk.CommandName, from desk.From) error {
	asked, err := s.store.InboxItem(ctx, account, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.recordRefusedAct(ctx, asked, name, from, audit.RefusedNoRole)
}
