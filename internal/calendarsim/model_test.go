package calendarsim

import (
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
)

// run is a run in the model.
type run struct {
	key, requester string
	tasks          []task
	started        time.Time
	asks           []*modelRequest
	over           bool // it no longer asks
	// runs a scenario before other people see the request; nil if there is none
	scene func(*modelRequest)
}

// modelRequest is a request in the model.
type modelRequest struct {
	id       string
	run      *run
	asked    order // as the agent wants it
	question bool
	need     modelRequirement
	wants    func(order, time.Time) modelRequirement // what the rules require for other arguments
	plan     plan
	created  time.Time
	deadline time.Time
	// perhaps is another possible deadline, if it depends on timing whether an outage moved it.
	// spared is the number of outages already considered.
	perhaps time.Time
	spared  int

	now    order // the current action, perhaps edited
	editor string
	votes  []vote
	epochs []epoch
	looks  []viewRecord
	saw    []viewedState
	words  int // votes that counted, including replaced ones
	backs  int // clarifications
	edits  int

	outcome desk.Outcome // "" while it is open
	ended   time.Time
	by      []string
	answer  string
	then    *directory // the group members at the approval
	either  bool       // the deadline had passed at the withdrawal: either may win
}

type vote struct {
	by   string
	verb requirement.Verb
}

// epoch is a period since a start of the route.
type epoch struct {
	base, from, until time.Time
	over              time.Time // the deadline at its start
	known             bool      // the initial steps are skipped
	loose             bool      // a step was escalated manually
}

// viewRecord is a view or claim that suppresses a reminder.
type viewRecord struct {
	at  time.Time
	by  string
	may bool // certainly by an eligible person
}

func (l viewRecord) String() string { return fmt.Sprintf("%s %t", l.at.Format(time.DateTime), l.may) }

func (e epoch) String() string {
	return fmt.Sprintf("base %s, from %s until %s, known %t, loose %t", e.base.Format(time.RFC3339Nano), e.from.Format(time.RFC3339Nano), e.until.Format(time.RFC3339Nano), e.known, e.loose)
}

func newModelRequest(r *run, id string, o order, question bool, plans map[string]plan, created time.Time, wants func(order, time.Time) modelRequirement) *modelRequest {
	a := &modelRequest{id: id, run: r, asked: o, now: o, question: question, created: created, need: wants(o, created), wants: wants}
	if question { // anyone may answer
		a.need = modelRequirement{route: "wall", limit: 0}
	}
	a.plan = plans[a.need.route]
	a.deadline = a.plan.after(created, a.plan.expire)
	if a.need.limit > 0 {
		a.deadline = first(a.deadline, created.Add(a.need.limit))
	}
	a.begin(created, created)
	return a
}

