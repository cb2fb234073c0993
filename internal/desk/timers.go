package desk

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/sets"
)

func (Tick) apply(d *update) error {
	if p := d.r.Pending; p != nil {
		if d.now.Before(p.EffectiveAt) {
			return nil
		}
		return d.applyPending()
	}
	if !d.now.Before(d.r.Deadline) {
		d.conclude(d.timeoutDecision())
		return nil
	}
	if !d.r.Snoozed.IsZero() && !d.now.Before(d.r.Snoozed) {
		d.r.Snoozed = time.Time{}
		d.logEvent(EventSnoozeEnded, "ended the snooze", nil)
	}
	if overdue := d.overdueAt(); !overdue.IsZero() && !d.now.Before(overdue) {
		d.escalateOverdue()
	}
	d.runDueSteps()
	return nil
}

// ClockName is in [Decision.By] if the clock decided, as a rule says.
const ClockName = "clock"

// timeoutDecision returns how the request ends at its deadline. It never approves.
func (d *update) timeoutDecision() Decision {
	rule := ""
	if len(d.r.Subject.Rules) > 0 {
		rule = " (" + strings.Join(d.r.Subject.Rules, ", ") + ")"
	}
	switch {
	case d.r.Requirement.OnTimeout == requirement.RejectOnTimeout:
		return Decision{Outcome: OutcomeRejected, By: []string{ClockName}, Reason: fmt.Sprintf("not decided by %s: the rules%s reject it then", formatTime(d.r.Deadline), rule)}
	case d.r.Requirement.OnTimeout == requirement.DefaultOnTimeout && d.r.DefaultAnswer != nil:
		return Decision{Outcome: OutcomeAnswered, By: []string{ClockName}, Value: d.r.DefaultAnswer, Reason: fmt.Sprintf("not answered by %s: the rules%s take the default answer", formatTime(d.r.Deadline), rule)}
	}
	return Decision{Outcome: OutcomeExpired, Reason: d.r.Route.Steps[d.r.Route.expiryStep()].Expire}
}

func (a RecordDelivery) apply(d *update) error {
	if slices.ContainsFunc(d.r.Deliveries, func(v Delivery) bool { return v.Target == a.Target }) || len(d.r.Deliveries) >= maxItems {
		return nil
	}
	at := a.At.UTC().Round(0)
	if at.Before(d.r.Created) || at.After(d.now) {
		at = d.now // do not trust the channel's clock
	}
	first := len(d.r.Deliveries) == 0
	d.r.Deliveries = append(d.r.Deliveries, Delivery{Target: a.Target, At: at})
	detail := map[string]string{"target": a.Target}
	if first && d.r.Route.DeadlineFrom == DeadlineFromDelivered {
		// Only the first delivery shortens the deadline that applied without one. An extended
		// deadline stays.
		if open := d.r.Route.deadline(d.r.Created, time.Time{}, d.r.Requirement.MaxOpen()); d.r.Deadline.Equal(open) {
			d.r.Deadline = d.r.Route.deadline(d.r.Created, at, d.r.Requirement.MaxOpen())
			detail["deadline"] = d.r.Deadline.Format(time.RFC3339Nano)
		}
	}
	d.logEvent(EventDelivered, "told "+a.Target, detail)
	return nil
}

func (a RecordOutage) apply(d *update) error {
	start, end := a.Start.UTC().Round(0), a.End.UTC().Round(0)
	if end.After(d.now) || start.After(end) {
		return d.refuse(ErrInvalidTime, "an outage must be in the past")
	}
	until := end.Add(time.Duration(d.r.Route.Grace))
	if d.r.Deadline.Before(start) || !d.r.Deadline.Before(until) || !d.r.Created.Before(end) {
		return nil
	}
	d.logEvent(EventOutage, "moved the deadline to "+formatTime(until)+", because of an outage", map[string]string{
		"from": d.r.Deadline.Format(time.RFC3339Nano), "to": until.Format(time.RFC3339Nano),
	})
	d.r.Deadline = until
	return nil
}

// restartRoute restarts the route at base, in a new epoch. Pending steps of the old epoch are void,
// and a snooze ends.
func (d *update) restartRoute(base time.Time) {
	d.r.Snoozed = time.Time{}
	d.r.RouteProgress.Epoch++
	d.r.RouteProgress.Base = d.r.Route.startAt(base, d.r.Deadline)
	d.r.RouteProgress.DoneSteps = nil
}

