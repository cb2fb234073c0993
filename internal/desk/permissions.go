package desk

import (
	"slices"

	"github.com/fermata-go/fermata/internal/requirement"
)

// permission defines who may send a command, and how the command is handled in each state.
//
//	        ┌─ claim, view, clarification, comment, delegate, snooze, extend, escalate, vote without quorum ─┐
//	        ▼                                                                                               │
//	New ──▶ open ───────────────────────────────────────────────────────────────────────────────────────────┘
//	         ├── vote that reaches the quorum, abandon ─▶ decided ("answered"); with an undo window the
//	         │       decision is pending, and a tick at the end of the window makes it effective
//	         ├── tick after the deadline ───────────────▶ expired
//	         └── withdraw ──────────────────────────────▶ withdrawn
type permission struct {
	by performer
	// verb, if set, must be allowed by the request.
	verb requirement.Verb
	// afterDeadline is the handling if the deadline has passed but the request is not expired yet.
	// afterClose is the handling if the request is closed.
	afterDeadline, afterClose handling
	// whilePending is the handling if a decision is pending. The deadline does not matter then.
	whilePending handling
}

// performer is the class of actors that may send a command.
type performer int

const (
	byAnyone        performer = iota // any named actor
	byHuman                          // a person
	byHumanOrSystem                  // a person or the system
	byApprover                       // an eligible person
	// an approver with sufficient authentication who saw the current request
	byVoter
	byRequester           // the requester or the system
	byRequesterOrApprover // the requester or an approver
	byRequesterOrRun      // the run, the requester or the system
	bySystem              // the system
)

// handling is how a command is handled.
type handling int

const (
	handleRefuse handling = iota
	handleIgnore          // no change and no error
	handleAllow
)

// permissions is the state machine: every command has a row. In state open, before the deadline, a
// command is allowed for the performers of its row. It also needs its object: a claim to release, a
// clarification to answer, a step to fire.
var permissions = map[CommandName]permission{
	CommandView:                {by: byHuman, afterDeadline: handleIgnore, afterClose: handleIgnore, whilePending: handleAllow},
	CommandComment:             {by: byAnyone, whilePending: handleAllow},
	CommandClaim:               {by: byApprover, verb: requirement.VerbClaim},
	CommandRelease:             {by: byHuman, whilePending: handleAllow},
	CommandApprove:             {by: byVoter, verb: requirement.VerbApprove},
	CommandEdit:                {by: byVoter, verb: requirement.VerbEdit},
	CommandReject:              {by: byVoter, verb: requirement.VerbReject},
	CommandRespond:             {by: byVoter, verb: requirement.VerbRespond},
	CommandAbandon:             {by: byRequesterOrApprover, verb: requirement.VerbAbandon, whilePending: handleAllow},
	CommandAskClarification:    {by: byApprover, verb: requirement.VerbAskClarification},
	CommandAnswerClarification: {by: byRequesterOrRun, whilePending: handleAllow},
	CommandDelegate:            {by: byApprover, verb: requirement.VerbDelegate},
	CommandSnooze:              {by: byApprover, verb: requirement.VerbSnooze},
	CommandExtend:              {by: byApprover, verb: requirement.VerbExtend},
	CommandEscalate:            {by: byApprover, verb: requirement.VerbEscalate},
	CommandUndo:                {by: byHumanOrSystem, whilePending: handleAllow},
	CommandWithdraw:            {by: byRequester, afterDeadline: handleAllow, whilePending: handleAllow},
	CommandTick:                {by: bySystem, afterDeadline: handleAllow, afterClose: handleIgnore, whilePending: handleAllow},
	CommandRecordDelivery:      {by: bySystem, afterDeadline: handleIgnore, afterClose: handleIgnore, whilePending: handleAllow},
	CommandRecordNoticeFailure: {by: bySystem, afterDeadline: handleAllow, afterClose: handleAllow, whilePending: handleAllow},
	CommandRecordOutage:        {by: bySystem, afterDeadline: handleAllow, afterClose: handleIgnore, whilePending: handleAllow},
}

