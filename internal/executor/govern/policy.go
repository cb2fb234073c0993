package govern

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/executor/history"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/replay"
	"github.com/fermata-go/fermata/internal/store"
)

// ExecutionPolicy returns the policy for the actions of an execution, or nil if there is none. Its
// rulings are visible in counters and the audit log. So flush saves the state that led to the
// action before: otherwise a run that is executed again might come to another action, and this one
// would have been charged in vain.
func (gv *Governor) ExecutionPolicy(run store.Run, d docs.RunMeta, flush func(context.Context) error) fermata.Policy {
	if gv.config.Policy == nil {
		return nil
	}
	return fermata.PolicyFunc(func(ctx context.Context, action fermata.ActionRequest) (fermata.Ruling, error) {
		if history.HasSegmentAfterApproval(action.Address, history.EditSegment) {
			return fermata.Ruling{}, nil // edited arguments were judged when people approved them
		}
		var ruling fermata.Ruling
		err := gv.chargeQueue.WhileStale(ctx, run.Account, func() (err error) {
			ruling, err = gv.ruleOn(ctx, run, d, flush, action)
			return err
		})
		return ruling, retryLater(err, run.Attempts)
	})
}

// Session evaluates the policy within one unit of work. It reads each counter and each charge once,
// so that several actions of one transaction are charged together.
type Session struct {
	governor *Governor
	Tx       *txn.Tx
	History  *history.Run
	counters counters
	receipts map[string]*chargeReceipt // what actions were charged, by charge key
}

// NewSession begins the evaluation of the policy for a unit of work.
func (gv *Governor) NewSession(tx *txn.Tx, history *history.Run) *Session {
	return &Session{governor: gv, Tx: tx, History: history, counters: make(counters), receipts: make(map[string]*chargeReceipt)}
}

// retryLater makes the execution retry after an error that is not the run's fault. The delay grows
// with the attempts: a store without space for some minutes must not use up all attempts of a run.
func retryLater(err error, attempts int) error {
	if err == nil || errors.Is(err, policy.ErrInput) || errors.Is(err, policy.ErrNoSet) {
		return err
	}
	return &fermata.RetryError{After: retry.DelayAfter(attempts), Err: err} //mutate:policy-store-error-retried
}

// ruleOn evaluates an action. If it is allowed, it is charged to the counters of the policy at
// once, together with the use of a grant. It returns ErrStale if another action was charged since
// the counters were read.
func (gv *Governor) ruleOn(ctx context.Context, run store.Run, d docs.RunMeta, flush func(context.Context) error, action fermata.ActionRequest) (fermata.Ruling, error) {
	// An earlier attempt may have charged it, or another owner of the run.
	key := actionChargeKey(run, action) //mutate:charge-key-set
	now, err := gv.store.Now(ctx)
	if err != nil {
		return fermata.Ruling{}, err
	}
	s := gv.NewSession(txn.New(run, d, now), history.New(gv.docs, run))
	j, err := s.Evaluate(ctx, key, action.Address, action.Action, action.Args)
	if err != nil {
		return fermata.Ruling{}, err
	}
	// nothing goes ahead: what people say to it is judged, and charged, when they say it
	if action.Blocked && j.Verdict != policy.Deny {
		return j.Ruling(), nil
	}
	if j.Decision, err = s.applyGrant(ctx, key, j.RatedInput, j.Decision, action.Digest); err != nil {
		return j.Ruling(), err
	}
	if j.Verdict != policy.Ask { //mutate:ruling-saved-first
		if err := flush(ctx); err != nil {
			return fermata.Ruling{}, err
		}
	}
	switch j.Verdict {
	case policy.Allow:
		err = s.recordAllowed(ctx, key, j)
	case policy.Deny:
		err = s.recordDenial(ctx, key, j, action.Digest) //mutate:denial-audited
	case policy.Ask: // it is judged again, and the ruling is filed, when the question is asked
	}
	return j.Ruling(), err
}

// recordAllowed charges an action that the policy allows, and adds the ruling.
func (s *Session) recordAllowed(ctx context.Context, key string, j *Evaluation) error {
	known := false
	err := s.addCharges(ctx, key, j.Charges) //mutate:allowed-action-charged
	if err == nil {
		err = s.AddCounters()
	}
	if err == nil && s.Tx.Run.Attempts > 0 { //mutate:ruling-recorded-once
		known, err = s.governor.hasRuling(ctx, s.Tx.Run, key)
	}
	if err == nil && !known {
		err = s.addRuling(ctx, j, replay.StageAllowed, key, "")
	}
	if err == nil && len(s.Tx.Documents) > 0 {
		err = s.governor.store.CommitWrites(ctx, s.Tx.Run.Account, s.Tx.Writes)
	}
	return err
}

