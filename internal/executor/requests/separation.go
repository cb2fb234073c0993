package requests

import (
	"context"
	"slices"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/history"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/requirement"
)

// deskEnvFor is what package desk needs for an act that decides nothing. The exclusion of prior
// approvers holds for these acts, too.
func (s *Service) deskEnvFor(ctx context.Context, c *txn.Tx, known *docs.Request) (env desk.Env, err error) {
	env = s.DeskEnv(c.Now)
	if slices.Contains(known.Requirement.Exclude, requirement.DutyPriorApprover) {
		env.PriorApprovers, err = history.New(s.docs, c.Run).PriorApprovers(ctx, known.Request, nil)
	}
	return env, err
}
