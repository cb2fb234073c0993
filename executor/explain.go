package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor/internal/errs"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/store"
)

// Rules returns the policy in force, or nil.
func (e *Executor) CurrentPolicy() *policy.Set {
	if e.config.Desk.Policy == nil {
		return nil
	}
	return e.config.Desk.Policy.Current()
}

// Routes returns the routes of requests by name. The one named "default" is always there.
func (e *Executor) Routes() map[string]desk.Route {
	routes := map[string]desk.Route{defaultRouteName: defaultRouteFor(e.requestTimeout(0))}
	for name, route := range e.config.Desk.Routes {
		routes[name] = route
	}
	return routes
}

// MayDecide returns nil if a person's decision on a request would count, or else an error that desk.Code knows.
func (e *Executor) MayDecide(doc desk.Request, person string) error {
	return desk.CheckEligible(doc, person, e.deskEnv(doc.Created).Directory)
}

// MayDo returns the verbs of a request that are open to a person, or an error that desk.Code knows if no decision of theirs would count.
func (e *Executor) AllowedVerbs(doc desk.Request, person string) ([]desk.Verb, error) {
	return desk.AllowedVerbs(doc, person, e.deskEnv(doc.Created).Directory)
}

// ApprovedElsewhere reports whether a person's decision on an open question would not count because of a yes of theirs to something else that the run still
// asks: [Executor.AllowedVerbs] knows of those that stood when this was asked.
func (e *Executor) IsPriorApprover(ctx context.Context, q RequestView, person string) (bool, error) {
	if q.Request == nil || q.Request.State != desk.StateOpen || !slices.Contains(q.Request.Requirement.Exclude, desk.DutyPriorApprover) {
		return false, nil
	}
	prior, err := newHistory(e, runOfRequest(q.InboxItem)).priorApprovers(ctx, *q.Request, nil)
	return slices.Contains(prior, person), err
}

// HypotheticalAction is an action to try the rules on.
type HypotheticalAction struct {
	Account, Graph, Node string
	Tool                 string
	Args                 json.RawMessage
	Requester, Agent     string
}

// Suppose says what the rules would decide on an action, and why. It changes nothing.
func (e *Executor) ExplainAction(ctx context.Context, s HypotheticalAction) (policy.Decision, error) {
	now, err := e.store.Now(ctx)
	if err != nil {
		return policy.Decision{}, err
	}
	run := store.Run{Account: s.Account, Graph: s.Graph}
	j, err := e.newSession(newTx(run, runMeta{Requester: s.Requester}, now), newHistory(e, run)).evaluateInput(ctx, "", policy.Input{Tool: s.Tool, Args: s.Args, Node: s.Node, Agent: s.Agent, UnknownFields: policy.OptionalFields})
	if errors.Is(err, policy.ErrInput) {
		err = fmt.Errorf("%w: %w", errs.ErrInvalid, err)
	}
	if err != nil {
		return policy.Decision{}, err
	}
	return j.Decision, nil
}
