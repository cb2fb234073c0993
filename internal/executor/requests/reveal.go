package requests

import (
	"context"
	"errors"
	"slices"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/policy"
)

// ActReveal names the reveal of masked values. It is not a command of package desk.
const ActReveal desk.CommandName = "reveal"

// Reveal returns a request with its masked values. The audit line that names them is committed
// before the values are returned. The actor must be able to decide the request with their
// authentication, unless privileged.
func (s *Service) Reveal(ctx context.Context, account, id string, from desk.From, privileged bool) (docs.RequestView, error) {
	asked, known, err := s.interruptAndRequest(ctx, account, id)
	if err != nil {
		return docs.RequestView{}, err
	}
	if err := s.mayReveal(known.Request, from); err != nil && !privileged {
		return docs.RequestView{}, s.recordIfRefused(ctx, asked, ActReveal, from, err)
	}
	view, err := s.docs.ToRequestView(asked)
	if err != nil {
		return docs.RequestView{}, err
	}
	return view, s.recordReveal(ctx, view, from, func(string) bool { return true })
}

// RecordProbe records that the condition of an approval tells the actor something about masked
// values. It is called before the condition is evaluated. It records nothing if the condition reads
// none of them, or if the actor could not reveal them: then it is not evaluated.
func (s *Service) RecordProbe(ctx context.Context, account, id string, from desk.From, onlyIf string) error {
	asked, known, err := s.interruptAndRequest(ctx, account, id)
	if docs.IsNotFound(err) {
		return nil
	}
	if err != nil || len(known.Requirement.Sensitive) == 0 || known.State != desk.StateOpen {
		return err
	}
	if refused := s.mayReveal(known.Request, from); errors.Is(refused, desk.ErrDirectoryUnavailable) {
		return refused // it may answer a moment later, when the condition is evaluated
	} else if refused != nil {
		return nil
	}
	condition, invalid := policy.CompileCondition(onlyIf)
	if invalid != nil {
		return nil
	}
	view, err := s.docs.ToRequestView(asked)
	if err != nil {
		return err
	}
	return s.recordReveal(ctx, view, from, func(pointer string) bool {
		return condition.Reads(func(read string) bool { return desk.Overlap(pointer, read) })
	})
}

// recordReveal records that an actor learns masked values: those of the wanted pointers.
func (s *Service) recordReveal(ctx context.Context, q docs.RequestView, from desk.From, wanted func(pointer string) bool) error {
	fields := slices.DeleteFunc(q.Request.SensitivePointers(q.Data), func(p string) bool { return !wanted(p) })
	if len(fields) == 0 {
		return nil
	}
	c, err := s.WorkFor(ctx, q.InboxItem)
	if err != nil {
		return err
	}
	place := c.RequestPlace(q.ID)
	place.Revision = q.Request.Rev
	if err := c.AddAudit(auditrec.AuditActor(from), place, audit.RequestRevealed{Fields: fields}); err != nil {
		return err
	}
	return s.store.CommitWrites(ctx, q.Account, c.Writes)
}

// mayReveal returns nil if a person could decide the request.
func (s *Service) mayReveal(doc desk.Request, from desk.From) error {
	refused := &desk.RefusedError{Command: ActReveal, Actor: from.Actor.ID}
	if from.Actor.Kind != desk.ActorHuman {
		refused.Err = desk.ErrNotHuman
		return refused
	}
	if _, err := s.AllowedVerbs(doc, from.Actor.ID); err != nil {
		return err
	}
	if !from.Actor.Auth.AtLeast(doc.Requirement.MinAuth) {
		refused.Err = &desk.WeakAuthError{Need: doc.Requirement.MinAuth}
		return refused
	}
	return nil
}
