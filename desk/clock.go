package desk

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

func (Tick) do(d *draft) error {
	if !d.now.Before(d.r.Deadline) {
		d.end(Final{Outcome: Lapsed, Reason: d.r.Route.Steps[d.r.Route.expiry()].Expire})
		return nil
	}
	if !d.r.Snoozed.IsZero() && !d.now.Before(d.r.Snoozed) {
		d.r.Snoozed = time.Time{}
		d.log(WasWoken, "ended the snooze", nil)
	}
	if overdue := d.overdue(); !overdue.IsZero() && !d.now.Before(overdue) {
		d.hurry()
	}
	d.run()
	return nil
}

func (a Delivered) do(d *draft) error {
	if slices.ContainsFunc(d.r.Deliveries, func(v Delivery) bool { return v.Target == a.Target }) || len(d.r.Deliveries) >= maxItems {
		return nil
	}
	at := a.At.UTC().Round(0)
	if at.Before(d.r.Created) || at.After(d.now) {
		at = d.now // a channel's clock is not ours
	}
	first := len(d.r.Deliveries) == 0
	d.r.Deliveries = append(d.r.Deliveries, Delivery{Target: a.Target, At: at})
	detail := map[string]string{"target": a.Target}
	if first && d.r.Route.DeadlineFrom == FromDelivered {
		// Nothing but the first delivery shortens the time that was given for want of one; what somebody extended stays.
		if open := d.r.Route.deadline(d.r.Created, time.Time{}, d.r.Need.limit()); d.r.Deadline.Equal(open) {
			d.r.Deadline = d.r.Route.deadline(d.r.Created, at, d.r.Need.limit())
			detail["deadline"] = d.r.Deadline.Format(time.RFC3339Nano)
		}
	}
	d.log(WasDelivered, "told "+a.Target, detail)
	return nil
}

func (a Outage) do(d *draft) error {
	start, end := a.Start.UTC().Round(0), a.End.UTC().Round(0)
	if end.After(d.now) || start.After(end) {
		return d.refuse(ErrTime, "an outage lies in the past")
	}
	until := end.Add(time.Duration(d.r.Route.Grace))
	if d.r.Deadline.Before(start) || !d.r.Deadline.Before(until) || !d.r.Created.Before(end) {
		return nil
	}
	d.log(WasOutage, "moved the deadline to "+stamp(until)+", because of an outage", map[string]string{
		"from": d.r.Deadline.Format(time.RFC3339Nano), "to": until.Format(time.RFC3339Nano),
	})
	d.r.Deadline = until
	return nil
}

// restart begins the route anew at base, in a new epoch: what the old one still had to do is void, and a snooze is over.
func (d *draft) restart(base time.Time) {
	d.r.Snoozed = time.Time{}
	d.r.Place.Epoch++
	d.r.Place.Base = d.r.Route.begin(base, d.r.Deadline)
	d.r.Place.Done = nil
}

// known are the steps of the beginning that need not be taken again, because people know: they had their turn in this epoch, or before a snooze that still
// lasts. One that waits for the hours of a region had not.
func (d *draft) known() []Done {
	var known []Done
	for i, s := range d.r.Route.Steps {
		told := func(e Event) bool {
			return e.What == WasStep && e.Detail["as"] == string(Fired) && e.Detail["step"] == fmt.Sprint(i+1)
		}
		if s.At == 0 && (d.done(i) || !d.r.Snoozed.IsZero() && slices.ContainsFunc(d.r.Log, told)) {
			known = append(known, Done{Step: i, At: d.now, As: Skipped})
		}
	}
	return known
}

func (d *draft) done(step int) bool {
	return slices.ContainsFunc(d.r.Place.Done, func(done Done) bool { return done.Step == step })
}

// due is when a step has its turn.
func (d *draft) due(step int) time.Time {
	return d.r.Route.due(step, d.r.Place.Base, d.now, d.r.Deadline)
}

// run takes the steps that are due. After a time in which nobody took them there may be many: then a reminder is missed if
// something later is due too.
func (d *draft) run() {
	var due []int
	for i, s := range d.r.Route.Steps {
		if s.Expire == "" && !d.done(i) && !d.due(i).After(d.now) {
			due = append(due, i)
		}
	}
	told := slices.ContainsFunc(due, func(i int) bool { return len(d.r.Route.Steps[i].Notify) > 0 })
	for n, i := range due {
		s := d.r.Route.Steps[i]
		last := n == len(due)-1
		switch {
		case s.Kind() == Remind && (!last || told):
			d.mark(i, Missed)
		case d.skips(s):
			d.mark(i, Skipped)
		default:
			d.fire(i)
		}
	}
}

