package desk

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/desk/hours"
)

// Route says whom to tell of a request, when to remind, to page, to ask more people, and when to give up.
type Route struct {
	Name    string `json:"name" yaml:"name"`
	Version string `json:"version,omitempty" yaml:"version,omitempty"`
	// Regions are the places that take turns; the target "region" is the one that is awake. MinRemaining is how long a region
	// must still be open to be given something.
	Regions      []hours.Region `json:"regions,omitempty" yaml:"regions,omitempty"`
	MinRemaining Duration       `json:"min_remaining,omitempty" yaml:"min_remaining,omitempty"`
	Steps        []Step         `json:"steps" yaml:"steps"`
	// Clock is how the times of the steps are measured; by default they are wall time.
	Clock ClockKind `json:"clock,omitempty" yaml:"clock,omitempty"`
	// DeadlineFrom is what the time of the last step, expire, counts from; by default the asking.
	DeadlineFrom DeadlineFrom `json:"deadline_from,omitempty" yaml:"deadline_from,omitempty"`
	// Cap is how long after the asking the deadline can be at most, however late it was delivered and often extended. Without
	// one it cannot be extended.
	Cap Duration `json:"cap,omitempty" yaml:"cap,omitempty"`
	// Grace is how long people have after an outage of ours in which the deadline fell.
	Grace Duration `json:"grace_after_outage,omitempty" yaml:"grace_after_outage,omitempty"`
	// AtOnce has the steps count from the asking, also if the first is for a region that sleeps. It is for [Join]: what one route tells a region must not hold up what
	// another one tells elsewhere.
	StartImmediately bool `json:"at_once,omitempty" yaml:"-"`
}

// ClockKind is how time is measured.
type ClockKind string

// The clocks. Business time passes only while a region is open.
const (
	WallClock     ClockKind = "wall"
	BusinessClock ClockKind = "business"
)

// DeadlineFrom is what a deadline counts from.
type DeadlineFrom string

// EventType a deadline can count from.
const (
	DeadlineFromCreated   DeadlineFrom = "created"
	DeadlineFromDelivered DeadlineFrom = "delivered" // so that nobody is timed out by an outage of a channel
)

// Step is something that happens if there is still no decision at its time. It has one of Notify, Remind, Page and Expire;
// Widen stands alone or with Notify.
type Step struct {
	At     Duration `json:"at" yaml:"at"`
	Notify []string `json:"notify,omitempty" yaml:"notify,omitempty"`
	Remind []string `json:"remind,omitempty" yaml:"remind,omitempty"`
	Page   []string `json:"page,omitempty" yaml:"page,omitempty"`
	// Severity goes with a page.
	Severity string `json:"severity,omitempty" yaml:"severity,omitempty"`
	// Widen lets more people decide, as far as the requirement permits it.
	Widen []string `json:"widen,omitempty" yaml:"widen,omitempty"`
	// Expire ends the request, with this as the reason.
	Expire string `json:"expire,omitempty" yaml:"expire,omitempty"`
	// SkipIf leaves the step out if one of these holds when its time has come.
	SkipIf []SkipCondition `json:"skip_if,omitempty" yaml:"skip_if,omitempty"`
}

// SkipCondition is what a step can be left out for.
type SkipCondition string

// The conditions. All but claimed and asked are about the time since the route was begun.
const (
	SkipIfViewed            SkipCondition = "viewed" // by somebody who may decide
	SkipIfClaimed           SkipCondition = "claimed"
	SkipIfClarificationOpen SkipCondition = "asked" // the run owes people an answer
	SkipIfVoted             SkipCondition = "voted"
)

// Targets without a name of their own.
const (
	TargetInbox     = "inbox"
	TargetRegion    = "region"    // the channel of the region that is awake
	TargetApprovers = "approvers" // everybody who is asked
	TargetRequester = "requester"
	TargetClaimer   = "claimer" // performer looks after it; everybody who is asked if nobody does who may still decide
)

// Kind is what kind of notice the step makes.
func (s Step) Kind() NoticeKind {
	switch {
	case len(s.Remind) > 0:
		return NoticeRemind
	case len(s.Page) > 0:
		return NoticePage
	}
	return NoticeNotify
}

// targets are whom the step is for.
func (s Step) targets() []string { return slices.Concat(s.Notify, s.Remind, s.Page) }

func (s Step) targetsRegion() bool { return slices.Contains(s.targets(), TargetRegion) }

// DefaultRoute is for requests that nobody gave a route: in the inbox at once, a reminder after half an hour, a page after
// two, and over after a day.
func DefaultRoute() Route {
	hour := Duration(time.Hour)
	return Route{
		Name: "default",
		Steps: []Step{
			{At: 0, Notify: []string{TargetInbox}},
			{At: hour / 2, Remind: []string{TargetInbox}, SkipIf: []SkipCondition{SkipIfViewed, SkipIfClaimed}},
			{At: 2 * hour, Page: []string{"oncall:default"}, Severity: "error"},
			{At: 24 * hour, Expire: "stale"},
		},
		Cap:   72 * hour,
		Grace: hour / 4,
	}
}

