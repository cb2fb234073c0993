package govern

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/history"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/store"
)

// CheckCondition returns why a condition of an approval is invalid or does not hold for an action,
// or nil. An error that wraps [desk.ErrPolicyUnavailable] says nothing about the condition.
func (s *Session) CheckCondition(ctx context.Context, address fermata.Address, action string, args json.RawMessage, onlyIf string) error {
	condition, err := policy.CompileCondition(onlyIf)
	if err != nil {
		return err
	}
	in := policy.InputOf(fermata.ActionRequest{Run: s.Tx.Run.ID, Address: address, Action: action, Args: args})
	s.fillInput(&in)
	err = condition.Check(ctx, s.governor.CurrentPolicy(), in)
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", desk.ErrPolicyUnavailable, context.Cause(ctx))
	}
	return err
}

// CheckConditions checks the conditions of an approval when its action begins. It returns a
// [*fermata.VoidApprovalError] if they do not hold.
func (gv *Governor) CheckConditions(ctx context.Context, run store.Run, meta docs.RunMeta, name string, action fermata.ConditionalAction) error {
	now, err := gv.store.Now(ctx)
	if err != nil {
		return err
	}
	if !action.Until.IsZero() && !now.Before(action.Until) {
		return &fermata.VoidApprovalError{Reason: "it was valid until " + action.Until.UTC().Format(time.RFC3339)}
	}
	if action.OnlyIf == "" {
		return nil
	}
	address, err := fermata.ParseAddress(action.Address)
	if err != nil {
		return err
	}
	s := gv.NewSession(txn.New(run, meta, now), history.New(gv.docs, run))
	err = s.CheckCondition(ctx, address, name, action.Args, action.OnlyIf)
	if err != nil && ctx.Err() == nil {
		return &fermata.VoidApprovalError{Reason: fmt.Sprintf("it was valid only if %s: %v", action.OnlyIf, err)}
	}
	return err
}
