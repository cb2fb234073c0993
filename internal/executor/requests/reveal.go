package requests

import (
	"context"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/docs"
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
	fields := known.SensitivePointers(view.Data)
	if len(fields) == 0 { // nothing is masked
		return view, nil
	}
	c, err := s.WorkFor(ctx, asked)
	if err != nil {
		return docs.RequestView{}, err
	}
	place := c.RequestPlace(asked.ID)
	place.Revision = known.Rev
	if err := c.AddAudit(auditrec.AuditActor(from), place, audit.RequestRevealed{Fields: fields}); err != nil {
		return docs.RequestView{}, err
	}
	return view, s.store.CommitWrites(ctx, account, c.Writes)
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
