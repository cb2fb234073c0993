package executor

import (
	"context"
	"encoding/json"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/store"
)

// rules is the policy that an execution of a run is asked about actions, or nil if this installation has none.
func (e *Executor) rules(run store.Run, d dossier) fermata.Policy {
	if e.config.Desk.Rules == nil {
		return nil
	}
	return &policy.Hook{
		Rules: e.config.Desk.Rules,
		Describe: func(ctx context.Context, _ fermata.ActionRequest, in *policy.Input) error {
			now, err := e.store.Now(ctx)
			e.describe(in, run, d, now)
			return err
		},
		Decided: func(ctx context.Context, in policy.Input, decision policy.Decision) (policy.Decision, error) {
			return e.granted(ctx, run, d, in, decision)
		},
	}
}

// describe adds what an action does not tell of itself.
func (e *Executor) describe(in *policy.Input, run store.Run, d dossier, now time.Time) {
	in.Account, in.Environment, in.Graph, in.Requester, in.At = run.Account, e.config.Desk.Environment, run.Graph, d.Requester, now
	if e.config.Desk.Zone != nil {
		in.Zone = e.config.Desk.Zone.String()
	}
}

// judge asks the rules about an action of a run; nil if there are none.
func (e *Executor) judge(c *filing, address fermata.Address, action string, args json.RawMessage) (*policy.Decision, error) {
	if e.config.Desk.Rules == nil {
		return nil, nil
	}
	_, decision, err := e.weighRules(c, address, action, args)
	return &decision, err
}

// demand fills in what the rules require for an action, and returns the routes that they name.
func (e *Executor) demand(ask *desk.Ask, c *filing, address fermata.Address) (routes []string, err error) {
	decision, err := e.judge(c, address, ask.Asked.Action, ask.Args)
	if err != nil || decision == nil {
		return nil, err
	}
	ask.Asked.Policy, ask.Asked.Rules, ask.Asked.Reason = decision.Policy, decision.Rules, decision.Reason
	if decision.Need == nil { // the graph's own policy has it asked; the rules would not have
		return nil, nil
	}
	fixed := len(ask.Need.Editable) == 0
	ask.Need = requirement(*decision.Need)
	if fixed {
		ask.Need.Editable = nil
	}
	return decision.Need.Routes, nil
}

// requirement is what rules demand, in the words of the desk.
func requirement(need policy.Requirement) desk.Requirement {
	r := desk.Requirement{
		Denials: need.DenyCount, Editable: need.Editable, MinAuth: desk.Auth(need.MinAuth), Deadline: desk.Duration(need.Deadline),
		OnTimeout: desk.OnTimeout(need.OnTimeout),
	}
	for _, g := range need.Groups {
		r.Groups = append(r.Groups, desk.Group{From: g.From, Count: g.Count})
	}
	for _, duty := range need.Exclude {
		r.Exclude = append(r.Exclude, desk.Duty(duty))
	}
	return r
}

// edited is the policy's word on other arguments of a request.
func (e *Executor) edited(c *filing, address fermata.Address, action string) desk.Policy {
	if e.config.Desk.Rules == nil {
		return nil
	}
	return func(args json.RawMessage) (desk.Ruling, error) {
		decision, err := e.judge(c, address, action, args)
		if err != nil {
			return desk.Ruling{}, err
		}
		ruling := desk.Ruling{Deny: decision.Verdict == policy.Deny, Reason: decision.Reason}
		if decision.Need != nil {
			need := requirement(*decision.Need)
			ruling.Need = &need
		}
		return ruling, nil
	}
}
