package requests

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/executor/storeclock"
	"github.com/fermata-go/fermata/internal/store"
)

// DuePerPass is how many requests or notices are looked at in one go.
const DuePerPass = 100

// RouteLoop takes the due steps of routes: reminders, pages, escalations. It does not expire
// requests; package expiry does.
func (s *Service) RouteLoop(decidePending func(ctx context.Context, account, id string) error) {
	var guard storeclock.Guard
	for !s.background.IsStopping() {
		s.background.LogRepeated("the routes of requests", s.runDueSteps(&guard, decidePending))
		s.background.Sleep(s.config.Poll)
	}
}

func (s *Service) runDueSteps(guard *storeclock.Guard, decidePending func(ctx context.Context, account, id string) error) error {
	now, err := s.store.Now(s.background.Ctx)
	if err != nil || !guard.IsTrusted(now) {
		return err
	}
	due, err := s.store.DueDocuments(s.background.Ctx, store.RequestDocument, DuePerPass)
	var stuck background.ErrorCount
	for _, paper := range due {
		known, failure := s.docs.DecodeRequest(paper)
		pause := docs.UnreadableDelay
		switch {
		case failure != nil:
		case known.Pending != nil:
			pause = docs.RetryDelay
			failure = decidePending(s.background.Ctx, paper.Account, paper.ID)
		case now.Before(known.Deadline):
			if _, failure = s.tryAct(s.background.Ctx, paper.Account, paper.ID, desk.Tick{}); desk.Code(failure) == "" {
				// not an error of the request: perhaps the store was away for a moment
				pause = docs.RetryDelay
			}
		}
		if failure == nil || errors.Is(failure, store.ErrStale) || errors.Is(failure, errs.ErrIsDecision) {
			continue // it was changed, or is over: package expiry expires it
		}
		failure = fmt.Errorf("request %s of %s: %w", paper.ID, paper.Account, failure)
		// otherwise it would stay the first that is due
		switch put := s.postpone(paper, now.Add(pause)); {
		case put == nil:
			err = errors.Join(err, failure)
		case !errors.Is(put, store.ErrStale): // else it was changed or erased
			stuck.Add(failure)
		}
	}
	return errors.Join(err, stuck.Err())
}

// postpone moves the time at which a document is due that cannot be processed now.
func (s *Service) postpone(paper store.Document, next time.Time) error {
	change := s.docs.Unchanged(paper)
	change.DueAt = next
	return s.docs.WriteDocument(s.background.Ctx, paper.Account, change)
}
