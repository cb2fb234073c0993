package executor

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/policy/replay"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// rules is the policy for the actions of an execution, or nil if this installation has none. Its rulings are visible to others, in counters and in the audit
// log. So the state that led to the action is saved before: otherwise a run that is executed again might come to another action, and this one
// would have been charged for nothing.
func (e *Executor) rules(run store.Run, d dossier, state *draft) fermata.Policy {
	if e.config.Desk.Rules == nil {
		return nil
	}
	return fermata.PolicyFunc(func(ctx context.Context, action fermata.ActionRequest) (fermata.Ruling, error) {
		if within(action.Address, editSegment) {
			return fermata.Ruling{}, nil // edited arguments were judged when people approved them
		}
		var ruling fermata.Ruling
		err := e.charges.whileStale(ctx, run.Account, func() (err error) {
			ruling, err = e.ruling(ctx, run, d, state, action)
			return err
		})
		return ruling, later(err, run.Attempts)
	})
}

// Segments that the engine adds to the address of an approval: for edited arguments, and for a target that has changed since.
const (
	editSegment  = "edit"
	driftSegment = "drift"
)

// within reports whether an address has such a segment after the last approval in it. What stands before that was chosen by the author of the graph.
func within(address fermata.Address, segment string) bool {
	last := -1
	for n, s := range address {
		if s.Type == fermata.SegmentApprove {
			last = n
		}
	}
	return last >= 0 && slices.ContainsFunc(address[last:], func(s fermata.Segment) bool { return string(s.Type) == segment })
}

// later has the execution tried again after an error that is not the run's fault. The more often that was done the longer it takes: a store without room for
// some minutes must not use up all attempts of a run.
func later(err error, attempts int) error {
	if err == nil || errors.Is(err, policy.ErrInput) || errors.Is(err, policy.ErrNoSet) {
		return err
	}
	return &provider.RetryError{After: afterAttempts(attempts), Err: err} //mutate:policy-store-error-retried
}

// ruling judges an action. If it is allowed, it is charged to the counters of the rules at once, together with the use of a grant. It returns ErrStale if
// another action was charged since the counters were read.
func (e *Executor) ruling(ctx context.Context, run store.Run, d dossier, state *draft, action fermata.ActionRequest) (fermata.Ruling, error) {
	// An earlier attempt may have charged it, or whoever has taken the run over meanwhile.
	c := &filing{run: run, dossier: d, key: chargeKey(run, action)} //mutate:charge-key-set
	var err error
	if c.now, err = e.store.Now(ctx); err != nil {
		return fermata.Ruling{}, err
	}
	j, err := e.judge(ctx, c, action.Address, action.Action, action.Args)
	if err != nil {
		return fermata.Ruling{}, err
	}
	if action.Held && j.Verdict != policy.Deny { // nothing goes ahead: what people say to it is judged, and charged, when they say it
		return j.Ruling(), nil
	}
	if j.Decision, err = e.granted(ctx, c, j.rated, j.Decision, action.Digest); err != nil {
		return j.Ruling(), err
	}
	if j.Verdict != policy.Ask { //mutate:ruling-saved-first
		if err := state.write(ctx); err != nil {
			return fermata.Ruling{}, err
		}
	}
	switch j.Verdict {
	case policy.Allow:
		err = e.allowed(ctx, c, j)
	case policy.Deny:
		err = e.denied(ctx, c, j, action.Digest) //mutate:denial-audited
	case policy.Ask: // it is judged again, and the ruling is filed, when the question is asked
	}
	return j.Ruling(), err
}

// allowed charges an action that the rules allow, and files the ruling.
func (e *Executor) allowed(ctx context.Context, c *filing, j *judgement) error {
	known := false
	err := e.charge(ctx, c, j.Charges) //mutate:allowed-action-charged
	if err == nil {
		err = c.fileCounters()
	}
	if err == nil && c.run.Attempts > 0 { //mutate:ruling-recorded-once
		known, err = e.ruled(ctx, c.run, c.key)
	}
	if err == nil && !known {
		err = e.keepRuling(ctx, c, j, replay.Allowed, c.key, "")
	}
	if err == nil && len(c.Papers) > 0 {
		err = e.store.Amend(ctx, c.run.Account, c.Beside)
	}
	return err
}

// chargeKey names an action at its place in a run. Another round of a loop is another place.
func chargeKey(run store.Run, action fermata.ActionRequest) string {
	//mutate:charge-key-has-place
	return ident.Derive("c", run.ID, action.Address.String(), action.Place, action.Digest)
}

// askedKey names a question, however often it was asked: an approval that could not be used is not charged again when it is repeated.
func askedKey(run store.Run, interrupt string) string {
	return ident.Derive("c", run.ID, questionID(interrupt))
}

// describe adds to the input of the rules what the action itself does not say. What its tool does to the world, costs and risks is known to the rules alone.
func (e *Executor) describe(in *policy.Input, c *filing) {
	in.Account, in.Environment, in.Graph, in.Requester, in.At = c.run.Account, e.config.Desk.Environment, c.run.Graph, c.dossier.Requester, c.now
	if e.config.Desk.Zone != nil {
		in.Zone = e.config.Desk.Zone.String()
	}
}

// judgement is what the rules say of an action, and what they looked at.
type judgement struct {
	policy.Decision                 // with grants
	said            policy.Decision // without
	set             *policy.Set
	in              policy.Input
	rated           policy.Input // with what the rules say of the tool
}