// alreadyNotified returns the initial steps that a restart skips, because they fired in this epoch,
// or before a snooze that still lasts. A step that waits for the opening hours of a region has not
// fired.
func (d *update) alreadyNotified() []StepResult {
	var known []StepResult
	for i, s := range d.r.Route.Steps {
		fired := func(e Event) bool {
			return e.Type == EventRouteStep && e.Detail["as"] == string(StepFired) && e.Detail["step"] == fmt.Sprint(i+1)
		}
		if s.At == 0 && (d.stepDone(i) || !d.r.Snoozed.IsZero() && slices.ContainsFunc(d.r.Log, fired)) {
			known = append(known, StepResult{Step: i, At: d.now, Outcome: StepSkipped})
		}
	}
	return known
}

// endSnooze ends a snooze early. Steps up to the last one that fired before it are done: an
// escalation goes forward.
func (d *update) endSnooze() {
	last := -1
	for _, e := range d.r.Log {
		step, err := strconv.Atoi(e.Detail["step"])
		switch {
		case e.Type == EventEdited: // the route has started again
			last = -1
		case e.Type == EventRouteStep && e.Detail["as"] == string(StepFired) && err == nil:
			last = max(last, step-1)
		}
	}
	d.restartRoute(d.now)
	for i := range last + 1 {
		d.r.RouteProgress.DoneSteps = append(d.r.RouteProgress.DoneSteps, StepResult{Step: i, At: d.now, Outcome: StepSkipped})
	}
	d.logEvent(EventSnoozeEnded, "ended the snooze", nil)
}

func (d *update) stepDone(step int) bool {
	return slices.ContainsFunc(d.r.RouteProgress.DoneSteps, func(done StepResult) bool { return done.Step == step })
}

// stepDue returns when a step is due.
func (d *update) stepDue(step int) time.Time {
	return d.r.Route.dueAt(step, d.r.RouteProgress.Base, d.now, d.r.Deadline)
}

// runDueSteps processes the steps that are due. After downtime several may be due at once. Then a
// reminder is missed if a later step is due too.
func (d *update) runDueSteps() {
	var due []int
	for i, s := range d.r.Route.Steps {
		if s.Expire == "" && !d.stepDone(i) && !d.stepDue(i).After(d.now) {
			due = append(due, i)
		}
	}
	notified := slices.ContainsFunc(due, func(i int) bool { return len(d.r.Route.Steps[i].Notify) > 0 })
	for n, i := range due {
		s := d.r.Route.Steps[i]
		last := n == len(due)-1
		switch {
		case s.Kind() == NoticeRemind && (!last || notified):
			d.recordStep(i, StepMissed, nil)
		case d.shouldSkip(s):
			d.recordStep(i, StepSkipped, nil)
		default:
			d.fireStep(i)
		}
	}
}

// shouldSkip reports whether one of the step's conditions holds. Views, claims and votes of people
// who are no longer eligible do not count.
func (d *update) shouldSkip(s Step) bool {
	return slices.ContainsFunc(s.SkipIf, func(c SkipCondition) bool {
		switch c {
		case SkipIfViewed:
			return slices.ContainsFunc(d.r.Views, func(v ViewRecord) bool {
				return v.Eligible && !v.latest().Before(d.r.RouteProgress.Base) && d.isEligible(v.By)
			})
		case SkipIfClaimed:
			return d.r.Claim != nil && d.isEligible(d.r.Claim.By)
		case SkipIfClarificationOpen:
			return d.r.openClarification() >= 0
		case SkipIfVoted:
			return slices.ContainsFunc(d.r.Votes, func(v Vote) bool { return !v.At.Before(d.r.RouteProgress.Base) && d.isEligible(v.By) })
		}
		return false
	})
}

// recordStep records the outcome of a step, and the targets that it notified.
func (d *update) recordStep(step int, as StepOutcome, targets []string) {
	d.r.RouteProgress.DoneSteps = append(d.r.RouteProgress.DoneSteps, StepResult{Step: step, At: d.now, Outcome: as})
	s := d.r.Route.Steps[step]
	d.logEvent(EventRouteStep, s.outcomeText(step, as, targets), map[string]string{
		"step": fmt.Sprint(step + 1), "epoch": fmt.Sprint(d.r.RouteProgress.Epoch), "as": string(as), "kind": s.label(),
	})
}

