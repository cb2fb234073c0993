package desk

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/requirement"
)

// Env is the environment of a command.
type Env struct {
	// Now is the current time of the clock that deadlines use.
	Now time.Time
	// Directory knows the current group members.
	Directory Directory
	// Args are the requested arguments. Edits and conditions of approvals need them.
	Args json.RawMessage
	// Policy returns what edited arguments require. Nil requires nothing more.
	Policy EditPolicy
	// CheckCondition returns why the condition onlyIf of an approval does not hold now for these
	// arguments, or nil. Without it no approval may have one. An error that wraps
	// [ErrPolicyUnavailable] refuses the command.
	CheckCondition func(onlyIf string, args json.RawMessage) error
	// PriorApprovers currently approve another action of the same run, in addition to those in
	// [Subject]. They are not stored, because an approval can be withdrawn.
	PriorApprovers []string
}

// Directory knows the members of groups. Member gets a name as in [Group], for example group:dba.
// Apply does not look up [PrincipalAnyone], [PrincipalRequester] and user: names. An error refuses
// the command with [ErrDirectoryUnavailable].
type Directory interface {
	Member(who, person string) (bool, error)
}

// StaticDirectory is a directory of lists: group:dba → ann, bob.
type StaticDirectory map[string][]string

// Member reports whether the list of who contains person.
func (m StaticDirectory) Member(who, person string) (bool, error) {
	return slices.Contains(m[who], person), nil
}

// EditPolicy returns what edited arguments require. An error refuses the edit with
// [ErrPolicyUnavailable].
type EditPolicy func(args json.RawMessage) (EditRuling, error)

// EditRuling is the ruling of a policy on edited arguments.
type EditRuling struct {
	// Deny refuses the edit with Reason.
	Deny   bool
	Reason string
	// Requirement, if not nil, is merged with the existing requirement.
	Requirement *requirement.Requirement
}

// Change is the result of a command. The caller stores all of it together, and only if the stored
// request still has the revision that the command was applied to.
type Change struct {
	Request Request
	// NextDue is when the next timer is due. It is zero if there is none.
	NextDue time.Time
	// Notices are for the outbox, Events for the audit log.
	Notices []Notice
	Events  []Event
	// Decision is set by the command that closed the request.
	Decision *Decision
	// RenderedText is the text of a new rendering, to be kept as evidence.
	RenderedText string
}

// Changed reports whether there is anything to store.
func (c Change) Changed() bool { return len(c.Events) > 0 }

// RequestSpec describes a new request.
type RequestSpec struct {
	// ID is the id of the interrupt.
	ID      string
	Subject Subject
	// Args are the arguments of the action. They are not stored.
	Args json.RawMessage
	// Requirement defaults to [OnePerson]. If only its groups are missing, anyone counts. A route
	// without steps defaults to [DefaultRoute].
	Requirement requirement.Requirement
	Route       Route
	// DefaultAnswer is the answer that the question declares for a deadline that passes. It is used
	// only with [DefaultOnTimeout], and never for an action, a gate, a hold or an effect in doubt.
	DefaultAnswer json.RawMessage
}

// New creates a request and runs the first steps of its route.
func New(ask RequestSpec, env Env) (Change, error) {
	now := env.Now.UTC().Round(0)
	if reflect.DeepEqual(ask.Requirement, requirement.Requirement{}) {
		ask.Requirement = requirement.OnePerson()
	}
	if len(ask.Requirement.Groups) == 0 {
		ask.Requirement.Groups = requirement.OnePerson().Groups
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
			return Change{}, fmt.Errorf("%w: arguments: %w", ErrInvalid, err)
		}
		ask.Subject.ArgsDigest = argsDigest
	}
	r := Request{
		V: Version, ID: ask.ID, State: StateOpen, Created: now, Subject: ask.Subject, Requirement: ask.Requirement, Route: ask.Route,
		Deadline: ask.Route.deadline(now, time.Time{}, ask.Requirement.MaxOpen()),
	}.clone()
	if ask.Requirement.OnTimeout == requirement.DefaultOnTimeout && ask.Subject.mayDefault() {
		r.DefaultAnswer = slices.Clone(ask.DefaultAnswer)
	}
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
	if a.ID == "" || a.Subject.Kind == "" || (a.Subject.Action == "") != (a.Subject.ActionDigest == "") {
		return fmt.Errorf("%w: id and kind are required; an action needs a name and a digest", ErrInvalid)
	}
	if len(a.Requirement.Verbs) == 0 {
		a.Requirement.Verbs = a.Subject.defaultVerbs()
	}
	a.Requirement.Verbs = slices.DeleteFunc(slices.Clone(a.Requirement.Verbs), func(v requirement.Verb) bool {
		switch v {
		case requirement.VerbEdit:
			return a.Subject.Action == "" || len(a.Requirement.Editable) == 0
		case requirement.VerbRespond:
			fixed := a.Subject.Kind == holdKind && a.Subject.Policy != "" && len(a.Requirement.Editable) == 0
			return fixed || !slices.Contains(a.Subject.defaultVerbs(), v)
		case requirement.VerbApprove, requirement.VerbReject:
			return !slices.Contains(a.Subject.defaultVerbs(), v)
		}
		return false
	})
	if a.Subject.Kind == fermata.EffectInDoubt.Name() {
		// only the facts answer this question
		if a.Requirement.OnEscalate = requirement.EscalateToNextStep; a.Requirement.OnTimeout == requirement.RejectOnTimeout {
			a.Requirement.OnTimeout = requirement.ExpireOnTimeout
		}
	}
	if err := a.Requirement.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := errors.Join(a.Route.check().errs...); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// defaultVerbs returns all verbs that people may use if no rule says otherwise. An action, a gate
