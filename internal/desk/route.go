package desk

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/desk/hours"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/sets"
	"github.com/fermata-go/fermata/internal/timespan"
)

// Route defines the notification targets of a request, the times of reminders, pages and widening,
// and the expiry.
type Route struct {
	Name    string `json:"name" yaml:"name"`
	Version string `json:"version,omitempty" yaml:"version,omitempty"`
	// Regions take turns ("follow the sun"). The target "region" is the region that is open.
	// MinRemaining is how long a region must still be open to be chosen.
	Regions      []hours.Region    `json:"regions,omitempty" yaml:"regions,omitempty"`
	MinRemaining timespan.Duration `json:"min_remaining,omitempty" yaml:"min_remaining,omitempty"`
	Steps        []Step            `json:"steps" yaml:"steps"`
	// Clock is the clock of the step times. The default is the wall clock.
	Clock ClockKind `json:"clock,omitempty" yaml:"clock,omitempty"`
	// DeadlineFrom is the start of the time to the last step, expire. The default is the creation.
	DeadlineFrom DeadlineFrom `json:"deadline_from,omitempty" yaml:"deadline_from,omitempty"`
	// Cap is the maximum time from creation to deadline, including late delivery and extensions.
	// Without a cap the deadline cannot be extended.
	Cap timespan.Duration `json:"cap,omitempty" yaml:"cap,omitempty"`
	// Grace is the minimum time until the deadline after an outage of the service in which the
	// deadline passed.
	Grace timespan.Duration `json:"grace_after_outage,omitempty" yaml:"grace_after_outage,omitempty"`
	// StartImmediately makes the step times count from the creation, even if the first step is for
	// a region that is closed. [Join] sets it, so that a region step of one route does not delay
	// the steps of another.
	StartImmediately bool `json:"at_once,omitempty" yaml:"-"`
}

// ClockKind is the kind of clock.
type ClockKind string

// The clocks. Business time passes only while a region is open.
const (
	WallClock     ClockKind = "wall"
	BusinessClock ClockKind = "business"
)

// DeadlineFrom is the start of a deadline.
type DeadlineFrom string

// The values of DeadlineFrom.
const (
	DeadlineFromCreated DeadlineFrom = "created"
	// so that an outage of a channel does not use up the time
	DeadlineFromDelivered DeadlineFrom = "delivered"
)

// Step is an action at a time, if the request is still open. It has exactly one of Notify, Remind,
// Page and Expire. Widen is allowed alone or with Notify.
type Step struct {
	At     timespan.Duration `json:"at" yaml:"at"`
	Notify []string          `json:"notify,omitempty" yaml:"notify,omitempty"`
	Remind []string          `json:"remind,omitempty" yaml:"remind,omitempty"`
	Page   []string          `json:"page,omitempty" yaml:"page,omitempty"`
	// Severity is the severity of a page.
	Severity string `json:"severity,omitempty" yaml:"severity,omitempty"`
	// Widen lets more people decide, as far as the requirement permits.
	Widen []string `json:"widen,omitempty" yaml:"widen,omitempty"`
	// Expire closes the request with this reason.
	Expire string `json:"expire,omitempty" yaml:"expire,omitempty"`
	// SkipIf skips the step if one of the conditions holds when it is due.
	SkipIf []SkipCondition `json:"skip_if,omitempty" yaml:"skip_if,omitempty"`
}

// SkipCondition is a condition for skipping a step.
type SkipCondition string

// The conditions. Viewed and voted count from the start of the route.
const (
	SkipIfViewed            SkipCondition = "viewed" // by an eligible approver
	SkipIfClaimed           SkipCondition = "claimed"
	SkipIfClarificationOpen SkipCondition = "asked" // a clarification has no reply yet
	SkipIfVoted             SkipCondition = "voted"
)

// Targets without a name.
const (
	TargetInbox     = "inbox"
	TargetRegion    = "region"    // the channel of the open region
	TargetApprovers = "approvers" // all approvers
	TargetRequester = "requester"
	// the person with the claim; all approvers if there is none or it is no longer eligible
	TargetClaimer = "claimer"
)

// Kind returns the kind of notice that the step sends.
func (s Step) Kind() NoticeKind {
	switch {
	case len(s.Remind) > 0:
		return NoticeRemind
	case len(s.Page) > 0:
		return NoticePage
	}
	return NoticeNotify
}

// targets returns the targets of the step.
func (s Step) targets() []string { return slices.Concat(s.Notify, s.Remind, s.Page) }

func (s Step) targetsRegion() bool { return slices.Contains(s.targets(), TargetRegion) }

