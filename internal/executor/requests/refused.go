package requests

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/policy/grant"
	"github.com/fermata-go/fermata/internal/store"
)

// ActCreateGrant names the creation of a grant. It is not a command of package desk.
const ActCreateGrant desk.CommandName = "remember"

// isRefusedAct reports whether an act was refused. Invalid acts, and acts whose permission could
// not be determined, were not refused.
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

// recordIfRefused records in the audit log that an act on a request was refused. It returns err, or
// why it could not be recorded: then the result of the act is unknown, and it is repeated.
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

// RecordForbidden records in the audit log that an actor without the required role tried to act on
// a request. It records nothing if the account has no such request.
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
