package requests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/store"
)

// Act does something with a request that decides nothing: claim it, say that one looks at it,
// comment, delegate, snooze, ask back. It returns the request as it is then, store.ErrNotFound if
// there is none, or an error of package desk.
func (s *Service) Act(ctx context.Context, account, id string, act desk.Command) (desk.Request, error) {
	switch act.(type) {
	case desk.Approve, desk.ApproveEdited, desk.Reject, desk.Respond, desk.Abandon, desk.Withdraw:
		return desk.Request{}, errs.ErrIsDecision
	}
	var doc desk.Request
	err := retry.WhileStale(ctx, func() (err error) {
		doc, err = s.tryAct(ctx, account, id, act)
		return err
	})
	return doc, err
}

// tryAct tries once. It returns ErrStale if the request was changed in the meantime.
func (s *Service) tryAct(ctx context.Context, account, id string, act desk.Command) (desk.Request, error) {
	asked, known, err := s.interruptAndRequest(ctx, account, id)
	if err != nil {
		return desk.Request{}, err
	}
	if done, err := desk.IsRepeat(known.Request, act); done || err != nil {
		return known.Request, err
	}
	name, from := desk.CommandOrigin(act)
	if asked.State == store.InterruptWithdrawn && known.State == desk.StateOpen {
		over := &desk.ClosedError{State: desk.StateWithdrawn, Outcome: desk.OutcomeWithdrawn, At: asked.Created}
		return known.Request, s.recordIfRefused(ctx, asked, name, from, over)
	}
	c, err := s.WorkFor(ctx, asked)
	if err != nil {
		return desk.Request{}, err
	}
	env, err := s.deskEnvFor(ctx, c, known)
	if err != nil {
		return desk.Request{}, err
	}
	change, err := desk.Apply(known.Request, act, env)
	if err != nil || !change.Changed() {
		return known.Request, s.recordIfRefused(ctx, asked, name, from, err)
	}
	if change.Decision != nil {
		return known.Request, errs.ErrIsDecision
	}
	if err := errors.Join(s.AddChange(c, change, known.Revision), s.addRenderedText(ctx, c, change)); err != nil {
		return desk.Request{}, err
	}
	return change.Request, s.store.CommitWrites(ctx, account, c.Writes)
}

// addRenderedText adds the text of a new rendering, unless another person has seen the same.
func (s *Service) addRenderedText(ctx context.Context, c *txn.Tx, change desk.Change) error {
	screen := c.ScreenDigest(change.Request.ID, desk.RenderingHash(change.RenderedText))
	if change.RenderedText == "" || screen == (audit.Digest{}) {
		return nil
	}
	known, err := s.docs.RenderedText(ctx, c.Run.Account, change.Request.ID, screen.Sum)
	if known != "" || err != nil {
		return err
	}
	document, err := docs.NewRenderedText(c.Run.ID, change.Request.ID, screen.Sum, change.RenderedText)
	c.Documents = append(c.Documents, document)
	return err
}

// interruptAndRequest returns a question and its request, as they were at one moment, or
// store.ErrNotFound.
func (s *Service) interruptAndRequest(ctx context.Context, account, id string) (store.InboxItem, *docs.Request, error) {
	asked, err := s.store.InboxItem(ctx, account, id)
	if err != nil {
		return store.InboxItem{}, nil, err
	}
	if asked.Request == nil {
		return store.InboxItem{}, nil, store.ErrNotFound
	}
	known, err := s.docs.DecodeRequest(*asked.Request)
	return asked, known, err
}

// WorkFor begins the unit of work of a change of a request.
func (s *Service) WorkFor(ctx context.Context, asked store.InboxItem) (*txn.Tx, error) {
	meta, err := s.docs.MetaOf(ctx, asked.Account, asked.Run)
	if err != nil {
		return nil, err
	}
	now, err := s.store.Now(ctx)
	return txn.New(runOfRequest(asked), meta, now), err
}

// runOfRequest is the run that asked a question, as far as the question tells.
func runOfRequest(asked store.InboxItem) store.Run {
	return store.Run{Account: asked.Account, ID: asked.Run, StateKey: asked.StateKey, Provider: asked.Provider, Graph: asked.Graph}
}

// RequestDocument returns the votes, comments and state of a request, or store.ErrNotFound.
func (s *Service) RequestDocument(ctx context.Context, account, id string) (desk.Request, error) {
	known, err := s.docs.Request(ctx, account, id)
	if err != nil || known == nil {
		return desk.Request{}, cmp.Or(err, store.ErrNotFound)
	}
	return known.Request, nil
}

// EndRun ends a run on behalf of an actor, and withdraws its open requests. It returns
// store.ErrNotFound if the run is over.
func (s *Service) EndRun(ctx context.Context, run store.Run, by desk.From, as store.Status) error {
	return retry.WhileStale(ctx, func() error {
		waits, beside, err := s.EndWrites(ctx, run, by, as)
		if err == nil {
			//mutate:cancel-names-interrupts
			_, err = s.store.Cancel(ctx, run.Account, run.ID, as, waits, beside)
		}
		return err
	})
}

