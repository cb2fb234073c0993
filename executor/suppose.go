package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/store"
)

// ErrNoRules says that this installation has no policy.
var ErrNoRules = errors.New("executor: there are no rules")

// Rules returns the policy in force, or nil.
func (e *Executor) Rules() *policy.Set {
	if e.config.Desk.Rules == nil {
		return nil
	}
	return e.config.Desk.Rules.Current()
}

// Routes returns the routes of requests by name. The one named "default" is always there.
func (e *Executor) Routes() map[string]desk.Route {
	routes := map[string]desk.Route{defaultRoute: builtInRoute(e.timeout(0))}
	for name, route := range e.config.Desk.Routes {
		routes[name] = route
	}
	return routes
}

// MayDecide returns nil if a person's decision on a request would count, or else an error that desk.Code knows.
func (e *Executor) MayDecide(doc desk.Request, person string) error {
	return desk.MayDecide(doc, person, e.env(doc.Created).Directory)
}

// MayDo returns the verbs of a request that are open to a person, or an error that desk.Code knows if no decision of theirs would count.
func (e *Executor) MayDo(doc desk.Request, person string) ([]desk.Verb, error) {
	return desk.MayDo(doc, person, e.env(doc.Created).Directory)
}

// Supposed is an action to try the rules on.
type Supposed struct {
	Account, Graph, Node string
	Tool                 string
	Args                 json.RawMessage
	Requester, Agent     string
}

// Suppose says what the rules would decide on an action, and why. It changes nothing.
func (e *Executor) Suppose(ctx context.Context, s Supposed) (policy.Decision, error) {
	c := &filing{run: store.Run{Account: s.Account, Graph: s.Graph}, dossier: dossier{Requester: s.Requester}}
	if err := e.tellTime(ctx, c); err != nil {
		return policy.Decision{}, err
	}
	j, err := e.judgeInput(ctx, c, policy.Input{Tool: s.Tool, Args: s.Args, Node: s.Node, Agent: s.Agent, Untold: policy.Untellable})
	if errors.Is(err, policy.ErrInput) {
		err = fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err != nil {
		return policy.Decision{}, err
	}
	return j.Decision, nil
}