// skips reports whether one of the step's conditions holds. What people did who may not decide any more leaves no step out: nobody waits for them.
func (d *draft) skips(s Step) bool {
	return slices.ContainsFunc(s.SkipIf, func(c Condition) bool {
		switch c {
		case IfViewed:
			return slices.ContainsFunc(d.r.Views, func(v Viewed) bool { return v.May && !v.last().Before(d.r.Place.Base) && d.mayStill(v.By) })
		case IfClaimed:
			return d.r.Claim != nil && d.mayStill(d.r.Claim.By)
		case IfAsked:
			return d.r.openQuestion() >= 0
		case IfVoted:
			return slices.ContainsFunc(d.r.Votes, func(v Vote) bool { return !v.At.Before(d.r.Place.Base) && d.mayStill(v.By) })
		}
		return false
	})
}

// mark notes that a step has had its turn.
func (d *draft) mark(step int, as Turn) {
	d.r.Place.Done = append(d.r.Place.Done, Done{Step: step, At: d.now, As: as})
	s := d.r.Route.Steps[step]
	d.log(WasStep, fmt.Sprintf("%s step %d, %s", as, step+1, s.does()), map[string]string{
		"step": fmt.Sprint(step + 1), "epoch": fmt.Sprint(d.r.Place.Epoch), "as": string(as), "kind": s.does(),
	})
}

// does is a word for what the step does.
func (s Step) does() string {
	switch {
	case s.Expire != "":
		return "expire"
	case len(s.targets()) == 0:
		return "widen"
	}
	return string(s.Kind())
}

// fire takes a step.
func (d *draft) fire(step int) {
	s := d.r.Route.Steps[step]
	d.widen(s.Widen)
	targets := d.resolve(s.targets())
	if len(targets) > 0 {
		n := Notice{
			Key: stepKey(d.r.ID, d.r.Place.Epoch, step), Request: d.r.ID, Rev: d.r.Rev + 1, Kind: s.Kind(), Targets: targets,
			Step: step + 1, Epoch: d.r.Place.Epoch, About: WasStep,
		}
		if n.Kind == Page {
			n.Incident, n.Severity = d.r.Incident(), s.Severity
			d.r.Place.Paged = union(d.r.Place.Paged, targets)
		}
		d.notices = append(d.notices, n)
	}
	d.mark(step, Fired)
}

// widen lets more people count for a group, as far as the group permits it. Votes are not counted for it: the clock never decides,
// and has no use for a directory.
func (d *draft) widen(more []string) {
	var added []string
	for i, g := range d.r.Need.Groups {
		before := g.String()
		for _, who := range more {
			if slices.Contains(g.Widen, who) && !slices.Contains(g.From, who) { //mutate:widen-needs-member
				g.From = append(slices.Clone(g.From), who)
				added = append(added, who)
			}
		}
		d.r.Need.Groups[i] = g
		d.r.Progress.Missing = slices.Clone(d.r.Progress.Missing)
		for j, m := range d.r.Progress.Missing {
			if m.Group == before {
				d.r.Progress.Missing[j].Group = g.String()
			}
		}
	}
	if added = union(nil, added); len(added) > 0 {
		d.log(WasWidened, "lets "+Group{From: added}.String()+" decide too", map[string]string{"to": strings.Join(added, "\n")})
	}
}

// overdue is when the rest of the route has to be taken at once; zero if never.
func (d *draft) overdue() time.Time {
	if d.r.Place.Overdue || d.r.Need.OnTimeout != EscalateOnTimeout {
		return time.Time{}
	}
	return d.r.Created.Add(time.Duration(d.r.Need.Deadline))
}

// hurry takes all that is left of the route, except for reminders and the end.
func (d *draft) hurry() {
	d.r.Place.Overdue = true
	d.r.Place.Escalated++
	d.log(WasEscalated, "escalated it: nobody has decided in time", nil)
	for i := range d.r.Route.Steps {
		if d.escalates(i) {
			d.fire(i)
		}
	}
}

// escalates reports whether the step is one that somebody who does not want to wait can take.
func (d *draft) escalates(step int) bool {
	s := d.r.Route.Steps[step]
	return s.Expire == "" && s.Kind() != Remind && !d.done(step)
}

// next is when the clock has something to do.
func (d *draft) next() time.Time {
	if d.r.State != Open {
		return time.Time{}
	}
	next := earliest(d.r.Deadline, d.r.Snoozed, d.overdue())
	for i, s := range d.r.Route.Steps {
		if s.Expire == "" && !d.done(i) {
			next = earliest(next, d.due(i))
		}
	}
	return next
}
