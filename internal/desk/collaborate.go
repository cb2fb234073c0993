package desk

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/requirement"
)

func (a Claim) apply(d *update) error {
	switch c := d.r.Claim; {
	case c == nil:
	case c.By == a.Actor.ID:
		return nil
	case d.isEligible(c.By): // an ineligible person loses the claim
		return d.refuse(ErrClaimed, c.By)
	}
	d.r.Claim = &ClaimRecord{By: a.Actor.ID, At: d.now}
	d.logEvent(EventClaimed, "claimed it", nil)
	return nil
}

func (a Release) apply(d *update) error {
	if c := d.r.Claim; c == nil || c.By != a.Actor.ID {
		return d.refuse(ErrNotClaimed, "")
	}
	d.r.Claim = nil
	d.logEvent(EventReleased, "released it", nil)
	return nil
}

func (a View) apply(d *update) error {
	if a.Rendering != nil {
		if err := d.checkRendering(*a.Rendering); err != nil {
			return err
		}
	}
	if a.Seen.Digest != "" && a.Seen.Digest != d.r.Digest() {
		return nil // the view is out of date
	}
	if err := a.recordFirst(d); err != nil {
		return err
	}
	if a.Rendering != nil {
		d.recordRendering(*a.Rendering)
	}
	return nil
}

// recordFirst records the first view of a person since the route was started.
func (a View) recordFirst(d *update) error {
	i := slices.IndexFunc(d.r.Views, func(v ViewRecord) bool { return v.By == a.Actor.ID })
	if i < 0 && len(d.r.Views) >= maxItems || i >= 0 && !d.r.Views[i].latest().Before(d.r.RouteProgress.Base) {
		return nil
	}
	err := d.checkEligible(a.Actor.ID, requirement.VerbApprove)
	if Code(err) == "directory_down" {
		return err
	}
	if i < 0 {
		i = len(d.r.Views)
		d.r.Views = append(d.r.Views, ViewRecord{By: a.Actor.ID, At: d.now, Rev: d.r.Rev})
	} else {
		d.r.Views[i].LastAt = d.now
	}
	d.r.Views[i].Eligible = err == nil
	d.logEvent(EventViewed, "viewed it", map[string]string{"shown": d.r.Digest()})
	return nil
}

func (a Comment) apply(d *update) error {
	if err := d.checkNote(a.Text, len(d.r.Comments)); err != nil {
		return err
	}
	d.r.Comments = append(d.r.Comments, Note{By: a.Actor.ID, At: d.now, Text: a.Text})
	d.logEvent(EventCommented, "commented", nil)
	return nil
}

func (a AskClarification) apply(d *update) error {
	if err := d.checkNote(a.Question, len(d.r.Clarifications)); err != nil {
		return err
	}
	d.r.Clarifications = append(d.r.Clarifications, Clarification{Note: Note{By: a.Actor.ID, At: d.now, Text: a.Question}})
	d.logEvent(EventClarificationAsked, "asked for clarification", map[string]string{"question": fmt.Sprint(len(d.r.Clarifications))})
	d.addNotice(NoticeRequester, EventClarificationAsked, d.requesterTargets())
	return nil
}

func (a AnswerClarification) apply(d *update) error {
	i := a.Number - 1
	if i == -1 {
		return d.refuse(ErrNoClarification, "the number of the clarification is required, counted from 1")
	}
	if i < 0 || i >= len(d.r.Clarifications) || d.r.Clarifications[i].Answer != nil {
		return d.refuse(ErrNoClarification, fmt.Sprintf("number %d", a.Number))
	}
	if err := d.checkText(a.Answer, true); err != nil {
		return err
	}
	d.r.Clarifications[i].Answer = &Note{By: a.Actor.ID, At: d.now, Text: a.Answer}
	d.logEvent(EventClarificationAnswered, fmt.Sprintf("answered clarification %d of %s", a.Number, d.r.Clarifications[i].By), map[string]string{"question": fmt.Sprint(a.Number)})
	d.addNotice(NoticeNotify, EventClarificationAnswered, []string{"user:" + d.r.Clarifications[i].By})
	return nil
}

