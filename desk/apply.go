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
	// Policy says what edited arguments require; nil requires nothing more.
	Policy Policy
	// PriorApprovers approve something else in the same run by now, beside those of [Asked]. They are not kept: a yes may be taken back.
	PriorApprovers []string
}

// Directory knows who is in which group. Who is one of the names that a [Group] has, as group:dba; [Anyone], [TheRequester] and
// user: are not asked for. An error means that nobody knows, and refuses the act with [ErrDirectory].
type Directory interface {
	Member(who, person string) (bool, error)
}

// Members is a directory of lists: group:dba → ann, bob.
type Members map[string][]string

// Member looks into the list.
func (m Members) Member(who, person string) (bool, error) {
	return slices.Contains(m[who], person), nil
}

// Policy says what other arguments require. An error refuses the edit with [ErrPolicy].
type Policy func(args json.RawMessage) (Ruling, error)

// Ruling is a policy's word on edited arguments.
type Ruling struct {
	// Deny refuses the edit, for Reason.
	Deny   bool
	Reason string
	// Need, if there is one, is merged with what is required already.
	Need *Requirement
}

// Change is what an act has done. All of it is to be stored together, if the request still has the revision that it had.
type Change struct {
	Request Request
	// Next is when the clock has something to do; zero if it has nothing to do any more.
	Next time.Time
	// Notices are for the outbox, Facts for the audit.
	Notices []Notice
	Facts   []Event
	// Final is set by the act that ended the request.
	Final *Final
}

// Changed reports whether there is anything to store. Otherwise the request is as it was.
func (c Change) Changed() bool { return len(c.Facts) > 0 }

// Ask is what a request is made of.
type Ask struct {
	// ID is that of the interrupt.
	ID    string
	Asked Asked
	// Args are the arguments of the action. They are not stored.
	Args json.RawMessage
	// Need, if nothing in it is set, is [OnePerson]; without groups alone, anyone counts. A route without steps is [DefaultRoute].
	Need  Requirement
	Route Route
}

// New makes a request of a question that becomes visible, and does what its route says for the beginning.
func New(ask Ask, env Env) (Change, error) {
	now := env.Now.UTC().Round(0)
	if reflect.DeepEqual(ask.Need, Requirement{}) {
		ask.Need = OnePerson()
	}
	if len(ask.Need.Groups) == 0 {
		ask.Need.Groups = OnePerson().Groups
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
		ask.Asked.Args = argsDigest
	}
	r := Request{
		V: Version, ID: ask.ID, State: Open, Created: now, Asked: ask.Asked, Need: ask.Need, Route: ask.Route,
		Deadline: ask.Route.deadline(now, time.Time{}, ask.Need.limit()),
	}.clone()
	r.Place = Place{Epoch: 1, Base: r.Route.begin(now, r.Deadline)}
	d := &draft{r: r, env: env, now: now, act: "ask", from: From{Actor: Service("run")}}
	d.log(WasAsked, "asked", map[string]string{"route": ask.Route.Name, "route_digest": ask.Route.Digest(), "shown": ask.Asked.Shown})
	if err := d.progress(); err != nil {
		return Change{}, err
	}
	d.run()
	return d.change(), nil
}

