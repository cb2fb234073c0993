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
func (e *Executor) executionPolicy(run store.Run, d runMeta, state *checkpointBuffer) fermata.Policy {
	if e.config.Desk.Policy == nil {
		return nil
	}
	return fermata.PolicyFunc(func(ctx context.Context, action fermata.ActionRequest) (fermata.Ruling, error) {
		if hasSegmentAfterApproval(action.Address, editSegment) {
			return fermata.Ruling{}, nil // edited arguments were judged when people approved them
		}
		var ruling fermata.Ruling
		err := e.chargeQueue.whileStale(ctx, run.Account, func() (err error) {
			ruling, err = e.ruleOn(ctx, run, d, state, action)
			return err
		})
		return ruling, retryLater(err, run.Attempts)
	})
}

// Segments that the engine adds to the address of an approval: for edited arguments, and for a target that has changed since.
const (
	editSegment          = "edit"
	targetChangedSegment = "drift"
)

// hasSegmentAfterApproval reports whether an address has such a segment after the last approval in it. What stands before that was chosen by the author of the graph.
func hasSegmentAfterApproval(address fermata.Address, segment string) bool {
	last := -1
	for n, s := range address {
		if s.Type == fermata.SegmentApprove {
			last = n
		}
	}
	return last >= 0 && slices.ContainsFunc(address[last:], func(s fermata.Segment) bool { return string(s.Type) == segment })
}

// retryLater has the execution tried again after an error that is not the run's fault. The more often that was done the longer it takes: a store without room for
// some minutes must not use up all attempts of a run.
func retryLater(err error, attempts int) error {
	if err == nil || errors.Is(err, policy.ErrInput) || errors.Is(err, policy.ErrNoSet) {
		return err
	}
	return &provider.RetryError{After: retryDelayAfter(attempts), Err: err} //mutate:policy-store-error-retried
}

// ruling judges an action. If it is allowed, it is charged to the counters of the rules at once, together with the use of a grant. It returns ErrStale if
// another action was charged since the counters were read.
func (e *Executor) ruleOn(ctx context.Context, run store.Run, d runMeta, state *checkpointBuffer, action fermata.ActionRequest) (fermata.Ruling, error) {
	// An earlier attempt may have charged it, or whoever has taken the run over meanwhile.
	c := &unitOfWork{run: run, meta: d, chargeKey: actionChargeKey(run, action)} //mutate:charge-key-set
	var err error
	if c.now, err = e.store.Now(ctx); err != nil {
		return fermata.Ruling{}, err
	}
	j, err := e.evaluate(ctx, c, action.Address, action.Action, action.Args)
	if err != nil {
		return fermata.Ruling{}, err
	}
	if action.Blocked && j.Verdict != policy.Deny { // emptyIndex goes ahead: what people say to it is judged, and charged, when they say it
		return j.Ruling(), nil
	}
	if j.Decision, err = e.applyGrant(ctx, c, j.ratedInput, j.Decision, action.Digest); err != nil {
		return j.Ruling(), err
	}
	if j.Verdict != policy.Ask { //mutate:ruling-saved-first
		if err := state.flush(ctx); err != nil {
			return fermata.Ruling{}, err
		}
	}
	switch j.Verdict {
	case policy.Allow:
		err = e.recordAllowed(ctx, c, j)
	case policy.Deny:
		err = e.recordDenial(ctx, c, j, action.Digest) //mutate:denial-audited
	case policy.Ask: // it is judged again, and the ruling is filed, when the question is asked
	}
	return j.Ruling(), err
}

// allowed charges an action that the rules allow, and files the ruling.
func (e *Executor) recordAllowed(ctx context.Context, c *unitOfWork, j *evaluation) error {
	known := false
	err := e.addCharges(ctx, c, j.Charges) //mutate:allowed-action-charged
	if err == nil {
		err = c.addCounters()
	}
	if err == nil && c.run.Attempts > 0 { //mutate:ruling-recorded-once
		known, err = e.hasRuling(ctx, c.run, c.chargeKey)
	}
	if err == nil && !known {
		err = e.addRuling(ctx, c, j, replay.StageAllowed, c.chargeKey, "")
	}
	if err == nil && len(c.Documents) > 0 {
		err = e.store.CommitWrites(ctx, c.run.Account, c.Writes)
	}
	return err
}

// actionChargeKey names an action at its place in a run. Another round of a loop is another place.
func actionChargeKey(run store.Run, action fermata.ActionRequest) string {
	//mutate:charge-key-has-place
	return ident.Derive("c", run.ID, action.Address.String(), action.Path, action.Digest)
}

// requestChargeKey names a question, however often it was asked: an approval that could not be used is not charged again when it is repeated.
func requestChargeKey(run store.Run, interrupt string) string {
	return ident.Derive("c", run.ID, providerID(interrupt))
}

// describe adds to the input of the rules what the action itself does not say. What its tool does to the world, costs and risks is known to the rules alone.
func (e *Executor) fillInput(in *policy.Input, c *unitOfWork) {
	in.Account, in.Environment, in.Graph, in.Requester, in.At = c.run.Account, e.config.Desk.Environment, c.run.Graph, c.meta.Requester, c.now
	if e.config.Desk.Zone != nil {
		in.Zone = e.config.Desk.Zone.String()
	}
}

// evaluation is what the rules say of an action, and what they looked at.
type evaluation struct {
	policy.Decision                 // with grants
	withoutGrants   policy.Decision // without
	set             *policy.Set
	input           policy.Input
	ratedInput      policy.Input // with what the rules say of the tool
}

