package desk

import (
	"fmt"
	"slices"
	"time"
)

func (a Claim) do(d *draft) error {
	switch c := d.r.Claim; {
	case c == nil:
	case c.By == a.Actor.ID:
		return nil
	case d.mayStill(c.By): // whoever may not decide any more does not look after it either
		return d.refuse(ErrClaimed, c.By+" does")
	}
	d.r.Claim = &Claimed{By: a.Actor.ID, At: d.now}
	d.log(WasClaimed, "looks after it", nil)
	return nil
}

func (a Release) do(d *draft) error {
	if c := d.r.Claim; c == nil || c.By != a.Actor.ID {
		return d.refuse(ErrNotClaimed, "")
	}
	d.r.Claim = nil
	d.log(WasReleased, "does not look after it any more", nil)
	return nil
}

func (a View) do(d *draft) error {
	if a.Seen.Digest != "" && a.Seen.Digest != d.r.Digest() {
		return nil // they have something in front of them that is no longer asked
	}
	i := slices.IndexFunc(d.r.Views, func(v Viewed) bool { return v.By == a.Actor.ID })
	if i < 0 && len(d.r.Views) >= maxItems || i >= 0 && !d.r.Views[i].last().Before(d.r.Place.Base) {
		return nil
	}
	err := d.mayDecide(a.Actor.ID, VerbApprove)
	if Code(err) == "directory_down" {
		return err
	}
	if i < 0 {
		i = len(d.r.Views)
		d.r.Views = append(d.r.Views, Viewed{By: a.Actor.ID, At: d.now, Rev: d.r.Rev})
	} else {
		d.r.Views[i].Again = d.now
	}
	d.r.Views[i].May = err == nil
	d.log(WasViewed, "saw it", map[string]string{"shown": d.r.Digest()})
	return nil
}

func (a Comment) do(d *draft) error {
	if err := d.write(a.Text, len(d.r.Comments)); err != nil {
		return err
	}
	d.r.Comments = append(d.r.Comments, Note{By: a.Actor.ID, At: d.now, Text: a.Text})
	d.log(WasComment, "commented", nil)
	return nil
}

func (a AskBack) do(d *draft) error {
	if err := d.write(a.Question, len(d.r.Questions)); err != nil {
		return err
	}
	d.r.Questions = append(d.r.Questions, Question{Note: Note{By: a.Actor.ID, At: d.now, Text: a.Question}})
	d.log(WasQuestion, "asked the run something", map[string]string{"question": fmt.Sprint(len(d.r.Questions))})
	d.tell(TellRequester, WasQuestion, d.requester())
	return nil
}

func (a AnswerBack) do(d *draft) error {
	i := a.Question - 1
	if i == -1 {
		return d.refuse(ErrNoQuestion, "say which one is answered, counted from 1")
	}
	if i < 0 || i >= len(d.r.Questions) || d.r.Questions[i].Answer != nil {
		return d.refuse(ErrNoQuestion, fmt.Sprintf("question %d", a.Question))
	}
	if err := d.text(a.Answer, true); err != nil {
		return err
	}
	d.r.Questions[i].Answer = &Note{By: a.Actor.ID, At: d.now, Text: a.Answer}
	d.log(WasReplied, fmt.Sprintf("answered question %d of %s", a.Question, d.r.Questions[i].By), map[string]string{"question": fmt.Sprint(a.Question)})
	d.tell(Notify, WasReplied, []string{"user:" + d.r.Questions[i].By})
	return nil
}

func (a Delegate) do(d *draft) error {
	if err := d.text(a.Reason, false); err != nil {
		return err
	}
	if err := d.room(len(d.r.Delegations)); err != nil {
		return err
	}
	if a.To == a.Actor.ID {
		return d.refuse(ErrNotYours, "they would delegate to themselves")
	}
	if err := d.mayDecide(a.To, VerbApprove); err != nil {
		return err
	}
	d.r.Delegations = append(d.r.Delegations, Delegation{By: a.Actor.ID, To: a.To, At: d.now})
	if c := d.r.Claim; c != nil && c.By == a.Actor.ID {
		d.r.Claim = nil
	}
	d.log(WasDelegated, "asked "+a.To+" to decide", map[string]string{"to": a.To, "reason": a.Reason})
	d.tell(Notify, WasDelegated, []string{"user:" + a.To})
	return nil
}

func (a Snooze) do(d *draft) error {
	until := a.Until.UTC().Round(0)
	if !until.After(d.now) || !until.Before(d.r.Deadline) {
		return d.refuse(ErrTime, "it can be left alone until before its deadline, "+stamp(d.r.Deadline))
	}
	d.restart(until)
	d.r.Snoozed = until
	d.log(WasSnoozed, "left it until "+stamp(until), map[string]string{"until": until.Format(time.RFC3339Nano)})
	return nil
}

func (a Extend) do(d *draft) error {
	until := a.Until.UTC().Round(0)
	if !until.After(d.r.Deadline) {
		return d.refuse(ErrTime, "its deadline is "+stamp(d.r.Deadline)+" already")
	}
	last := d.r.Created.Add(time.Duration(d.r.Route.Cap))
	if limit := d.r.Need.limit(); limit > 0 {
		last = earliest(last, d.r.Created.Add(time.Duration(limit)))
	}
	if until.After(last) {
		return d.refuse(ErrTime, "it can be extended to "+stamp(last)+" at most")
	}
	d.log(WasExtended, "moved the deadline to "+stamp(until), map[string]string{
		"from": d.r.Deadline.Format(time.RFC3339Nano), "to": until.Format(time.RFC3339Nano),
	})
	d.r.Deadline = until
	known := d.known()
	d.restart(d.now)
	d.r.Place.Done = known
	return nil
}

func (a Escalate) do(d *draft) error {
	if err := d.text(a.Reason, false); err != nil {
		return err
	}
	next := -1
	for i := range d.r.Route.Steps {
		if d.escalates(i) {
			next = i
			break
		}
	}
	if next < 0 {
		return d.refuse(ErrNoStep, "")
	}
	d.r.Place.Escalated++
	d.log(WasEscalated, "did not want to wait any longer", map[string]string{"reason": a.Reason, "step": fmt.Sprint(next + 1)})
	d.fire(next)
	return nil
}

// write checks what somebody adds to a list.
func (d *draft) write(text string, length int) error {
	if err := d.room(length); err != nil {
		return err
	}
	return d.text(text, true)
}

// stamp is a time for people.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