// handlingOf returns the handling of a command by state and deadline alone.
func (d *update) handlingOf(r permission) (handling, error) {
	switch {
	case d.r.State != StateOpen:
		return r.afterClose, &ClosedError{State: d.r.State, Outcome: d.r.Decision.Outcome, By: d.r.Decision.By, At: d.r.Decision.At}
	case d.r.Pending != nil:
		return r.whilePending, d.refuse(ErrDecisionPending, d.r.Pending.withTime("2006-01-02 15:04:05 UTC"))
	case !d.now.Before(d.r.Deadline):
		return r.afterDeadline, &ClosedError{State: StateExpired, Outcome: OutcomeExpired, At: d.r.Deadline}
	}
	return handleAllow, nil
}

// checkActor returns why the actor may not send the command.
func (d *update) checkActor(r permission) error {
	actor := d.from.Actor
	if actor.ID == "" || actor.Kind == "" {
		return d.refuse(ErrNotPermitted, "no actor")
	}
	requester := actor.ID == d.r.Subject.Requester
	switch r.by {
	case byHuman, byApprover, byVoter:
		if actor.Kind != ActorHuman {
			return d.refuse(ErrNotHuman, "")
		}
	case byHumanOrSystem:
		if actor.Kind == ActorAgent {
			return d.refuse(ErrNotHuman, "")
		}
	case byRequester:
		if !requester && actor.Kind != ActorSystem {
			return d.refuse(ErrNotPermitted, "")
		}
	case byRequesterOrApprover:
		if !requester && actor.Kind != ActorHuman {
			return d.refuse(ErrNotHuman, "")
		}
	case byRequesterOrRun:
		if !requester && actor.Kind == ActorHuman {
			return d.refuse(ErrNotPermitted, "only the requester or the run can answer")
		}
	case bySystem:
		if actor.Kind != ActorSystem {
			return d.refuse(ErrNotPermitted, "")
		}
	}
	if r.verb != "" && !slices.Contains(d.r.Requirement.Verbs, r.verb) {
		return d.refuse(ErrNotAllowed, "")
	}
	if r.by == byApprover || r.by == byRequesterOrApprover && !requester || r.by == byVoter {
		if err := d.checkEligible(actor.ID, r.verb); err != nil {
			return err
		}
	}
	if r.by == byVoter {
		return d.checkVoter()
	}
	return nil
}

// checkVoter checks the authentication of the voter and what they saw.
func (d *update) checkVoter() error {
	if !d.from.Actor.Auth.AtLeast(d.r.Requirement.MinAuth) {
		return d.refuse(&WeakAuthError{d.r.Requirement.MinAuth}, "")
	}
	open, err := d.openStage()
	if err == nil {
		err = d.checkStage(d.from.Actor.ID, open)
	}
	if err != nil {
		return err
	}
	return d.checkSeen()
}

// checkSeen returns a [*ChangedError] if the actor has not seen a significant event. The current
// digest without a revision is sufficient.
func (d *update) checkSeen() error {
	seen := d.from.Seen
	changed := &ChangedError{Seen: max(1, seen.Rev), Rev: d.r.Rev, Digest: d.r.Digest()}
	if seen.Rev == 0 && seen.Digest == changed.Digest && d.isRendered(seen.Rendering) {
		return nil
	}
	for _, e := range d.r.EventsSince(changed.Seen) {
		// Actors know their own changes.
		if e.Significant && e.By != d.from.Actor.ID {
			changed.Changes = append(changed.Changes, e)
		}
	}
	other := seen.Digest != "" && seen.Digest != changed.Digest || !d.isRendered(seen.Rendering)
	if len(changed.Changes) > 0 || other || seen.Rev > d.r.Rev || d.logTruncated(changed.Seen) {
		return changed
	}
	return nil
}

// logTruncated reports whether the log no longer reaches back to a revision.
func (d *update) logTruncated(rev int64) bool {
	return len(d.r.Log) == maxLog && d.r.Log[0].Rev > rev+1
}

func (d *update) refuse(err error, detail string) error {
	return &RefusedError{Command: d.command, Actor: d.from.Actor.ID, Err: err, Detail: detail}
}