func (a *Ask) check() error {
	usual := questionVerbs
	if a.Asked.Action != "" {
		usual = actionVerbs
	}
	if a.ID == "" || a.Asked.Kind == "" || (a.Asked.Action == "") != (a.Asked.Digest == "") {
		return fmt.Errorf("%w: it needs an id, a kind, and for an action a name and a digest", ErrInvalid)
	}
	if len(a.Need.Verbs) == 0 {
		a.Need.Verbs = slices.Clone(usual)
	}
	// Only an action can be approved, and only a question that is none can be answered in any other way.
	a.Need.Verbs = slices.DeleteFunc(slices.Clone(a.Need.Verbs), func(v Verb) bool {
		switch v {
		case VerbApprove, VerbReject:
			return a.Asked.Action == ""
		case VerbEdit:
			return a.Asked.Action == "" || len(a.Need.Editable) == 0
		case VerbRespond:
			return a.Asked.Action != ""
		}
		return false
	})
	if err := a.Need.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := errors.Join(a.Route.check().errs...); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// Apply does an act, and returns what it changes. The request that is given stays as it is. An error changes nothing; [Code] has
// a word for it.
func Apply(r Request, act Act, env Env) (Change, error) {
	if r.V != Version {
		return Change{}, &VersionError{Version: r.V}
	}
	if act == nil {
		return Change{}, fmt.Errorf("%w: nothing is to be done", ErrInvalid)
	}
	d := &draft{r: r.clone(), env: env, now: env.Now.UTC().Round(0), act: act.name(), from: act.from()}
	rule, ok := rules[d.act]
	if !ok {
		return Change{}, d.refuse(ErrNotAllowed, "")
	}
	verdict, over := d.judge(rule)
	switch verdict {
	case refuse:
		return Change{}, over
	case ignore:
		return Change{Request: r, Next: d.next()}, nil
	}
	if err := d.may(rule); err != nil {
		return Change{}, err
	}
	if err := act.do(d); err != nil {
		return Change{}, err
	}
	if len(d.facts) == 0 {
		return Change{Request: r, Next: d.next()}, nil
	}
	return d.change(), nil
}

// Repeated reports whether an act was done before: somebody repeats it because they got no answer. Something else under the same key is [ErrReused]. What is
// no longer among the latest events is not known any more.
func Repeated(r Request, act Act) (bool, error) {
	from := act.from()
	if from.Once.Key == "" {
		return false, nil
	}
	for _, e := range r.Log {
		if e.Once == nil || e.By != from.Actor.ID || e.Once.Key != from.Once.Key {
			continue
		}
		if *e.Once != from.Once {
			return false, &RefusedError{Act: act.name(), Who: from.Actor.ID, Err: ErrReused}
		}
		return true, nil
	}
	return false, nil
}

// draft is a request in the middle of an act.
type draft struct {
	r       Request
	env     Env
	now     time.Time
	act     Name
	from    From
	notices []Notice
	facts   []Event
	final   *Final
}

// change ends the act.
func (d *draft) change() Change {
	d.r.Rev++
	if extra := len(d.r.Log) - maxLog; extra > 0 {
		d.r.Log = slices.Clone(d.r.Log[extra:])
	}
	if d.r.Rev > 1 && d.visible() {
		d.tell(Rerender, d.facts[0].What, nil)
	}
	return Change{Request: d.r, Next: d.next(), Notices: d.notices, Facts: d.facts, Final: d.final}
}

// visible reports whether copies of the request look different now.
func (d *draft) visible() bool {
	return slices.ContainsFunc(d.facts, func(e Event) bool { return e.What != WasViewed && e.What != WasDelivered && e.What != WasStep })
}

// log notes what has happened.
func (d *draft) log(what What, text string, detail map[string]string) {
	actor := d.from.Actor
	matters := what == WasEdited || what == WasStricter || what == WasReplied || what == WasVoted && detail["verb"] == string(VerbReject)
	e := Event{
		Rev: d.r.Rev + 1, At: d.now, What: what, By: actor.ID, Kind: actor.Kind, Auth: actor.Auth, Via: d.from.Via, Text: text,
		Matters: matters, Detail: detail,
	}
	d.facts = append(d.facts, e)
	if d.from.Once.Key != "" {
		e.Once = new(d.from.Once)
	}
	d.r.Log = append(d.r.Log, e)
}

// tell makes a notice that comes from no step.
func (d *draft) tell(kind NoticeKind, about What, targets []string) {
	rev := d.r.Rev
	if kind != Rerender { // change has not raised it yet
		rev++
	}
	n := Notice{
		Key: changeKey(d.r.ID, rev, kind, about), Request: d.r.ID, Rev: rev, Kind: kind, Targets: targets, Epoch: d.r.Place.Epoch, About: about,
	}
	if kind == Resolve {
		n.Incident = d.r.Incident()
	}
	d.notices = append(d.notices, n)
}

// end decides the request.
func (d *draft) end(f Final) {
	f.At = d.now
	d.r.State, d.r.Final, d.final = f.Outcome.State(), &f, &f
	d.r.Claim, d.r.Snoozed = nil, time.Time{}
	d.log(WasDecided, "ended it: "+string(f.Outcome), map[string]string{"outcome": string(f.Outcome), "digest": f.Digest, "reason": f.Reason})
	if len(d.r.Place.Paged) > 0 {
		d.tell(Resolve, WasDecided, slices.Clone(d.r.Place.Paged))
	}
	d.tell(TellRequester, WasDecided, d.requester())
}

func (d *draft) requester() []string { return d.resolve([]string{TargetRequester}) }

// MaxText is how many characters somebody may write at once.
const MaxText = 4000

// maxItems is the most that people can add to a list of a document.
const maxItems = 200

// text checks what somebody wrote.
func (d *draft) text(s string, needed bool) error {
	if !utf8.ValidString(s) {
		return d.refuse(ErrText, "it is no text")
	}
	if n := utf8.RuneCountInString(s); n > MaxText || needed && n == 0 {
		return d.refuse(ErrText, fmt.Sprintf("%d characters are not in 1 to %d", n, MaxText))
	}
	return nil
}

// room refuses to let a list grow without end. Half of it is for people: an agent must not be able to leave them no place for a word.
func (d *draft) room(n int) error {
	most := maxItems
	if d.from.Actor.Kind == Agent {
		most /= 2
	}
	if n >= most {
		return d.refuse(ErrTooMany, fmt.Sprintf("more than %d", most))
	}
	return nil
}
