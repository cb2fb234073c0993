package govern

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/executor/history"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/store"
)

// CurrentPolicy returns the policy in force, or nil.
func (gv *Governor) CurrentPolicy() *policy.Set {
	if gv.config.Policy == nil {
		return nil
	}
	return gv.config.Policy.Current()
}

// HypotheticalAction is an action to try the rules on.
type HypotheticalAction struct {
	Account, Graph, Node string
	Tool                 string
	Args                 json.RawMessage
	Requester, Agent     string
}

// ExplainAction says what the rules would decide on an action, and why. It changes nothing.
func (gv *Governor) ExplainAction(ctx context.Context, s HypotheticalAction) (policy.Decision, error) {
	now, err := gv.store.Now(ctx)
	if err != nil {
		return policy.Decision{}, err
	}
	run := store.Run{Account: s.Account, Graph: s.Graph}
	j, err := gv.NewSession(txn.New(run, docs.RunMeta{Requester: s.Requester}, now), history.New(gv.docs, run)).evaluateInput(ctx, "", policy.Input{Tool: s.Tool, Args: s.Args, Node: s.Node, Agent: s.Agent, UnknownFields: policy.OptionalFields})
	if errors.Is(err, policy.ErrInput) {
		err = fmt.Errorf("%w: %w", errs.ErrInvalid, err)
	}
	if err != nil {
		return policy.Decision{}, err
	}
	return j.Decision, nil
}