// actionChargeKey names an action at its place in a run. Another round of a loop is another place.
func actionChargeKey(run store.Run, action fermata.ActionRequest) string {
	//mutate:charge-key-has-place
	return ident.Derive("c", run.ID, action.Address.String(), action.Path, action.Digest)
}

// fillInput adds to the input of the policy what the action itself does not say. The policy alone
// knows the effects, costs and risks of a tool.
func (s *Session) fillInput(in *policy.Input) {
	in.Account, in.Environment, in.Graph, in.Requester, in.At = s.Tx.Run.Account, s.governor.config.Environment, s.Tx.Run.Graph, s.Tx.Meta.Requester, s.Tx.Now
	in.Facts, in.Stated = s.Tx.Meta.Origin.Facts, s.Tx.Meta.Origin.Stated
	if s.governor.config.Zone != nil {
		in.Zone = s.governor.config.Zone.String()
	}
}

// Evaluation is what the policy decides on an action, and its input.
type Evaluation struct {
	policy.Decision                 // with grants
	withoutGrants   policy.Decision // without
	set             *policy.Set
	input           policy.Input
	RatedInput      policy.Input // with what the rules say of the tool
	answers         bool         // it answers an interrupt instead of people
}

// Ruling returns the decision for the run. The desk checks which arguments are edited.
func (j *Evaluation) Ruling() fermata.Ruling {
	r := j.Decision.Ruling()
	r.Editable = j.Requirement != nil && len(j.Requirement.Editable) > 0
	return r
}

// Evaluate evaluates the policy for an action of a run.
func (s *Session) Evaluate(ctx context.Context, key string, address fermata.Address, action string, args json.RawMessage) (*Evaluation, error) {
	return s.evaluateInput(ctx, key, policy.InputOf(fermata.ActionRequest{Run: s.Tx.Run.ID, Address: address, Action: action, Args: args}))
}

// evaluateInput evaluates the policy for an input.
func (s *Session) evaluateInput(ctx context.Context, key string, in policy.Input) (*Evaluation, error) {
	set := s.governor.CurrentPolicy()
	if set == nil {
		return nil, errs.ErrNoPolicy
	}
	j := &Evaluation{set: set, input: in}
	s.fillInput(&j.input)
	demands := set.CounterQueries(j.input)
	if err := s.loadCounters(ctx, key, demands); err != nil {
		return nil, err
	}
	j.input.History = s.sums(key, demands)
	var err error
	if j.withoutGrants, err = set.DecideContext(ctx, j.input); err != nil {
		return nil, err
	}
	j.Decision, j.RatedInput = j.withoutGrants, set.WithRating(j.input)
	return j, nil
}

// RequirementFor sets what the policy requires for an action, and returns the routes that it names.
func (s *Session) RequirementFor(ctx context.Context, ask *desk.RequestSpec, address fermata.Address) (routes []string, err error) {
	if s.governor.config.Policy == nil {
		return nil, nil
	}
	key, err := s.History.ChargeKeyFor(ctx, address, ask.ID)
	if err != nil {
		return nil, err
	}
	j, err := s.Evaluate(ctx, key, address, ask.Subject.Action, ask.Args)
	if err != nil {
		return nil, err
	}
	if j.Verdict == policy.Deny {
		return nil, s.denyRequest(ctx, j, ask)
	}
	ask.Subject.Risk = j.RatedInput.Risk
	// the same action is asked about again, of the same people
	if history.HasSegmentAfterApproval(address, history.TargetChangedSegment) {
		return nil, s.requirementOfReplaced(ctx, ask, address)
	}
	if err := s.addRuling(ctx, j, replay.StageAsked, rulingKey(s.Tx.Run, replay.StageAsked, ask.ID, nil), ask.ID); err != nil {
		return nil, err
	}
	ask.Subject.Policy, ask.Subject.Rules, ask.Subject.Reason = j.Policy, j.Rules, j.Reason
	if j.Requirement == nil { // the rules allow it, but the graph itself wants it asked
		return nil, nil
	}
	fixed := len(ask.Requirement.Editable) == 0
	ask.Requirement = *j.Requirement
	if fixed {
		ask.Requirement.Editable = nil
	}
	return j.Requirement.Routes, nil
}