// Within is the same route with another time to the end. Steps that would come later are left out; if all would, the first comes at once.
func (r Route) WithDeadline(end time.Duration) Route {
	first, last := r.Steps[0], r.Steps[r.expiryStep()]
	first.At, last.At = 0, Duration(end)
	r.Steps = slices.DeleteFunc(slices.Clone(r.Steps), func(s Step) bool { return s.Expire != "" || s.At >= last.At })
	if len(r.Steps) == 0 && first.Expire == "" {
		r.Steps = append(r.Steps, first)
	}
	r.Steps = append(r.Steps, last)
	if r.Cap > 0 {
		r.Cap = max(r.Cap, last.At)
	}
	return r
}

// Digest names exactly this version of the route.
func (r Route) Digest() string {
	text, err := json.Marshal(r)
	if err != nil {
		return "" // it has nothing in it that cannot be written
	}
	return digest(text)
}

// expiry is the index of the last step.
func (r Route) expiryStep() int {
	return slices.IndexFunc(r.Steps, func(s Step) bool { return s.Expire != "" })
}

// after is the time d after t, on the clock of the route.
func (r Route) addTime(t time.Time, d Duration) time.Time {
	if r.Clock == BusinessClock {
		if at, err := hours.Add(r.Regions, t, time.Duration(d)); err == nil {
			return at.UTC()
		}
		// Holidays have used up the hours that a check once found. Wall time is the earlier, and so the safe, end.
	}
	return t.Add(time.Duration(d))
}

// awake is the region that gets what comes at t, and when it does. Without regions it is now.
func (r Route) activeRegion(t time.Time) (hours.Region, time.Time) {
	if len(r.Regions) == 0 {
		return hours.Region{}, t
	}
	region, when, err := hours.PickRegion(r.Regions, t, time.Duration(r.MinRemaining))
	if err != nil {
		return r.Regions[0], t // better told at night than never
	}
	return region, when
}

// due is when a step of an epoch that began at base has its turn, as things stand at now. The first one does not wait for hours that come when the
// request is over: better told at night than never.
func (r Route) dueAt(step int, base, now, over time.Time) time.Time {
	s := r.Steps[step]
	t := r.addTime(base, s.At)
	if s.targetsRegion() {
		if t.Before(now) {
			t = now // it is late: whoever is awake now gets it
		}
		_, t = r.activeRegion(t)
	}
	switch {
	case step > 0 || t.Before(over): //mutate:step-before-end
		return t
	case base.Before(over):
		return base
	}
	return now
}

// begin is the time from which the steps count for a request that comes at t: when the first region that is told wakes up, if it is not over by then.
func (r Route) startAt(t, over time.Time) time.Time {
	if r.StartImmediately || len(r.Steps) == 0 || !r.Steps[0].targetsRegion() { //mutate:joined-routes-independent
		return t
	}
	if _, when := r.activeRegion(t); when.Before(over) {
		return when
	}
	return t
}

// resolve replaces the targets without a name.
func (d *update) resolveTargets(targets []string) []string {
	r := d.r
	var resolved []string
	for _, target := range targets {
		switch target {
		case TargetRegion:
			region, _ := r.Route.activeRegion(d.now)
			resolved = append(resolved, region.Channel)
		case TargetApprovers:
			resolved = append(resolved, r.approverTargets()...)
		case TargetClaimer:
			if r.Claim == nil || !d.isEligible(r.Claim.By) {
				resolved = append(resolved, r.approverTargets()...)
			} else {
				resolved = append(resolved, "user:"+r.Claim.By)
			}
		case TargetRequester:
			if r.Subject.Requester != "" {
				resolved = append(resolved, "user:"+r.Subject.Requester)
			}
		default:
			resolved = append(resolved, target)
		}
	}
	return union(nil, resolved)
}

// approvers is who is asked. Everybody is nobody in particular: they look into the inbox.
func (r Request) approverTargets() []string {
	var all []string
	for _, g := range r.Requirement.Groups {
		for _, who := range g.From {
			switch {
			case who == PrincipalAnyone, who == PrincipalRequester && r.Subject.Requester == "":
				who = TargetInbox
			case who == PrincipalRequester:
				who = "user:" + r.Subject.Requester
			}
			all = append(all, who)
		}
	}
	return union(nil, all)
}

func isTarget(target string) bool {
	kind, name, ok := strings.Cut(target, ":")
	if ok {
		return kind != "" && name != ""
	}
	return slices.Contains([]string{TargetInbox, TargetRegion, TargetApprovers, TargetRequester, TargetClaimer}, target)
}
