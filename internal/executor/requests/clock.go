package requests

import (
	"context"

	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/store"
)

// DecidedByClock returns the decision of a rule on an expired request, or nil if it just expired.
func (s *Service) DecidedByClock(ctx context.Context, question store.Interrupt) (*docs.ClockDecision, error) {
	known, err := s.docs.Request(ctx, question.Account, question.ID)
	if err != nil || known == nil {
		return nil, err
	}
	return docs.ClockDecisionOf(known.Request)
}
