package executor

import (
	"context"
	"encoding/json"
	"errors"
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
	return fermata.PolicyFunc(func(ctx context.Context, action fermata.ActionRequest) (fermata.Ruling, error) {
		for try := 0; ; try++ {
			ruling, err := e.ruling(ctx, run, d, action)
			if !errors.Is(err, store.ErrStale) || try == maxTries {
				return ruling, err
			}
		}
	})
}

// ruling judges an action. What is allowed is charged to the counters of the rules at once; it returns ErrStale if another action was charged
// since they were read.
func (e *Executor) ruling(ctx context.Context, run store.Run, d dossier, action fermata.ActionRequest) (fermata.Ruling, error) {
	c := &filing{run: run, dossier: d}
	var err error
	if c.now, err = e.store.Now(ctx); err != nil {
		return fermata.Ruling{}, err
	}
	j, err := e.judge(ctx, c, action.Address, action.Action, action.Args)
	if err != nil {
		return fermata.Ruling{}, err
	}
	if j.Decision, err = e.granted(ctx, c, j.in, j.Decision); err != nil || j.Verdict != policy.Allow {
		return j.Ruling(), err
	}
	papers, err := e.charge(ctx, run.Account, j.counted, j.Charges, c.now)
	if err == nil && len(papers) > 0 {
		err = e.store.Amend(ctx, run.Account, store.Beside{Papers: papers})
	}
	return j.Ruling(), err
}

// describe adds what an action does not tell of itself.
func (e *Executor) describe(in *policy.Input, run store.Run, d dossier, now time.Time) {
	in.Account, in.Environment, in.Graph, in.Requester, in.At = run.Account, e.config.Desk.Environment, run.Graph, d.Requester, now
	if e.config.Desk.Zone != nil {
		in.Zone = e.config.Desk.Zone.String()
	}
}

// judgement is what the rules say of an action, and what they looked at.
type judgement struct {
	policy.Decision
	in      policy.Input
	counted counters
}

// judge asks the rules about an action of a run.
func (e *Executor) judge(ctx context.Context, c *filing, address fermata.Address, action string, args json.RawMessage) (*judgement, error) {
	set := e.Rules()
	if set == nil {
		return nil, ErrNoRules
	}
	j := &judgement{in: policy.InputOf(fermata.ActionRequest{Run: c.run.ID, Address: address, Action: action, Args: args})}
	e.describe(&j.in, c.run, c.dossier, c.now)
	demands := set.Demands(j.in)
	var err error
	if j.counted, err = e.count(ctx, c.run.Account, demands); err != nil {
		return nil, err
	}
	j.in.History = j.counted.numbers(demands, c.now)
	j.Decision, err = set.Decide(j.in)
	return j, err
}

// demand fills in what the rules require for an action, and returns the routes that they name.
func (e *Executor) demand(ctx context.Context, ask *desk.Ask, c *filing, address fermata.Address) (routes []string, err error) {
	if e.config.Desk.Rules == nil {
		return nil, nil
	}
	j, err := e.judge(ctx, c, address, ask.Asked.Action, ask.Args)
	if err != nil {
		return nil, err
	}
	ask.Asked.Policy, ask.Asked.Rules, ask.Asked.Reason = j.Policy, j.Rules, j.Reason
	if j.Need == nil { // the graph's own policy has it asked; the rules would not have
		return nil, nil
	}
	fixed := len(ask.Need.Editable) == 0
	ask.Need = requirement(*j.Need)
	if fixed {
		ask.Need.Editable = nil
	}
	return j.Need.Routes, nil
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
func (e *Executor) edited(ctx context.Context, c *filing, address fermata.Address, action string) desk.Policy {
	if e.config.Desk.Rules == nil {
		return nil
	}
	return func(args json.RawMessage) (desk.Ruling, error) {
		j, err := e.judge(ctx, c, address, action, args)
		if err != nil {
			return desk.Ruling{}, err
		}
		ruling := desk.Ruling{Deny: j.Verdict == policy.Deny, Reason: j.Reason}
		if j.Need != nil {
			need := requirement(*j.Need)
			ruling.Need = &need
		}
		return ruling, nil
	}
}

// chargeFor charges what people approved to the counters of the rules, in the transaction of the decision.
func (e *Executor) chargeFor(ctx context.Context, c *filing, w word, final desk.Final) error {
	if e.config.Desk.Rules == nil || final.Outcome != desk.Approved {
		return nil
	}
	address, err := fermata.ParseAddress(w.asked.Address)
	if err != nil {
		return err
	}
	args := w.question.Args
	if final.Args != nil {
		args = final.Args
	}
	j, err := e.judge(ctx, c, address, w.question.Action, args)
	if err != nil {
		return err
	}
	papers, err := e.charge(ctx, c.run.Account, j.counted, j.Charges, c.now)
	c.Papers = append(c.Papers, papers...)
	return err
}