// outcomeText describes the outcome of a step in the timeline of a request.
func (s Step) outcomeText(step int, as StepOutcome, targets []string) string {
	const shown = 3
	to := strings.Join(targets[:min(len(targets), shown)], ", ")
	if more := len(targets) - shown; more > 0 {
		to += fmt.Sprintf(" and %d more", more)
	}
	name := fmt.Sprintf("step %d, %s", step+1, s.label())
	switch {
	case as == StepMissed:
		return "skipped " + name + ": a later step was due too"
	case as == StepSkipped:
		return "skipped " + name + ": its condition holds"
	case len(targets) > 0:
		return map[NoticeKind]string{NoticeNotify: "notified ", NoticeRemind: "reminded ", NoticePage: "paged "}[s.Kind()] + to
	case len(s.targets()) > 0:
		return name + ": no recipients"
	}
	return name
}

// label returns a word for the step's action.
func (s Step) label() string {
	switch {
	case s.Expire != "":
		return "expire"
	case len(s.targets()) == 0:
		return "widen"
	}
	return string(s.Kind())
}

// fireStep fires a step.
func (d *update) fireStep(step int) {
	s := d.r.Route.Steps[step]
	d.widen(s.Widen)
	targets := d.resolveTargets(s.targets())
	if len(targets) > 0 {
		n := Notice{
			Key: stepKey(d.r.ID, d.r.RouteProgress.Epoch, step), Request: d.r.ID, Rev: d.r.Rev + 1, Kind: s.Kind(), Targets: targets,
			Step: step + 1, Epoch: d.r.RouteProgress.Epoch, Cause: EventRouteStep,
		}
		if n.Kind == NoticePage {
			n.Incident, n.Severity = d.r.IncidentKey(), s.Severity
			d.r.RouteProgress.Paged = sets.Union(d.r.RouteProgress.Paged, targets)
		}
		d.notices = append(d.notices, n)
	}
	d.recordStep(step, StepFired, targets)
}

// widen adds people to the groups that permit it. It does not count votes: a timer never decides,
// and needs no directory.
func (d *update) widen(more []string) {
	var added []string
	for i, g := range d.r.Requirement.Groups {
		before := g.Names()
		for _, who := range more {
			if slices.Contains(g.Widen, who) && !slices.Contains(g.From, who) { //mutate:widen-needs-member
				g.From = append(slices.Clone(g.From), who)
				added = append(added, who)
			}
		}
		d.r.Requirement.Groups[i] = g
		d.r.VoteProgress.Missing = slices.Clone(d.r.VoteProgress.Missing)
		for j, m := range d.r.VoteProgress.Missing {
			if m.Group == before {
				d.r.VoteProgress.Missing[j].Group = g.Names()
			}
		}
	}
	if added = sets.Union(nil, added); len(added) > 0 {
		d.logEvent(EventWidened, "lets "+requirement.Group{From: added}.Names()+" decide too", map[string]string{"to": strings.Join(added, "\n")})
	}
}

// overdueAt returns when the rest of the route fires at once. It is zero if never.
func (d *update) overdueAt() time.Time {
	if d.r.RouteProgress.Overdue || d.r.Requirement.OnTimeout != requirement.EscalateOnTimeout {
		return time.Time{}
	}
	return d.r.Created.Add(time.Duration(d.r.Requirement.Deadline))
}

// escalateOverdue fires the rest of the route, except reminders and the expiry.
func (d *update) escalateOverdue() {
	d.r.RouteProgress.Overdue = true
	d.r.RouteProgress.Escalated++
	d.logEvent(EventEscalated, "escalated it: not decided in time", nil)
	for i := range d.r.Route.Steps {
		if d.canEscalateTo(i) {
			d.fireStep(i)
		}
	}
}

// canEscalateTo reports whether an escalation can fire the step.
func (d *update) canEscalateTo(step int) bool {
	s := d.r.Route.Steps[step]
	return s.Expire == "" && s.Kind() != NoticeRemind && !d.stepDone(step)
}

// nextDue returns when the next timer is due.
func (d *update) nextDue() time.Time {
	if d.r.State != StateOpen {
		return time.Time{}
	}
	if d.r.Pending != nil { // no reminders: it is as good as decided
		return d.r.Pending.EffectiveAt
	}
	next := earliest(d.r.Deadline, d.r.Snoozed, d.overdueAt())
	for i, s := range d.r.Route.Steps {
		if s.Expire == "" && !d.stepDone(i) {
			next = earliest(next, d.stepDue(i))
		}
	}
	return next
}