// denyRequest denies an action instead of asking about it. The run fails with it; the denial is
// written in any case.
func (s *Session) denyRequest(ctx context.Context, j *Evaluation, ask *desk.RequestSpec) error {
	tx := txn.New(s.Tx.Run, s.Tx.Meta, s.Tx.Now)
	if err := s.governor.NewSession(tx, s.History).addDenial(ctx, j, rulingKey(tx.Run, replay.StageDenied, ask.ID, nil), ask.Subject.ActionDigest, ask.ID); err != nil {
		return err
	}
	return &DeniedError{rules: j.Rules, reason: j.Reason, Writes: tx.Writes} //mutate:refused-interrupt-audited
}

// DeniedError says that the policy does not let an action be asked about at all.
type DeniedError struct {
	rules  []string
	reason string
	Writes store.Writes // written when the run fails with it
}

func (e *DeniedError) Error() string {
	if len(e.rules) == 0 {
		return "the rules deny it: " + e.reason
	}
	return fmt.Sprintf("the rules deny it (%s): %s", strings.Join(e.rules, ", "), e.reason)
}

// requirementOfReplaced takes the requirement from the request that this one replaces. Its editor
// is still the last editor of the arguments.
func (s *Session) requirementOfReplaced(ctx context.Context, ask *desk.RequestSpec, address fermata.Address) error {
	last, err := s.History.ReplacedRequest(ctx, address, ask.Subject)
	if err != nil {
		return err
	}
	if last == nil {
		return &DeniedError{reason: "earlier approvers are unknown"}
	}
	//mutate:repeat-keeps-editor
	ask.Requirement, ask.Route, ask.Subject.Editor = last.Requirement, last.Route, last.LastEditor()
	ask.Subject.Policy, ask.Subject.Rules, ask.Subject.Reason = last.Subject.Policy, last.Subject.Rules, last.Subject.Reason
	return nil
}

// EditPolicy evaluates the arguments that an approver wants to approve instead of the requested
// ones. edit returns the last evaluation, or nil.
func (s *Session) EditPolicy(ctx context.Context, key string, address fermata.Address, action string) (check desk.EditPolicy, edit func() *Evaluation) {
	var last *Evaluation
	edit = func() *Evaluation { return last }
	if s.governor.config.Policy == nil {
		return nil, edit
	}
	return func(args json.RawMessage) (desk.EditRuling, error) {
		j, err := s.Evaluate(ctx, key, address, action, args)
		if err != nil {
			return desk.EditRuling{}, err
		}
		last = j
		return desk.EditRuling{Deny: j.Verdict == policy.Deny, Reason: j.Reason, Requirement: j.Requirement}, nil
	}, edit
}

// AddEditRuling adds the ruling on edited arguments.
func (s *Session) AddEditRuling(ctx context.Context, edit *Evaluation, interrupt string) error {
	if edit == nil {
		return nil
	}
	return s.addRuling(ctx, edit, replay.StageEdited, rulingKey(s.Tx.Run, replay.StageEdited, interrupt, edit.input.Args), interrupt)
}

// ChargeApproved charges an approved action to the counters of the policy, in the transaction of
// the decision. If a limit was used up since the request was created, the policy denies the action
// now, and the approval is refused.
func (s *Session) ChargeApproved(ctx context.Context, key string, interrupt store.Interrupt, asked fermata.ApprovalRequest, final desk.Decision) error {
	if s.governor.config.Policy == nil || final.Outcome != desk.OutcomeApproved {
		return nil
	}
	address, err := fermata.ParseAddress(interrupt.Address)
	if err != nil {
		return err
	}
	args := asked.Args
	if final.Args != nil {
		args = final.Args
	}
	j, err := s.Evaluate(ctx, key, address, asked.Action, args)
	if err != nil {
		return err
	}
	if j.Verdict == policy.Deny {
		return &desk.RefusedError{Command: desk.CommandApprove, Actor: strings.Join(final.By, ", "), Err: desk.ErrDenied, Detail: j.Reason}
	}
	// else it is the ruling on the first approval once more
	if final.Args != nil || !history.HasSegmentAfterApproval(address, history.TargetChangedSegment) {
		if err := s.addRuling(ctx, j, replay.StageApproved, rulingKey(s.Tx.Run, replay.StageApproved, interrupt.ID, nil), interrupt.ID); err != nil {
			return err
		}
	}
	return s.addCharges(ctx, key, j.Charges) //mutate:approved-action-charged
}
