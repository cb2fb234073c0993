package desk

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"
)

// Env is what an act needs to know of the world.
type Env struct {
	// Now is the time by the clock that deadlines are judged by.
	Now time.Time
	// Directory knows who is in which group now.
	Directory Directory
	// Args are the arguments that were asked for. They are needed for [ApproveEdited] alone.
	Args json.RawMessage
	// EditPolicy says what edited arguments require; nil requires nothing more.
	Policy EditPolicy
	// PriorApprovers approve something else in the same run by now, beside those of [Subject]. They are not kept: a yes may be taken back.
	PriorApprovers []string
}

// Directory knows who is in which group. Who is one of the names that a [Group] has, as group:dba; [PrincipalAnyone], [PrincipalRequester] and
// user: are not asked for. An error means that nobody knows, and refuses the act with [ErrDirectoryUnavailable].
type Directory interface {
	Member(who, person string) (bool, error)
}

// StaticDirectory is a directory of lists: group:dba → ann, bob.
type StaticDirectory map[string][]string

// Member looks into the list.
func (m StaticDirectory) Member(who, person string) (bool, error) {
	return slices.Contains(m[who], person), nil
}

// EditPolicy says what other arguments require. An error refuses the edit with [ErrPolicyUnavailable].
type EditPolicy func(args json.RawMessage) (EditRuling, error)

// EditRuling is a policy's word on edited arguments.
type EditRuling struct {
	// Deny refuses the edit, for Reason.
	Deny   bool
	Reason string
	// Need, if there is one, is merged with what is required already.
	Requirement *Requirement
}

// Change is what an act has done. All of it is to be stored together, if the request still has the revision that it had.
type Change struct {
	Request Request
	// NextDue is when the clock has something to do; zero if it has nothing to do any more.
	NextDue time.Time
	// Notices are for the outbox, Facts for the audit.
	Notices []Notice
	Events  []Event
	// Decision is set by the act that ended the request.
	Decision *Decision
}

// Changed reports whether there is anything to store. Otherwise the request is as it was.
func (c Change) Changed() bool { return len(c.Events) > 0 }

// RequestSpec is what a request is made of.
type RequestSpec struct {
	// ID is that of the interrupt.
	ID      string
	Subject Subject
	// Args are the arguments of the action. They are not stored.
	Args json.RawMessage
	// Need, if nothing in it is set, is [OnePerson]; without groups alone, anyone counts. A route without steps is [DefaultRoute].
	Requirement Requirement
	Route       Route
}

// New makes a request of a question that becomes visible, and does what its route says for the beginning.
func New(ask RequestSpec, env Env) (Change, error) {
	now := env.Now.UTC().Round(0)
	if reflect.DeepEqual(ask.Requirement, Requirement{}) {
		ask.Requirement = OnePerson()
	}
	if len(ask.Requirement.Groups) == 0 {
		ask.Requirement.Groups = OnePerson().Groups
	}
	if len(ask.Route.Steps) == 0 {
		ask.Route = DefaultRoute()
	}
	if err := ask.check(); err != nil {
		return Change{}, err
	}
	if ask.Args != nil {
		argsDigest, err := canonicalDigest(ask.Args)
		if err != nil {
			return Change{}, fmt.Errorf("%w: the arguments: %w", ErrInvalid, err)
		}
		ask.Subject.ArgsDigest = argsDigest
	}
	r := Request{
		V: Version, ID: ask.ID, State: StateOpen, Created: now, Subject: ask.Subject, Requirement: ask.Requirement, Route: ask.Route,
		Deadline: ask.Route.deadline(now, time.Time{}, ask.Requirement.maxOpen()),
	}.clone()
	r.RouteProgress = RouteProgress{Epoch: 1, Base: r.Route.startAt(now, r.Deadline)}
	d := &update{r: r, env: env, now: now, command: "ask", from: From{Actor: SystemActor("run")}}
	d.logEvent(EventAsked, "asked", map[string]string{"route": ask.Route.Name, "route_digest": ask.Route.Digest(), "shown": ask.Subject.ShownDigest})
	if err := d.updateProgress(); err != nil {
		return Change{}, err
	}
	d.runDueSteps()
	return d.finish(), nil
}