// and a hold are approved or rejected; other requests are answered.
func (s Subject) defaultVerbs() []requirement.Verb {
	switch {
	case s.Action != "":
		return requirement.ActionVerbs
	case s.Kind == gateKind:
		return requirement.GateVerbs
	case s.Kind == holdKind:
		return requirement.HoldVerbs
	}
	return requirement.QuestionVerbs
}

// mayDefault reports whether a default answer is possible: never where it would permit something.
func (s Subject) mayDefault() bool {
	return s.Action == "" && !slices.Contains([]string{fermata.Approval.Name(), gateKind, holdKind, fermata.EffectInDoubt.Name()}, s.Kind)
}

// The kinds of gates and holds; their packages use this one.
const (
	gateKind = "approval-gate"
	holdKind = "hold"
)

// Apply applies a command and returns the change. It does not modify r. An error changes nothing;
// [Code] returns its code.
func Apply(r Request, cmd Command, env Env) (Change, error) {
	if r.V != Version {
		return Change{}, &VersionError{Version: r.V}
	}
	if cmd == nil {
		return Change{}, fmt.Errorf("%w: no command", ErrInvalid)
	}
	d := &update{r: r.clone(), env: env, now: env.Now.UTC().Round(0), command: cmd.name(), from: cmd.from()}
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
	if err := cmd.apply(d); err != nil {
		return Change{}, err
	}
	if len(d.events) == 0 {
		return Change{Request: r, NextDue: d.nextDue()}, nil
	}
	return d.finish(), nil
}

// IsRepeat reports whether the command was applied before under its idempotency key. It returns
// [ErrKeyReused] if the key was used for another command. Events that are no longer in the log are
// not recognized.
func IsRepeat(r Request, cmd Command) (bool, error) {
	from := cmd.from()
	if from.IdempotencyKey.Key == "" {
		return false, nil
	}
	for _, e := range r.Log {
		if e.IdempotencyKey == nil || e.By != from.Actor.ID || e.IdempotencyKey.Key != from.IdempotencyKey.Key {
			continue
		}
		if *e.IdempotencyKey != from.IdempotencyKey {
			return false, &RefusedError{Command: cmd.name(), Actor: from.Actor.ID, Err: ErrKeyReused}
		}
		return true, nil
	}
	return false, nil
}

// update is a request while a command is applied to it.
type update struct {
	r        Request
	env      Env
	now      time.Time
	command  CommandName
	from     From
	notices  []Notice
	events   []Event
	decision *Decision
	note     string // the reason of an approval

	renderedText string
}

// finish returns the change.
func (d *update) finish() Change {
	d.r.Rev++
	if extra := len(d.r.Log) - maxLog; extra > 0 {
		d.r.Log = slices.Clone(d.r.Log[extra:])
	}
	if d.r.Rev > 1 && d.changesDisplay() {
		d.addNotice(NoticeRerender, d.events[0].Type, nil)
	}
	return Change{Request: d.r, NextDue: d.nextDue(), Notices: d.notices, Events: d.events, Decision: d.decision, RenderedText: d.renderedText}
}

// changesDisplay reports whether posted copies of the request look different now.
func (d *update) changesDisplay() bool {
	return slices.ContainsFunc(d.events, func(e Event) bool { return e.Type.changesDisplay() })
}

// logEvent adds an event.
func (d *update) logEvent(what EventType, text string, detail map[string]string) {
	actor := d.from.Actor
	matters := what == EventEdited || what == EventRequirementRaised || what == EventClarificationAnswered || what == EventVoted && detail["verb"] == string(requirement.VerbReject)
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

// addNotice adds a notice that does not belong to a step.
func (d *update) addNotice(kind NoticeKind, about EventType, targets []string) {
	rev := d.r.Rev
	if kind != NoticeRerender { // finish has not incremented it yet
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

// conclude closes the request.
func (d *update) conclude(f Decision) { d.concludeWith(f, nil) }

// concludeWith closes the request and adds details to the event.
func (d *update) concludeWith(f Decision, more map[string]string) {
	f.At = d.now
	d.r.State, d.r.Decision, d.decision = f.Outcome.State(), &f, &f
	d.r.Claim, d.r.Snoozed, d.r.Pending = nil, time.Time{}, nil
	detail := map[string]string{"outcome": string(f.Outcome), "digest": f.Digest, "reason": f.Reason}
	maps.Copy(detail, more)
	d.logEvent(EventDecided, "closed it: "+string(f.Outcome), detail)
	if len(d.r.RouteProgress.Paged) > 0 {
		d.addNotice(NoticeResolve, EventDecided, slices.Clone(d.r.RouteProgress.Paged))
	}
	d.addNotice(NoticeRequester, EventDecided, d.requesterTargets())
}

func (d *update) requesterTargets() []string { return d.resolveTargets([]string{TargetRequester}) }

// MaxText is the maximum length of a text, in characters.
const MaxText = 4000

// maxItems is the maximum length of a list in a document that people can add to.
const maxItems = 200

// checkText checks a text from an actor.
func (d *update) checkText(s string, needed bool) error {
	if !utf8.ValidString(s) {
		return d.refuse(ErrInvalidText, "not valid UTF-8")
	}
	if n := utf8.RuneCountInString(s); n > MaxText || needed && n == 0 {
		return d.refuse(ErrInvalidText, fmt.Sprintf("%d characters; allowed are 1 to %d", n, MaxText))
	}
	return nil
}

// checkCapacity limits the length of a list. Agents may fill only half of it, so that people can
// always add entries.
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
