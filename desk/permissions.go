package desk

import (
	"slices"
)

// permission says of an act who may do it, and what becomes of it in each state.
//
//	        ┌─ claim, view, ask back, comment, delegate, snooze, extend, escalate, a vote that is not enough ─┐
//	        ▼                                                                                                 │
//	Open ─▶ open ─────────────────────────────────────────────────────────────────────────────────────────────┘
//	         ├── the vote that makes the quorum, escape ──▶ answered
//	         ├── the deadline has passed, tick ───────────▶ expired
//	         └── withdraw ────────────────────────────────▶ withdrawn
type permission struct {
	by performer
	// verb, if there is one, must be among those that the request allows.
	verb Verb
	// late is what becomes of it when the deadline has passed and the clock has not said so yet; over when the request has ended,
	// in whatever way.
	afterDeadline, afterClose handling
}

// performer may do something.
type performer int

const (
	byAnyone              performer = iota // performer has a name
	byHuman                                // a person
	byApprover                             // a person who may decide
	byVoter                                // an approver who is authenticated well enough, and saw what there is to decide
	byRequester                            // the requester, or the system
	byRequesterOrApprover                  // the requester, or an approver
	byRequesterOrRun                       // the run, the requester, or the system
	bySystem                               // the system
)

// handling is what becomes of an act.
type handling int

const (
	handleRefuse handling = iota
	handleIgnore          // nothing is changed, and nobody is bothered with an error
	handleAllow
)

// permissions is the state machine: every act has a row. In state open, with the deadline ahead, an act is allowed to those whom the row
// names, and has to find what it is about: a claim to release, a question to answer, a step to take.
var permissions = map[CommandName]permission{
	CommandView:                {by: byHuman, afterDeadline: handleIgnore, afterClose: handleIgnore},
	CommandComment:             {by: byAnyone},
	CommandClaim:               {by: byApprover, verb: VerbClaim},
	CommandRelease:             {by: byHuman},
	CommandApprove:             {by: byVoter, verb: VerbApprove},
	CommandEdit:                {by: byVoter, verb: VerbEdit},
	CommandReject:              {by: byVoter, verb: VerbReject},
	CommandRespond:             {by: byVoter, verb: VerbRespond},
	CommandAbandon:             {by: byRequesterOrApprover, verb: VerbAbandon},
	CommandAskClarification:    {by: byApprover, verb: VerbAskClarification},
	CommandAnswerClarification: {by: byRequesterOrRun},
	CommandDelegate:            {by: byApprover, verb: VerbDelegate},
	CommandSnooze:              {by: byApprover, verb: VerbSnooze},
	CommandExtend:              {by: byApprover, verb: VerbExtend},
	CommandEscalate:            {by: byApprover, verb: VerbEscalate},
	CommandWithdraw:            {by: byRequester, afterDeadline: handleAllow},
	CommandTick:                {by: bySystem, afterDeadline: handleAllow, afterClose: handleIgnore},
	CommandRecordDelivery:      {by: bySystem, afterDeadline: handleIgnore, afterClose: handleIgnore},
	CommandRecordOutage:        {by: bySystem, afterDeadline: handleAllow, afterClose: handleIgnore},
}

// judge says what becomes of an act, by state and deadline alone.
func (d *update) handlingOf(r permission) (handling, error) {
	switch {
	case d.r.State != StateOpen:
		return r.afterClose, &ClosedError{State: d.r.State, Outcome: d.r.Decision.Outcome, By: d.r.Decision.By, At: d.r.Decision.At}
	case !d.now.Before(d.r.Deadline):
		return r.afterDeadline, &ClosedError{State: StateExpired, Outcome: OutcomeExpired, At: d.r.Deadline}
	}
	return handleAllow, nil
}

// may returns why the actor may not do this.
func (d *update) checkActor(r permission) error {
	actor := d.from.Actor
	if actor.ID == "" || actor.Kind == "" {
		return d.refuse(ErrNotPermitted, "nobody is named")
	}
	requester := actor.ID == d.r.Subject.Requester
	switch r.by {
	case byHuman, byApprover, byVoter:
		if actor.Kind != ActorHuman {
			return d.refuse(ErrNotHuman, "")
		}
	case byRequester:
		if !requester && actor.Kind != ActorSystem {
			return d.refuse(ErrNotPermitted, "")
		}
	case byRequesterOrApprover:
		if actor.Kind != ActorHuman {
			return d.refuse(ErrNotHuman, "")
		}
	case byRequesterOrRun:
		if !requester && actor.Kind == ActorHuman {
			return d.refuse(ErrNotPermitted, "the run is asked")
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

// mayVote checks how well we know who decides, and what they saw.
func (d *update) checkVoter() error {
	if !d.from.Actor.Auth.AtLeast(d.r.Requirement.MinAuth) {
		return d.refuse(ErrWeakAuth, "this needs "+string(d.r.Requirement.MinAuth))
	}
	return d.checkSeen()
}

// fresh returns a [*ChangedError] if the actor has not seen what matters. Who names the digest of what there is to decide now has
// seen enough if they do not speak of a revision.
func (d *update) checkSeen() error {
	seen := d.from.Seen
	changed := &ChangedError{Seen: max(1, seen.Rev), Rev: d.r.Rev, Digest: d.r.Digest()}
	if seen.Rev == 0 && seen.Digest == changed.Digest {
		return nil
	}
	for _, e := range d.r.EventsSince(changed.Seen) {
		// EventType somebody did themselves, they know.
		if e.Significant && e.By != d.from.Actor.ID {
			changed.Changes = append(changed.Changes, e)
		}
	}
	other := seen.Digest != "" && seen.Digest != changed.Digest
	if len(changed.Changes) > 0 || other || seen.Rev > d.r.Rev || d.logTruncated(changed.Seen) {
		return changed
	}
	return nil
}

// forgotten reports whether the log no longer reaches back to what somebody saw.
func (d *update) logTruncated(rev int64) bool {
	return len(d.r.Log) == maxLog && d.r.Log[0].Rev > rev+1
}

func (d *update) refuse(err error, detail string) error {
	return &RefusedError{Command: d.command, Actor: d.from.Actor.ID, Err: err, Detail: detail}
}