// EndWrites returns what is written with the end of a run that waits for these interrupts.
func (s *Service) EndWrites(ctx context.Context, run store.Run, by desk.From, as store.Status) (waits []string, beside store.Writes, err error) {
	now, err := s.store.Now(ctx)
	if err != nil {
		return nil, beside, err
	}
	c := txn.New(run, docs.RunMeta{}, now)
	if waits, err = s.withdrawOpen(ctx, c, "", string(as)); err != nil {
		return nil, beside, err
	}
	err = c.AddAudit(auditrec.ActorOrSystem(by), c.AuditPlace(), audit.RunEnded{Status: string(as)})
	return waits, c.Writes, err
}

// Abandon gives up the task that a question is part of: the run is cancelled, and its other
// requests are withdrawn.
func (s *Service) Abandon(ctx context.Context, account, id string, act desk.Abandon) error {
	return retry.WhileStale(ctx, func() error { return s.tryAbandon(ctx, account, id, act) })
}

// tryAbandon tries once. It returns ErrStale if the request was changed in the meantime.
func (s *Service) tryAbandon(ctx context.Context, account, id string, act desk.Abandon) error {
	asked, known, err := s.interruptAndRequest(ctx, account, id)
	if err != nil {
		return err
	}
	if done, err := desk.IsRepeat(known.Request, act); done || err != nil {
		return err
	}
	if run, err := s.docs.FindRun(ctx, account, asked.StateKey); err != nil || run.ID != asked.Run || asked.State != store.InterruptPending {
		return cmp.Or(err, fmt.Errorf("%w: %q", errs.ErrRunEnded, asked.StateKey))
	}
	c, err := s.WorkFor(ctx, asked)
	if err != nil {
		return err
	}
	env, err := s.deskEnvFor(ctx, c, known)
	if err != nil {
		return err
	}
	change, err := desk.Apply(known.Request, act, env)
	if err != nil {
		return s.recordIfRefused(ctx, asked, desk.CommandAbandon, act.From, err)
	}
	// so that it ends this run, and not one that took its state key
	err = s.AddChange(c, change, known.Revision)
	var waits []string
	if err == nil {
		waits, err = s.withdrawOpen(ctx, c, id, string(store.StatusCancelled))
	}
	if err == nil {
		err = c.AddAudit(auditrec.AuditActor(act.From), c.AuditPlace(), audit.RunEnded{Status: string(store.StatusCancelled)})
	}
	if err != nil {
		return err
	}
	_, err = s.store.Cancel(ctx, account, asked.Run, store.StatusCancelled, waits, c.Writes)
	if errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("%w: %q", errs.ErrRunEnded, asked.StateKey)
	}
	return err
}

// withdrawOpen withdraws the open requests of a run, except for one whose end the caller adds
// itself. The provider is told of all of them. It returns what the run waits for: if it waits for
// something else by the time of its end, this is not all.
func (s *Service) withdrawOpen(ctx context.Context, c *txn.Tx, but, why string) (waits []string, err error) {
	waits, err = s.OpenInterrupts(ctx, c.Run)
	if err != nil {
		return nil, err
	}
	for _, id := range waits {
		if err := s.addWithdrawal(c, id, why); err != nil {
			return nil, err
		}
	}
	open := slices.DeleteFunc(slices.Clone(waits), func(id string) bool { return id == but })
	return waits, s.WithdrawRequests(ctx, c, open, why)
}

// OpenInterrupts returns the undecided interrupts of a run; it is never nil.
func (s *Service) OpenInterrupts(ctx context.Context, run store.Run) ([]string, error) {
	asked, err := s.store.Interrupts(ctx, run.Account, run.ID)
	waits := []string{}
	for _, i := range asked {
		if i.State == store.InterruptPending {
			waits = append(waits, i.ID)
		}
	}
	return waits, err
}

// WithdrawRequests files the withdrawal of requests, as far as they are open.
func (s *Service) WithdrawRequests(ctx context.Context, c *txn.Tx, ids []string, why string) error {
	for _, id := range ids {
		if err := s.SetTime(ctx, c); err != nil {
			return err
		}
		known, err := s.docs.Request(ctx, c.Run.Account, id)
		if err != nil {
			return err
		}
		if known == nil || known.State != desk.StateOpen {
			continue
		}
		change, err := desk.Apply(known.Request, desk.Withdraw{From: desk.From{Actor: desk.SystemActor("executor")}, Reason: why}, s.DeskEnv(c.Now))
		if err != nil {
			return err
		}
		if err := s.AddChange(c, change, known.Revision); err != nil {
			return err
		}
	}
	return nil
}
