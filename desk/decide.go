package desk

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
)

func (a Approve) do(d *draft) error {
	return d.vote(Vote{Verb: VerbApprove, Word: d.r.Subject()}, "approved")
}

func (a Reject) do(d *draft) error {
	if err := d.text(a.Reason, len(a.Codes) == 0); err != nil {
		return err
	}
	if len(a.Codes) > 20 || slices.ContainsFunc(a.Codes, func(c string) bool { return c == "" || len(c) > 100 }) {
		return d.refuse(ErrText, "a code is a short word")
	}
	text := "rejected it"
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	return d.vote(Vote{Verb: VerbReject, Word: d.r.Subject(), Codes: slices.Clone(a.Codes), Reason: a.Reason, Retry: a.Retry}, text)
}

func (a Respond) do(d *draft) error {
	word, err := strictDigest(a.Value)
	if err != nil {
		return d.refuse(ErrValue, err.Error())
	}
	if a.Word != "" {
		word = "word:" + a.Word
	}
	if err := d.text(a.Word, false); err != nil {
		return err
	}
	return d.vote(Vote{Verb: VerbRespond, Word: word, Value: slices.Clone(a.Value)}, "answered")
}

func (a Escape) do(d *draft) error {
	if err := d.text(a.Reason, false); err != nil {
		return err
	}
	d.end(Final{Outcome: Escaped, By: []string{a.Actor.ID}, Reason: a.Reason})
	return nil
}

func (a Withdraw) do(d *draft) error {
	if err := d.text(a.Reason, false); err != nil {
		return err
	}
	d.end(Final{Outcome: Dropped, By: []string{a.Actor.ID}, Reason: a.Reason})
	return nil
}

// vote notes somebody's word, in the place of an earlier one, and ends the request if that was the last that was needed.
func (d *draft) vote(v Vote, text string) error {
	v.By, v.At, v.Rev = d.from.Actor.ID, d.now, d.r.Rev+1
	v.Auth, v.Via = d.from.Actor.Auth, d.from.Via
	i := slices.IndexFunc(d.r.Votes, func(old Vote) bool { return old.By == v.By })
	if i >= 0 && d.r.Votes[i].says(v) {
		// The same word again: it is enough now if somebody else's counts again.
		if err := d.settle(v); err != nil || d.final == nil {
			return err
		}
		return d.progress()
	}
	if i >= 0 {
		d.r.Votes = slices.Delete(d.r.Votes, i, i+1)
	}
	if err := d.room(len(d.r.Votes)); err != nil {
		return err
	}
	groups, err := d.groupsOf(v.By)
	if err != nil {
		return err
	}
	d.r.Votes = append(d.r.Votes, v)
	d.log(WasVoted, text, map[string]string{
		"verb": string(v.Verb), "word": v.Word, "reason": v.Reason, "codes": strings.Join(v.Codes, ","), "shown": d.saw(), "groups": strings.Join(groups, "\n"),
	})
	if err := d.progress(); err != nil {
		return err
	}
	return d.settle(v)
}

// saw is the digest of what whoever votes has seen; "" if they do not say. It is what is asked now, or [draft.fresh] has refused the vote.
func (d *draft) saw() string {
	if d.from.Seen == (Seen{}) {
		return ""
	}
	return d.r.Digest()
}

// says reports whether both are the same word.
func (v Vote) says(w Vote) bool {
	return v.Verb == w.Verb && v.Word == w.Word && slices.Equal(v.Codes, w.Codes) && v.Reason == w.Reason && v.Retry == w.Retry &&
		string(v.Value) == string(w.Value) && v.Auth == w.Auth
}

// settle ends the request if the votes of one word are enough. Everybody who counts is looked up again: this may be the last vote.
func (d *draft) settle(v Vote) error {
	t, err := d.count(v.Verb, v.Word)
	if err != nil {
		return err
	}
	switch {
	case v.Verb == VerbReject && len(t.by) >= max(1, d.r.Need.Denials):
		d.end(Final{Outcome: Rejected, By: t.by, Codes: v.Codes, Reason: v.Reason, Retry: v.Retry})
	case v.Verb == VerbApprove && t.Met():
		f := Final{Outcome: Approved, By: t.by, Digest: d.r.Subject()}
		if d.r.Edit != nil {
			f.Args = d.r.Edit.Args
		}
		d.end(f)
	case v.Verb == VerbRespond && t.Met():
		d.end(Final{Outcome: Responded, By: t.by, Value: v.Value})
	}
	return nil
}

func (a ApproveEdited) do(d *draft) error {
	edit, err := d.edit(a.Args)
	if err != nil {
		return err
	}
	if edit.Digest == d.r.Subject() { // nothing is edited
		if err := d.mayDecide(a.Actor.ID, VerbApprove); err != nil {
			return err
		}
		return Approve{a.From}.do(d)
	}
	need, err := d.needFor(edit)
	if err != nil {
		return err
	}
	return d.take(edit, need)
}