// DefaultPage is the target that the default route pages if it can be reached.
const DefaultPage = "oncall:default"

// DefaultRoute returns the route for requests without one: inbox at once, a reminder after 30
// minutes, a page to the targets after 2 hours, expiry after 24 hours. Without targets it has no
// page.
func DefaultRoute(page ...string) Route {
	hour := timespan.Duration(time.Hour)
	r := Route{
		Name: "default",
		Steps: []Step{
			{At: 0, Notify: []string{TargetInbox}},
			{At: hour / 2, Remind: []string{TargetInbox}, SkipIf: []SkipCondition{SkipIfViewed, SkipIfClaimed}},
			{At: 24 * hour, Expire: "stale"},
		},
		Cap:   72 * hour,
		Grace: hour / 4,
	}
	if len(page) > 0 {
		r.Steps = slices.Insert(r.Steps, 2, Step{At: 2 * hour, Page: page, Severity: "error"})
	}
	return r
}

// WithDeadline returns the route with another time to expiry. Steps that would come later are
// removed. If none remains, the first step is at once.
func (r Route) WithDeadline(end time.Duration) Route {
	first, last := r.Steps[0], r.Steps[r.expiryStep()]
	first.At, last.At = 0, timespan.Duration(end)
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

// Digest identifies this version of the route.
func (r Route) Digest() string {
	text, err := json.Marshal(r)
	if err != nil {
		return "" // a route can always be encoded
	}
	return digest(text)
}

// expiryStep returns the index of the last step.
func (r Route) expiryStep() int {
	return slices.IndexFunc(r.Steps, func(s Step) bool { return s.Expire != "" })
}

// addTime returns the time d after t, on the clock of the route.
func (r Route) addTime(t time.Time, d timespan.Duration) time.Time {
	if r.Clock == BusinessClock {
		if at, err := hours.Add(r.Regions, t, time.Duration(d)); err == nil {
			return at.UTC()
		}
		// The holidays have changed since the check. Wall time ends earlier and is the safe choice.
	}
	return t.Add(time.Duration(d))
}

// activeRegion returns the region that gets a notice at t, and when. Without regions it is t.
func (r Route) activeRegion(t time.Time) (hours.Region, time.Time) {
	if len(r.Regions) == 0 {
		return hours.Region{}, t
	}
	region, when, err := hours.PickRegion(r.Regions, t, time.Duration(r.MinRemaining))
	if err != nil {
		return r.Regions[0], t // a notice at night is better than none
	}
	return region, when
}

// dueAt returns when a step is due, for an epoch that started at base. The first step does not wait
// for opening hours that are after the deadline: a notice at night is better than none.
func (r Route) dueAt(step int, base, now, deadline time.Time) time.Time {
	s := r.Steps[step]
	t := r.addTime(base, s.At)
	if s.targetsRegion() {
		if t.Before(now) {
			t = now // late: the region that is open now gets it
		}
		_, t = r.activeRegion(t)
	}
	switch {
	case step > 0 || t.Before(deadline): //mutate:step-before-end
		return t
	case base.Before(deadline):
		return base
	}
	return now
}

// startAt returns the time from which the steps count for a request created at t: when the first
// region opens, unless that is after the deadline.
func (r Route) startAt(t, deadline time.Time) time.Time {
	if r.StartImmediately || len(r.Steps) == 0 || !r.Steps[0].targetsRegion() { //mutate:joined-routes-independent
		return t
	}
	if _, when := r.activeRegion(t); when.Before(deadline) {
		return when
	}
	return t
}

// resolveTargets replaces the targets without a name.
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
	return sets.Union(nil, resolved)
}

// approverTargets returns the targets for the approvers. Anyone is the inbox.
func (r Request) approverTargets() []string {
	var all []string
	open := r.openStage()
	for _, g := range r.Requirement.Groups {
		if g.Stage != open { // these decide later, or have decided
			continue
		}
		for _, who := range g.From {
			switch {
			case who == requirement.Anyone, who == requirement.Requester && r.Subject.Requester == "":
				who = TargetInbox
			case who == requirement.Requester:
				who = "user:" + r.Subject.Requester
			}
			all = append(all, who)
		}
	}
	return sets.Union(nil, all)
}

func isTarget(target string) bool {
	kind, name, ok := strings.Cut(target, ":")
	if ok {
		return kind != "" && name != ""
	}
	return slices.Contains([]string{TargetInbox, TargetRegion, TargetApprovers, TargetRequester, TargetClaimer}, target)
}