func (a *RequestSpec) check() error {
	usual := questionVerbs
	if a.Subject.Action != "" {
		usual = actionVerbs
	}
	if a.ID == "" || a.Subject.Kind == "" || (a.Subject.Action == "") != (a.Subject.ActionDigest == "") {
		return fmt.Errorf("%w: it needs an id, a kind, and for an action a name and a digest", ErrInvalid)
	}
	if len(a.Requirement.Verbs) == 0 {
		a.Requirement.Verbs = slices.Clone(usual)
	}
	// Only an action can be approved, and only a question that is none can be answered in any other way.
	a.Requirement.Verbs = slices.DeleteFunc(slices.Clone(a.Requirement.Verbs), func(v Verb) bool {
		switch v {
		case VerbApprove, VerbReject:
			return a.Subject.Action == ""
		case VerbEdit:
			return a.Subject.Action == "" || len(a.Requirement.Editable) == 0
		case VerbRespond:
			return a.Subject.Action != ""
		}
		return false
	})
	if err := a.Requirement.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := errors.Join(a.Route.check().errs...); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// Apply does an act, and returns what it changes. The request that is given stays as it is. An error changes nothing; [Code] has
// a word for it.
func Apply(r Request, act Command, env Env) (Change, error) {
	if r.V != Version {
		return Change{}, &VersionError{Version: r.V}
	}
	if act == nil {
		return Change{}, fmt.Errorf("%w: nothing is to be done", ErrInvalid)
	}
	d := &update{r: r.clone(), env: env, now: env.Now.UTC().Round(0), command: act.name(), from: act.from()}
	rule, ok := permissions[d.command]
	if !ok {
		return Change{}, d.refuse(ErrNotAllowed, "")
	}
	verdict, over := d.handlingOf(rule)
	switch verdict {
	case handleRefuse:
		return Change{}, over
	case handleIgnore:
		return Change{Request: r, NextDue: d.nextDue()}, nil
	}
	if err := d.checkActor(rule); err != nil {
		return Change{}, err
	}
	if err := act.apply(d); err != nil {
		return Change{}, err
	}
	if len(d.events) == 0 {
		return Change{Request: r, NextDue: d.nextDue()}, nil
	}
	return d.finish(), nil
}

// IsRepeat reports whether an act was done before: somebody repeats it because they got no answer. Something else under the same key is [ErrKeyReused]. What is
// no longer among the latest events is not known any more.
func IsRepeat(r Request, act Command) (bool, error) {
	from := act.from()
	if from.IdempotencyKey.Key == "" {
		return false, nil
	}
	for _, e := range r.Log {
		if e.IdempotencyKey == nil || e.By != from.Actor.ID || e.IdempotencyKey.Key != from.IdempotencyKey.Key {
			continue
		}
		if *e.IdempotencyKey != from.IdempotencyKey {
			return false, &RefusedError{Command: act.name(), Actor: from.Actor.ID, Err: ErrKeyReused}
		}
		return true, nil
	}
	return false, nil
}

// update is a request in the middle of an act.
type update struct {
	r        Request
	env      Env
	now      time.Time
	command  CommandName
	from     From
	notices  []Notice
	events   []Event
	decision *Decision
}

// change ends the act.
func (d *update) finish() Change {
	d.r.Rev++
	if extra := len(d.r.Log) - maxLog; extra > 0 {
		d.r.Log = slices.Clone(d.r.Log[extra:])
	}
	if d.r.Rev > 1 && d.changesDisplay() {
		d.addNotice(NoticeRerender, d.events[0].Type, nil)
	}
	return Change{Request: d.r, NextDue: d.nextDue(), Notices: d.notices, Events: d.events, Decision: d.decision}
}

// visible reports whether copies of the request look different now.
func (d *update) changesDisplay() bool {
	return slices.ContainsFunc(d.events, func(e Event) bool {
		return e.Type != EventViewed && e.Type != EventDelivered && e.Type != EventRouteStep
	})
}

// log notes what has happened.
func (d *update) logEvent(what EventType, text string, detail map[string]string) {
	actor := d.from.Actor
	matters := what == EventEdited || what == EventRequirementRaised || what == EventClarificationAnswered || what == EventVoted && detail["verb"] == string(VerbReject)
	e := Event{
		Rev: d.r.Rev + 1, At: d.now, Type: what, By: actor.ID, Kind: actor.Kind, Auth: actor.Auth, Via: d.from.Via, Text: text,
		Significant: matters, Detail: detail,
	}
	d.events = append(d.events, e)
	if d.from.IdempotencyKey.Key != "" {
		e.IdempotencyKey = new(d.from.IdempotencyKey)
	}
	d.r.Log = append(d.r.Log, e)
}

// tell makes a notice that comes from no step.
func (d *update) addNotice(kind NoticeKind, about EventType, targets []string) {
	rev := d.r.Rev
	if kind != NoticeRerender { // change has not raised it yet
		rev++
	}
	n := Notice{
		Key: changeKey(d.r.ID, rev, kind, about), Request: d.r.ID, Rev: rev, Kind: kind, Targets: targets, Epoch: d.r.RouteProgress.Epoch, Cause: about,
	}
	if kind == NoticeResolve {
		n.Incident = d.r.IncidentKey()
	}
	d.notices = append(d.notices, n)
}

// end decides the request.
func (d *update) conclude(f Decision) {
	f.At = d.now
	d.r.State, d.r.Decision, d.decision = f.Outcome.State(), &f, &f
	d.r.Claim, d.r.Snoozed = nil, time.Time{}
	d.logEvent(EventDecided, "ended it: "+string(f.Outcome), map[string]string{"outcome": string(f.Outcome), "digest": f.Digest, "reason": f.Reason})
	if len(d.r.RouteProgress.Paged) > 0 {
		d.addNotice(NoticeResolve, EventDecided, slices.Clone(d.r.RouteProgress.Paged))
	}
	d.addNotice(NoticeRequester, EventDecided, d.requesterTargets())
}

func (d *update) requesterTargets() []string { return d.resolveTargets([]string{TargetRequester}) }

// MaxText is how many characters somebody may write at once.
const MaxText = 4000

// maxItems is the most that people can add to a list of a document.
const maxItems = 200

// text checks what somebody wrote.
func (d *update) checkText(s string, needed bool) error {
	if !utf8.ValidString(s) {
		return d.refuse(ErrInvalidText, "it is no text")
	}
	if n := utf8.RuneCountInString(s); n > MaxText || needed && n == 0 {
		return d.refuse(ErrInvalidText, fmt.Sprintf("%d characters are not in 1 to %d", n, MaxText))
	}
	return nil
}

// room refuses to let a list grow without end. Half of it is for people: an agent must not be able to leave them no place for a word.
func (d *update) checkCapacity(n int) error {
	most := maxItems
	if d.from.Actor.Kind == ActorAgent {
		most /= 2
	}
	if n >= most {
		return d.refuse(ErrTooMany, fmt.Sprintf("more than %d", most))
	}
	return nil
}