// edit checks what somebody made of the arguments.
func (d *draft) edit(args json.RawMessage) (Edit, error) {
	edit := Edit{By: d.from.Actor.ID, At: d.now, Args: slices.Clone(args)}
	asked, err := canonicalDigest(d.env.Args)
	if err != nil || asked != d.r.Asked.Args {
		return edit, d.refuse(ErrInvalid, "the arguments that were asked for are needed to tell what was edited")
	}
	if edit.ArgsDigest, err = strictDigest(args); err != nil {
		return edit, d.refuse(ErrEdit, err.Error())
	}
	question := fermata.ApprovalRequest{Action: d.r.Asked.Action}
	if edit.Digest, err = question.Approves(fermata.Decision{Verb: fermata.VerbApprove, Args: args}); err != nil {
		return edit, d.refuse(ErrEdit, err.Error())
	}
	differences, err := Diff(d.env.Args, args)
	for _, difference := range differences {
		edit.Fields = append(edit.Fields, difference.Pointer)
	}
	return edit, err
}

// needFor asks the policy about the edit, and returns what is required now.
func (d *draft) needFor(edit Edit) (Requirement, error) {
	need := d.r.Need
	if d.env.Policy != nil {
		ruling, err := d.env.Policy(slices.Clone(edit.Args))
		switch {
		case err != nil:
			return need, d.refuse(ErrPolicy, err.Error())
		case ruling.Deny:
			return need, d.refuse(ErrDenied, ruling.Reason)
		case ruling.Need != nil:
			if err := ruling.Need.Check(); err != nil {
				return need, d.refuse(ErrPolicy, err.Error())
			}
			need = need.Merge(*ruling.Need)
		}
	}
	if over := d.r.Created.Add(time.Duration(need.limit())); need.limit() > 0 && !d.now.Before(over) {
		return need, d.refuse(ErrDenied, "the time that the rules give it was over at "+stamp(over))
	}
	for _, field := range edit.Fields {
		if !covered(field, need.Editable) {
			return need, d.refuse(ErrEdit, fmt.Sprintf("%q cannot be changed", field))
		}
	}
	if !d.from.Actor.Auth.AtLeast(need.MinAuth) {
		return need, d.refuse(ErrWeakAuth, "this edit needs "+string(need.MinAuth))
	}
	return need, nil
}

// take puts an edit in the place of what was asked. Who voted before voted on something else, and is asked again.
func (d *draft) take(edit Edit, need Requirement) error {
	before := d.r.Need
	voided := d.r.Votes
	text := "edited " + strings.Join(edit.Fields, ", ")
	if len(edit.Fields) == 0 {
		text = "put back what was asked"
	}
	d.log(WasEdited, text, map[string]string{"before": d.r.Subject(), "after": edit.Digest, "args": edit.ArgsDigest})
	d.r.Edit, d.r.Need, d.r.Votes = &edit, need, nil
	if limit := need.limit(); limit > 0 {
		d.r.Deadline = earliest(d.r.Deadline, d.r.Created.Add(time.Duration(limit)))
	}
	if err := d.progress(); err != nil {
		return err
	}
	if !reflect.DeepEqual(before.Groups, need.Groups) || before.MinAuth != need.MinAuth {
		d.log(WasStricter, "made it need "+d.r.Progress.String(), nil)
	}
	err := d.mayDecide(edit.By, VerbApprove)
	switch {
	case err == nil:
		err = (Approve{}).do(d)
	case errors.Is(err, ErrExcluded):
		err = nil // the edit stands, and others approve it
	}
	if err != nil || d.r.State != Open {
		return err
	}
	var again []string
	for _, v := range voided {
		if v.By != edit.By {
			again = append(again, "user:"+v.By)
		}
	}
	again = append(again, d.newcomers(before)...)
	if len(again) > 0 {
		d.tell(Notify, WasEdited, again)
	}
	d.restart(d.now)
	d.run()
	return nil
}

// newcomers are those who are asked now, and were not before, unless the route tells them when it begins: it was chosen for what was asked, and may know nothing
// of them.
func (d *draft) newcomers(before Requirement) []string {
	var told []string
	for _, s := range d.r.Route.Steps {
		if s.At == 0 {
			told = append(told, d.resolve(s.Notify)...)
		}
	}
	if slices.Contains(told, TargetInbox) { // everybody looks there
		return nil
	}
	asked := d.r
	asked.Need = before
	known := append(told, asked.approvers()...)
	return slices.DeleteFunc(d.r.approvers(), func(who string) bool { return slices.Contains(known, who) })
}