// judge asks the rules about an action of a run.
func (e *Executor) judge(ctx context.Context, c *filing, address fermata.Address, action string, args json.RawMessage) (*judgement, error) {
	return e.judgeInput(ctx, c, policy.InputOf(fermata.ActionRequest{Run: c.run.ID, Address: address, Action: action, Args: args}))
}

// judgeInput asks the rules about an action as it is described to them.
func (e *Executor) judgeInput(ctx context.Context, c *filing, in policy.Input) (*judgement, error) {
	set := e.Rules()
	if set == nil {
		return nil, ErrNoRules
	}
	j := &judgement{set: set, in: in}
	e.describe(&j.in, c)
	demands := set.Demands(j.in)
	if err := e.count(ctx, c, demands); err != nil {
		return nil, err
	}
	j.in.History = c.numbers(demands)
	var err error
	if j.said, err = set.Decide(j.in); err != nil {
		return nil, err
	}
	j.Decision, j.rated = j.said, set.Rated(j.in)
	return j, nil
}

// demand fills in what the rules require for an action, and returns the routes that they name.
func (e *Executor) demand(ctx context.Context, ask *desk.Ask, c *filing, address fermata.Address) (routes []string, err error) {
	if e.config.Desk.Rules == nil {
		return nil, nil
	}
	if c.key, err = e.chargedAs(ctx, c, address, ask.ID); err != nil {
		return nil, err
	}
	j, err := e.judge(ctx, c, address, ask.Asked.Action, ask.Args)
	if err != nil {
		return nil, err
	}
	if j.Verdict == policy.Deny {
		return nil, e.denyAsking(ctx, c, j, ask)
	}
	ask.Asked.Risk = j.rated.Risk
	if within(address, driftSegment) { // the same action is asked about again, of the same people
		return nil, e.demandAgain(ctx, ask, c, address)
	}
	if err := e.keepRuling(ctx, c, j, replay.Asked, c.ruledKey(replay.Asked, ask.ID, nil), ask.ID); err != nil {
		return nil, err
	}
	ask.Asked.Policy, ask.Asked.Rules, ask.Asked.Reason = j.Policy, j.Rules, j.Reason
	if j.Need == nil { // the rules allow it, but the graph itself wants it asked
		return nil, nil
	}
	fixed := len(ask.Need.Editable) == 0
	ask.Need = requirement(*j.Need)
	if fixed {
		ask.Need.Editable = nil
	}
	return j.Need.Routes, nil
}

// denyAsking refuses to ask about an action that the rules deny. The run fails with it; the denial is written in any case.
func (e *Executor) denyAsking(ctx context.Context, c *filing, j *judgement, ask *desk.Ask) error {
	stands := &filing{run: c.run, dossier: c.dossier, now: c.now}
	if err := e.deny(ctx, stands, j, c.ruledKey(replay.Denied, ask.ID, nil), ask.Asked.Digest, ask.ID); err != nil {
		return err
	}
	c.stands = stands.Beside //mutate:refused-interrupt-audited
	return &deniedError{j.Reason}
}

// deniedError says that the rules do not let an action be asked about at all.
type deniedError struct{ reason string }

func (e *deniedError) Error() string { return "the rules deny it: " + e.reason }

// requirement translates a requirement from package policy to package desk.
func requirement(need policy.Requirement) desk.Requirement {
	r := desk.Requirement{
		Denials: need.DenyCount, Editable: need.Editable, MinAuth: desk.Auth(need.MinAuth), Deadline: desk.Duration(need.Deadline),
		OnTimeout: desk.OnTimeout(need.OnTimeout),
	}
	for _, g := range need.Groups {
		r.Groups = append(r.Groups, desk.Group{From: g.From, Count: g.Count, Widen: g.Widen})
	}
	for _, duty := range need.Exclude {
		r.Exclude = append(r.Exclude, desk.Duty(duty))
	}
	for _, verb := range need.Verbs {
		r.Verbs = append(r.Verbs, desk.Verb(verb))
	}
	return r
}

// edited judges the arguments that somebody wants to approve in the place of those that were asked for.
func (e *Executor) edited(ctx context.Context, c *filing, address fermata.Address, action string) desk.Policy {
	if e.config.Desk.Rules == nil {
		return nil
	}
	return func(args json.RawMessage) (desk.Ruling, error) {
		j, err := e.judge(ctx, c, address, action, args)
		if err != nil {
			return desk.Ruling{}, err
		}
		c.edit = j
		ruling := desk.Ruling{Deny: j.Verdict == policy.Deny, Reason: j.Reason}
		if j.Need != nil {
			need := requirement(*j.Need)
			ruling.Need = &need
		}
		return ruling, nil
	}
}

// chargeFor charges an action that people approved to the counters of the rules, in the transaction of the decision. If a limit was used up since the
// question was asked, the rules deny the action now, and the approval is refused.
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
	if j.Verdict == policy.Deny {
		return refusal(w.asked, &desk.RefusedError{Act: desk.NameApprove, Who: strings.Join(final.By, ", "), Err: desk.ErrDenied, Detail: j.Reason})
	}
	if final.Args != nil || !within(address, driftSegment) { // else it is the ruling on the first yes once more
		if err := e.keepRuling(ctx, c, j, replay.Approved, c.ruledKey(replay.Approved, w.Interrupt, nil), w.Interrupt); err != nil {
			return err
		}
	}
	return e.charge(ctx, c, j.Charges) //mutate:approved-action-charged
}