func (a Delegate) apply(d *update) error {
	if err := d.checkText(a.Reason, false); err != nil {
		return err
	}
	if err := d.checkCapacity(len(d.r.Delegations)); err != nil {
		return err
	}
	if err := d.checkDelegate(a.To); err != nil {
		return err
	}
	d.r.Delegations = append(d.r.Delegations, Delegation{By: a.Actor.ID, To: a.To, At: d.now})
	if c := d.r.Claim; c != nil && c.By == a.Actor.ID {
		d.r.Claim = nil
	}
	d.logEvent(EventDelegated, "asked "+a.To+" to decide", map[string]string{"to": a.To, "reason": a.Reason})
	d.addNotice(NoticeNotify, EventDelegated, []string{"user:" + a.To})
	return nil
}

// checkDelegate checks that the decision of a delegate would count.
func (d *update) checkDelegate(to string) error {
	switch {
	case to == "":
		return d.refuse(ErrInvalidDelegate, "name a person")
	case to == d.from.Actor.ID:
		return d.refuse(ErrInvalidDelegate, "a person cannot delegate to themselves")
	}
	switch err := d.checkEligible(to, requirement.VerbApprove); {
	case errors.Is(err, ErrExcluded):
		return d.refuse(ErrInvalidDelegate, to+" is excluded by separation of duties")
	case errors.Is(err, ErrNotMember):
		return d.refuse(ErrInvalidDelegate, to+" is not in a group that decides this")
	default:
		return err
	}
}

func (a Snooze) apply(d *update) error {
	until := a.Until.UTC().Round(0)
	if !until.After(d.now) || !until.Before(d.r.Deadline) {
		return d.refuse(ErrInvalidTime, "the snooze must end before the deadline, "+formatTime(d.r.Deadline))
	}
	d.restartRoute(until)
	d.r.Snoozed = until
	d.logEvent(EventSnoozed, "snoozed it until "+formatTime(until), map[string]string{"until": until.Format(time.RFC3339Nano)})
	return nil
}

func (a Extend) apply(d *update) error {
	until := a.Until.UTC().Round(0)
	if !until.After(d.r.Deadline) {
		return d.refuse(ErrInvalidTime, "the deadline is already "+formatTime(d.r.Deadline))
	}
	last := d.r.LatestDeadline()
	if last.IsZero() {
		return d.refuse(ErrInvalidTime, "the deadline cannot be extended")
	}
	if until.After(last) {
		return d.refuse(ErrInvalidTime, "the deadline can be extended to "+formatTime(last)+" at most")
	}
	d.logEvent(EventExtended, "moved the deadline to "+formatTime(until), map[string]string{
		"from": d.r.Deadline.Format(time.RFC3339Nano), "to": until.Format(time.RFC3339Nano),
	})
	d.r.Deadline = until
	known := d.alreadyNotified()
	d.restartRoute(d.now)
	d.r.RouteProgress.DoneSteps = known
	return nil
}

func (a Escalate) apply(d *update) error {
	if d.r.Requirement.OnEscalate == requirement.EscalateReturns {
		return a.returnForRedesign(d)
	}
	if err := d.checkText(a.Reason, false); err != nil {
		return err
	}
	next := d.nextEscalation()
	if next < 0 {
		return d.refuse(ErrNoStep, "")
	}
	d.r.RouteProgress.Escalated++
	d.logEvent(EventEscalated, "escalated it", map[string]string{"reason": a.Reason, "step": fmt.Sprint(next + 1)})
	d.fireStep(next)
	return nil
}

// returnForRedesign closes the request: the run gets the reason and may propose something else.
func (a Escalate) returnForRedesign(d *update) error {
	if err := d.checkText(a.Reason, true); err != nil {
		return err
	}
	if !a.Actor.Auth.AtLeast(d.r.Requirement.MinAuth) {
		return d.refuse(&WeakAuthError{d.r.Requirement.MinAuth}, "")
	}
	if a.Seen != (Seen{}) {
		if err := d.checkSeen(); err != nil {
			return err
		}
	}
	d.conclude(Decision{Outcome: OutcomeReturned, By: []string{a.Actor.ID}, Reason: a.Reason})
	return nil
}

// checkNote checks a text and the capacity of its list.
func (d *update) checkNote(text string, length int) error {
	if err := d.checkCapacity(length); err != nil {
		return err
	}
	return d.checkText(text, true)
}

// formatTime formats a time for people.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