func first(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (p plan) after(t time.Time, d time.Duration) time.Time {
	if p.business != nil {
		return p.business.after(t, d)
	}
	return t.Add(d)
}

// due returns when a step is due in an epoch. The first step does not wait for a region that opens
// after the deadline.
func (p plan) due(step int, e epoch) time.Time {
	t := p.after(e.base, p.steps[step].at)
	if p.steps[step].region {
		_, t = pick(p.follow, t)
	}
	if step == 0 && !t.Before(e.over) {
		return e.base
	}
	return t
}

// begin restarts the route.
func (a *modelRequest) begin(at, now time.Time) {
	if n := len(a.epochs); n > 0 {
		a.epochs[n-1].until = now
	}
	if a.plan.follow != nil {
		if _, when := pick(a.plan.follow, at); when.Before(a.deadline) {
			at = when
		}
	}
	a.epochs = append(a.epochs, epoch{base: at, from: now, over: a.deadline})
}

func (a *modelRequest) epoch() *epoch { return &a.epochs[len(a.epochs)-1] }

// end closes the request. Only the first call counts.
func (a *modelRequest) end(outcome desk.Outcome, at time.Time, by ...string) {
	if a.outcome == "" {
		a.outcome, a.ended, a.by = outcome, at, by
		a.epoch().until = at
	}
}

// overAt reports whether the request can no longer be decided.
func (a *modelRequest) overAt(now time.Time) bool {
	return a.outcome != "" || a.run.over || !now.Before(a.deadline)
}

// excluded reports whether a person is excluded by separation of duties.
func (a *modelRequest) excluded(person string, verb requirement.Verb) bool {
	if a.need.notRequester && person == a.run.requester || a.need.notLastEditor && verb == requirement.VerbApprove && a.editor == person {
		return true
	}
	return a.need.notPrior && slices.Contains(a.approvers(), person)
}

// approvers returns the people who currently approve another action of the same run.
func (a *modelRequest) approvers() (all []string) {
	for _, other := range a.run.asks {
		if other == a {
			continue
		}
		if other.editor != "" {
			all = append(all, other.editor)
		}
		for _, v := range other.votes {
			if v.verb == requirement.VerbApprove {
				all = append(all, v.by)
			}
		}
	}
	return all
}

// member reports whether a person is in one of the groups.
func (a *modelRequest) member(person string, d *directory) bool {
	return a.question || slices.ContainsFunc(a.need.parties, func(p modelGroup) bool { return p.has(person, d) })
}

func (p modelGroup) has(person string, d *directory) bool {
	return slices.ContainsFunc(p.from, func(group string) bool { return slices.Contains(d.members(group), person) })
}

// submission is a person's decision on what they saw.
type submission struct {
	who    string
	verb   requirement.Verb
	args   order // of an edit
	seen   order // the action they believe they decide on
	sawOld bool  // they saw it before an edit
	text   string
}

// The model's codes for submissions that do not count.
const (
	isOver      = "over"
	notAllowed  = "not_allowed"
	isExcluded  = "excluded"
	notMember   = "not_member"
	hasChanged  = "changed"
	badEdit     = "bad_edit"
	itCounts    = ""
	isUndecided = "unknown"
)

// predict reports whether a submission counts.
func (a *modelRequest) predict(w submission, d *directory, now time.Time) string {
	switch {
	case a.overAt(now):
		return isOver
	case a.question != (w.verb == requirement.VerbRespond), w.verb == requirement.VerbEdit && len(a.need.editable) == 0:
		return notAllowed
	case a.excluded(w.who, w.verb):
		return isExcluded
	case !a.member(w.who, d):
		return notMember
	case w.sawOld != (a.editor == "") || w.seen != a.now:
		return hasChanged
	case w.verb == requirement.VerbEdit && !a.editable(w.args):
		return badEdit
	}
	return itCounts
}

// editable reports whether an edit changes only editable fields.
func (a *modelRequest) editable(args order) bool {
	same := args
	if slices.Contains(a.need.editable, "cents") {
		same.Cents = a.asked.Cents
	}
	same.Note = a.asked.Note // always
	return same == a.asked
}

// count applies a submission that counts.
func (a *modelRequest) count(w submission, d *directory, now time.Time) {
	switch w.verb {
	case requirement.VerbRespond:
		a.words++
		a.answer = w.text
		a.votes = []vote{{w.who, w.verb}}
		a.end(desk.OutcomeAnswered, now, w.who)
	case requirement.VerbApprove, requirement.VerbReject:
		a.recordVote(vote{w.who, w.verb}, d, now)
	case requirement.VerbEdit:
		if w.args == a.now {
			a.recordVote(vote{w.who, requirement.VerbApprove}, d, now)
			return
		}
		a.edits++
		a.now, a.editor, a.votes = w.args, w.who, nil
		a.need = a.need.merge(a.wants(w.args, now))
		if !a.excluded(w.who, requirement.VerbApprove) {
			a.recordVote(vote{w.who, requirement.VerbApprove}, d, now)
		}
		if a.outcome == "" {
			a.begin(now, now)
		}
	}
}

func (a *modelRequest) recordVote(v vote, d *directory, now time.Time) {
	if !slices.Contains(a.votes, v) {
		a.votes = slices.DeleteFunc(a.votes, func(old vote) bool { return old.by == v.by })
		a.votes = append(a.votes, v)
		a.words++
	}
	var said []string
	for _, old := range a.votes {
		if old.verb == v.verb && a.member(old.by, d) && !a.excluded(old.by, old.verb) {
			said = append(said, old.by)
		}
	}
	switch {
	case v.verb == requirement.VerbReject && len(said) >= a.need.denials:
		a.end(desk.OutcomeRejected, now, said...)
	case v.verb == requirement.VerbApprove && enough(said, a.need.parties, d):
		a.end(desk.OutcomeApproved, now, said...)
		a.then = d.copied()
	}
}

// enough reports whether different people can fill all places of all groups, by brute force.
func enough(people []string, parties []modelGroup, d *directory) bool {
	var places []modelGroup
	for _, p := range parties {
		for range p.count {
			places = append(places, p)
		}
	}
	var fill func(place int, used []string) bool
	fill = func(place int, used []string) bool {
		if place == len(places) {
			return true
		}
		return slices.ContainsFunc(people, func(person string) bool {
			return !slices.Contains(used, person) && places[place].has(person, d) && fill(place+1, append(slices.Clone(used), person))
		})
	}
	return fill(0, nil)
}