// judge asks the rules about an action of a run.
func (e *Executor) evaluate(ctx context.Context, c *unitOfWork, address fermata.Address, action string, args json.RawMessage) (*evaluation, error) {
	return e.evaluateInput(ctx, c, policy.InputOf(fermata.ActionRequest{Run: c.run.ID, Address: address, Action: action, Args: args}))
}

// judgeInput asks the rules about an action as it is described to them.
func (e *Executor) evaluateInput(ctx context.Context, c *unitOfWork, in policy.Input) (*evaluation, error) {
	set := e.CurrentPolicy()
	if set == nil {
		return nil, ErrNoPolicy
	}
	j := &evaluation{set: set, input: in}
	e.fillInput(&j.input, c)
	demands := set.CounterQueries(j.input)
	if err := e.loadCounters(ctx, c, demands); err != nil {
		return nil, err
	}
	j.input.History = c.history(demands)
	var err error
	if j.withoutGrants, err = set.Decide(j.input); err != nil {
		return nil, err
	}
	j.Decision, j.ratedInput = j.withoutGrants, set.WithRating(j.input)
	return j, nil
}

// demand fills in what the rules require for an action, and returns the routes that they name.
func (e *Executor) requirementFor(ctx context.Context, ask *desk.RequestSpec, c *unitOfWork, address fermata.Address) (routes []string, err error) {
	if e.config.Desk.Policy == nil {
		return nil, nil
	}
	if c.chargeKey, err = e.chargeKeyFor(ctx, c, address, ask.ID); err != nil {
		return nil, err
	}
	j, err := e.evaluate(ctx, c, address, ask.Subject.Action, ask.Args)
	if err != nil {
		return nil, err
	}
	if j.Verdict == policy.Deny {
		return nil, e.denyRequest(ctx, c, j, ask)
	}
	ask.Subject.Risk = j.ratedInput.Risk
	if hasSegmentAfterApproval(address, targetChangedSegment) { // the same action is asked about again, of the same people
		return nil, e.requirementOfReplaced(ctx, ask, c, address)
	}
	if err := e.addRuling(ctx, c, j, replay.StageAsked, c.rulingKey(replay.StageAsked, ask.ID, nil), ask.ID); err != nil {
		return nil, err
	}
	ask.Subject.Policy, ask.Subject.Rules, ask.Subject.Reason = j.Policy, j.Rules, j.Reason
	if j.Requirement == nil { // the rules allow it, but the graph itself wants it asked
		return nil, nil
	}
	fixed := len(ask.Requirement.Editable) == 0
	ask.Requirement = deskRequirement(*j.Requirement)
	if fixed {
		ask.Requirement.Editable = nil
	}
	return j.Requirement.Routes, nil
}

// denyAsking refuses to ask about an action that the rules deny. The run fails with it; the denial is written in any case.
func (e *Executor) denyRequest(ctx context.Context, c *unitOfWork, j *evaluation, ask *desk.RequestSpec) error {
	stands := &unitOfWork{run: c.run, meta: c.meta, now: c.now}
	if err := e.addDenial(ctx, stands, j, c.rulingKey(replay.StageDenied, ask.ID, nil), ask.Subject.ActionDigest, ask.ID); err != nil {
		return err
	}
	c.failureWrites = stands.Writes //mutate:refused-interrupt-audited
	return &deniedError{j.Reason}
}

// deniedError says that the rules do not let an action be asked about at all.
type deniedError struct{ reason string }

func (e *deniedError) Error() string { return "the rules deny it: " + e.reason }

// deskRequirement translates a requirement from package policy to package desk.
func deskRequirement(need policy.Requirement) desk.Requirement {
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
func (e *Executor) editPolicy(ctx context.Context, c *unitOfWork, address fermata.Address, action string) desk.EditPolicy {
	if e.config.Desk.Policy == nil {
		return nil
	}
	return func(args json.RawMessage) (desk.EditRuling, error) {
		j, err := e.evaluate(ctx, c, address, action, args)
		if err != nil {
			return desk.EditRuling{}, err
		}
		c.editJudgement = j
		ruling := desk.EditRuling{Deny: j.Verdict == policy.Deny, Reason: j.Reason}
		if j.Requirement != nil {
			need := deskRequirement(*j.Requirement)
			ruling.Requirement = &need
		}
		return ruling, nil
	}
}

// chargeFor charges an action that people approved to the counters of the rules, in the transaction of the decision. If a limit was used up since the
// question was asked, the rules deny the action now, and the approval is refused.
func (e *Executor) chargeApproved(ctx context.Context, c *unitOfWork, w submission, final desk.Decision) error {
	if e.config.Desk.Policy == nil || final.Outcome != desk.OutcomeApproved {
		return nil
	}
	address, err := fermata.ParseAddress(w.interrupt.Address)
	if err != nil {
		return err
	}
	args := w.approval.Args
	if final.Args != nil {
		args = final.Args
	}
	j, err := e.evaluate(ctx, c, address, w.approval.Action, args)
	if err != nil {
		return err
	}
	if j.Verdict == policy.Deny {
		return toRefusedError(w.interrupt, &desk.RefusedError{Command: desk.CommandApprove, Actor: strings.Join(final.By, ", "), Err: desk.ErrDenied, Detail: j.Reason})
	}
	if final.Args != nil || !hasSegmentAfterApproval(address, targetChangedSegment) { // else it is the ruling on the first yes once more
		if err := e.addRuling(ctx, c, j, replay.StageApproved, c.rulingKey(replay.StageApproved, w.Interrupt, nil), w.Interrupt); err != nil {
			return err
		}
	}
	return e.addCharges(ctx, c, j.Charges) //mutate:approved-action-charged
}
