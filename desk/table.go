package desk

import (
	"slices"
)

// rule says of an act who may do it, and what becomes of it in each state.
//
//	        ┌─ claim, view, ask back, comment, delegate, snooze, extend, escalate, a vote that is not enough ─┐
//	        ▼                                                                                                 │
//	Open ─▶ open ─────────────────────────────────────────────────────────────────────────────────────────────┘
//	         ├── the vote that makes the quorum, escape ──▶ answered
//	         ├── the deadline has passed, tick ───────────▶ expired
//	         └── withdraw ────────────────────────────────▶ withdrawn
type rule struct {
	who who
	// verb, if there is one, must be among those that the request allows.
	verb Verb
	// late is what becomes of it when the deadline has passed and the clock has not said so yet; over when the request has ended,
	// in whatever way.
	late, over verdict
}

// who may do something.
type who int

const (
	anybody  who = iota // who has a name
	human               // a person
	approver            // a person who may decide
	voter               // an approver who is authenticated well enough, and saw what there is to decide
	asker               // the requester, or the system
	quitter             // the requester, or an approver
	replier             // the run, the requester, or the system
	machine             // the system
)

// verdict is what becomes of an act.
type verdict int

const (
	refuse verdict = iota
	ignore         // nothing is changed, and nobody is bothered with an error
	allow
)

// rules is the state machine: every act has a row. In state open, with the deadline ahead, an act is allowed to those whom the row
// names, and has to find what it is about: a claim to release, a question to answer, a step to take.
var rules = map[Name]rule{
	NameView:       {who: human, late: ignore, over: ignore},
	NameComment:    {who: anybody},
	NameClaim:      {who: approver, verb: VerbClaim},
	NameRelease:    {who: human},
	NameApprove:    {who: voter, verb: VerbApprove},
	NameEdit:       {who: voter, verb: VerbEdit},
	NameReject:     {who: voter, verb: VerbReject},
	NameRespond:    {who: voter, verb: VerbRespond},
	NameEscape:     {who: quitter, verb: VerbEscape},
	NameAskBack:    {who: approver, verb: VerbAsk},
	NameAnswerBack: {who: replier},
	NameDelegate:   {who: approver, verb: VerbDelegate},
	NameSnooze:     {who: approver, verb: VerbSnooze},
	NameExtend:     {who: approver, verb: VerbExtend},
	NameEscalate:   {who: approver, verb: VerbEscalate},
	NameWithdraw:   {who: asker, late: allow},
	NameTick:       {who: machine, late: allow, over: ignore},
	NameDelivered:  {who: machine, late: ignore, over: ignore},
	NameOutage:     {who: machine, late: allow, over: ignore},
}

// judge says what becomes of an act, by state and deadline alone.
func (d *draft) judge(r rule) (verdict, error) {
	switch {
	case d.r.State != Open:
		return r.over, &OverError{State: d.r.State, Outcome: d.r.Final.Outcome, By: d.r.Final.By, At: d.r.Final.At}
	case !d.now.Before(d.r.Deadline):
		return r.late, &OverError{State: Expired, Outcome: Lapsed, At: d.r.Deadline}
	}
	return allow, nil
}

// may returns why the actor may not do this.
func (d *draft) may(r rule) error {
	actor := d.from.Actor
	if actor.ID == "" || actor.Kind == "" {
		return d.refuse(ErrNotYours, "nobody is named")
	}
	requester := actor.ID == d.r.Asked.Requester
	switch r.who {
	case human, approver, voter:
		if actor.Kind != Human {
			return d.refuse(ErrNotHuman, "")
		}
	case asker:
		if !requester && actor.Kind != System {
			return d.refuse(ErrNotYours, "")
		}
	case quitter:
		if actor.Kind != Human {
			return d.refuse(ErrNotHuman, "")
		}
	case replier:
		if !requester && actor.Kind == Human {
			return d.refuse(ErrNotYours, "the run is asked")
		}
	case machine:
		if actor.Kind != System {
			return d.refuse(ErrNotYours, "")
		}
	}
	if r.verb != "" && !slices.Contains(d.r.Need.Verbs, r.verb) {
		return d.refuse(ErrNotAllowed, "")
	}
	if r.who == approver || r.who == quitter && !requester || r.who == voter {
		if err := d.mayDecide(actor.ID, r.verb); err != nil {
			return err
		}
	}
	if r.who == voter {
		return d.mayVote()
	}
	return nil
}

// mayVote checks how well we know who decides, and what they saw.
func (d *draft) mayVote() error {
	if !d.from.Actor.Auth.AtLeast(d.r.Need.MinAuth) {
		return d.refuse(ErrWeakAuth, "this needs "+string(d.r.Need.MinAuth))
	}
	return d.fresh()
}

// fresh returns a [*ChangedError] if the actor has not seen what matters. Who names the digest of what there is to decide now has
// seen enough if they do not speak of a revision.
func (d *draft) fresh() error {
	seen := d.from.Seen
	changed := &ChangedError{Seen: max(1, seen.Rev), Rev: d.r.Rev, Digest: d.r.Digest()}
	if seen.Rev == 0 && seen.Digest == changed.Digest {
		return nil
	}
	for _, e := range d.r.Since(changed.Seen) {
		// What somebody did themselves, they know.
		if e.Matters && e.By != d.from.Actor.ID {
			changed.Changes = append(changed.Changes, e)
		}
	}
	other := seen.Digest != "" && seen.Digest != changed.Digest
	if len(changed.Changes) > 0 || other || seen.Rev > d.r.Rev || d.forgotten(changed.Seen) {
		return changed
	}
	return nil
}

// forgotten reports whether the log no longer reaches back to what somebody saw.
func (d *draft) forgotten(rev int64) bool {
	return len(d.r.Log) == maxLog && d.r.Log[0].Rev > rev+1
}

func (d *draft) refuse(err error, detail string) error {
	return &RefusedError{Act: d.act, Who: d.from.Actor.ID, Err: err, Detail: detail}
}
