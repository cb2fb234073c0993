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
	"github.com/fermata-go/fermata/internal/requirement"
)

func (a Approve) apply(d *update) error {
	a.Conditions.Until = a.Conditions.Until.UTC().Round(0)
	if err := d.checkConfirmed(); err != nil {
		return err
	}
	if err := d.checkConditions(a.Conditions); err != nil {
		return err
	}
	d.note = a.Reason
	return d.recordVote(Vote{Verb: requirement.VerbApprove, Choice: d.r.ActionDigest(), Conditions: a.Conditions}, conditionsText(a.Conditions))
}

func (a Reject) apply(d *update) error {
	if err := d.checkText(a.Reason, len(a.Codes) == 0); err != nil {
		return err
	}
	if err := d.checkReasonCodes("a rejection", ErrInvalidValue, a.Codes, d.r.Requirement.RejectReasons); err != nil {
		return err
	}
	text := "rejected it"
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	return d.recordVote(Vote{Verb: requirement.VerbReject, Choice: d.r.ActionDigest(), Codes: slices.Clone(a.Codes), Reason: a.Reason, Retry: a.Retry}, text)
}

// checkCodes checks the length and number of codes.
func (d *update) checkCodes(codes []string) error {
	if len(codes) > 20 || slices.ContainsFunc(codes, func(c string) bool { return c == "" || len(c) > 100 }) {
		return d.refuse(ErrInvalidText, "a code must have 1 to 100 characters, and at most 20 codes are allowed")
	}
	return nil
}

// checkReasonCodes checks the codes of an edit or a rejection against those that the requirement
// knows. Without any, all codes are accepted, and none is needed. reason is that of a refusal.
func (d *update) checkReasonCodes(of string, reason error, codes, known []string) error {
	if err := d.checkCodes(codes); err != nil || len(known) == 0 {
		return err
	}
	use := strings.Join(known, ", ")
	if len(codes) == 0 {
		return d.refuse(reason, of+" needs a reason code: "+use)
	}
	for _, code := range codes {
		if !slices.Contains(known, code) {
			return d.refuse(reason, fmt.Sprintf("unknown reason code %q: use %s", code, use))
		}
	}
	return nil
}

func (a Respond) apply(d *update) error {
	choice, err := strictDigest(a.Value)
	if err != nil {
		return d.refuse(ErrInvalidValue, err.Error())
	}
	if err := d.r.CheckNotMasked(a.Value); err != nil {
		return err
	}
	if a.Choice != "" {
		choice = "word:" + a.Choice
	}
	if err := d.checkText(a.Choice, false); err != nil {
		return err
	}
	if d.r.Subject.Kind == holdKind { // the value is an edit
		if err := d.checkReasonCodes("an edit", ErrInvalidEdit, a.Codes, d.r.Requirement.EditReasons); err != nil {
			return err
		}
	}
	d.note = a.Reason
	return d.recordVote(Vote{Verb: requirement.VerbRespond, Choice: choice, Value: slices.Clone(a.Value), Reason: a.Reason, Codes: slices.Clone(a.Codes)}, "answered")
}

func (a Abandon) apply(d *update) error {
	if err := d.checkText(a.Reason, false); err != nil {
		return err
	}
	d.conclude(Decision{Outcome: OutcomeAbandoned, By: []string{a.Actor.ID}, Reason: a.Reason})
	return nil
}

func (a Withdraw) apply(d *update) error {
	if err := d.checkText(a.Reason, false); err != nil {
		return err
	}
	d.conclude(Decision{Outcome: OutcomeWithdrawn, By: []string{a.Actor.ID}, Reason: a.Reason})
	return nil
}

// recordVote records a vote, replaces an earlier vote of the same person, and closes the request if
// the votes suffice.
func (d *update) recordVote(v Vote, text string) error {
	v.By, v.At, v.Rev = d.from.Actor.ID, d.now, d.r.Rev+1
	v.Auth, v.Via = d.from.Actor.Auth, d.from.Via
	var err error
	if v.Stage, err = d.openStage(); err != nil {
		return err
	}
	before := d.r.VoteProgress.Stage
	i := d.voteOf(v.By)
	if i >= 0 && d.r.Votes[i].sameAs(v) {
		// The same vote again: it may suffice now, if another person's vote counts again.
		if err := d.decideIfEnough(v); err != nil || d.decision == nil && d.r.Pending == nil {
			return err
		}
		return d.updateProgress()
	}
	if i >= 0 {
		d.r.Votes = slices.Delete(d.r.Votes, i, i+1)
	}
	if err := d.checkCapacity(len(d.r.Votes)); err != nil {
		return err
	}
	groups, err := d.groupsOf(v.By)
	if err != nil {
		return err
	}
	d.r.Votes = append(d.r.Votes, v)
	d.logEvent(EventVoted, text, d.withRendering(map[string]string{
		"verb": string(v.Verb), "word": v.Choice, "reason": v.Reason, "codes": strings.Join(v.Codes, ","), "shown": d.seenDigest(), "groups": strings.Join(groups, "\n"),
	}))
	if err := d.updateProgress(); err != nil {
		return err
	}
	if err := d.decideIfEnough(v); err != nil {
		return err
	}
	d.noteStage(before)
	return nil
}

// seenDigest returns the digest that the voter saw, or "" if unknown. It is the current digest:
// [update.checkSeen] refuses other votes.
func (d *update) seenDigest() string {
	if d.from.Seen == (Seen{}) {
		return ""
	}
	return d.r.Digest()
}

// sameAs reports whether both votes are equal.
func (v Vote) sameAs(w Vote) bool {
	return v.Verb == w.Verb && v.Choice == w.Choice && slices.Equal(v.Codes, w.Codes) && v.Reason == w.Reason && v.Retry == w.Retry &&
		string(v.Value) == string(w.Value) && v.Auth == w.Auth && v.Stage == w.Stage && v.Conditions == w.Conditions
}

// decideIfEnough closes the request if the votes for one choice suffice. With an undo window the
// decision is pending first.
func (d *update) decideIfEnough(v Vote) error {
	f, err := d.decisionFor(v)
	switch {
	case err != nil || f == nil:
		return err
	case d.r.Requirement.Undo > 0:
		d.hold(v, *f)
	default:
		d.conclude(*f)
	}
	return nil
}

// decisionFor returns the decision if the votes for the choice of a vote suffice, or nil. It checks
// every voter again, because this may be the last vote.
func (d *update) decisionFor(v Vote) (*Decision, error) {
	t, err := d.countVotes(v.Verb, v.Choice)
	if err != nil {
		return nil, err
	}
	switch {
	case v.Verb == requirement.VerbReject && len(t.by) >= max(1, d.r.Requirement.DenyCount):
		return &Decision{Outcome: OutcomeRejected, By: t.by, Codes: v.Codes, Reason: v.Reason, Retry: v.Retry}, nil
	case v.Verb == requirement.VerbApprove && t.Met():
		f := Decision{Outcome: OutcomeApproved, By: t.by, Digest: d.r.ActionDigest(), Conditions: d.r.conditionsOf(t.by)}
		if d.r.Edit != nil {
			f.Args, f.Codes = d.r.Edit.Args, d.r.Edit.Codes
		}
		return &f, nil
	case v.Verb == requirement.VerbRespond && t.Met():
		return &Decision{Outcome: OutcomeAnswered, By: t.by, Value: v.Value}, nil
	}
	return nil, nil
}

func (a ApproveEdited) apply(d *update) error {
	edit, err := d.checkEdit(a.Args)
	if err != nil {
		return err
	}
	if edit.Digest == d.r.ActionDigest() { // no changes
		if err := d.checkEligible(a.Actor.ID, requirement.VerbApprove); err != nil {
			return err
		}
		return Approve{a.From, a.Conditions, a.Reason}.apply(d)
	}
	need, err := d.requirementFor(edit)
	if err == nil {
		err = d.checkReasonCodes("an edit", ErrInvalidEdit, a.Codes, need.EditReasons)
	}
	if err != nil {
		return err
	}
	edit.Codes = slices.Clone(a.Codes)
	return d.applyEdit(edit, need, Approve{Conditions: a.Conditions, Reason: a.Reason})
}

// checkEdit validates edited arguments.
func (d *update) checkEdit(args json.RawMessage) (Edit, error) {
	edit := Edit{By: d.from.Actor.ID, At: d.now, Args: slices.Clone(args)}
	asked, err := canonicalDigest(d.env.Args)
	if err != nil || asked != d.r.Subject.ArgsDigest {
		return edit, d.refuse(ErrInvalid, "the original arguments are required to compute the edit")
	}
	if edit.ArgsDigest, err = strictDigest(args); err != nil {
		return edit, d.refuse(ErrInvalidEdit, err.Error())
	}
	if err := d.r.checkNotMasked(args, ""); err != nil {
		return edit, err
	}
	approval := fermata.ApprovalRequest{Action: d.r.Subject.Action}
	if edit.Digest, err = approval.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: args}); err != nil {
		return edit, d.refuse(ErrInvalidEdit, err.Error())
	}
	differences, err := Diff(d.env.Args, args)
	for _, difference := range differences {
		edit.Fields = append(edit.Fields, difference.Pointer)
	}
	return edit, err
}

// requirementFor asks the policy about the edit and returns the new requirement.
func (d *update) requirementFor(edit Edit) (requirement.Requirement, error) {
	need := d.r.Requirement
	if d.env.Policy != nil {
		ruling, err := d.env.Policy(slices.Clone(edit.Args))
		switch {
		case err != nil:
			return need, d.refuse(ErrPolicyUnavailable, err.Error())
		case ruling.Deny:
			return need, d.refuse(ErrDenied, ruling.Reason)
		case ruling.Requirement != nil:
			if err := ruling.Requirement.Check(); err != nil {
				return need, d.refuse(ErrPolicyUnavailable, err.Error())
			}
			need = need.Merge(*ruling.Requirement)
		}
	}
	if deadline := d.r.Created.Add(time.Duration(need.MaxOpen())); need.MaxOpen() > 0 && !d.now.Before(deadline) {
		return need, d.refuse(ErrDenied, "the rules' deadline for these arguments was "+formatTime(deadline))
	}
	for _, field := range edit.Fields {
		if !requirement.Covers(need.Editable, field) {
			return need, d.refuse(ErrInvalidEdit, fmt.Sprintf("%q is not editable", field))
		}
	}
	if !d.from.Actor.Auth.AtLeast(need.MinAuth) {
		return need, d.refuse(&WeakAuthError{need.MinAuth}, "for this edit")
	}
	return need, nil
}

// applyEdit replaces the requested arguments. It voids earlier votes and notifies their voters.
func (d *update) applyEdit(edit Edit, need requirement.Requirement, approval Approve) error {
	before := d.r.Requirement
	voided := d.r.Votes
	text := "edited " + strings.Join(edit.Fields, ", ")
	if len(edit.Fields) == 0 {
		text = "restored the original arguments"
	}
	detail := map[string]string{"before": d.r.ActionDigest(), "after": edit.Digest, "args": edit.ArgsDigest}
	if len(edit.Codes) > 0 {
		detail["codes"] = strings.Join(edit.Codes, ",")
	}
	d.logEvent(EventEdited, text, d.withRendering(detail))
	d.r.Edit, d.r.Requirement, d.r.Votes = &edit, need, nil
	if limit := need.MaxOpen(); limit > 0 {
		d.r.Deadline = earliest(d.r.Deadline, d.r.Created.Add(time.Duration(limit)))
	}
	if err := d.updateProgress(); err != nil {
		return err
	}
	if !reflect.DeepEqual(before.Groups, need.Groups) || before.MinAuth != need.MinAuth {
		d.logEvent(EventRequirementRaised, "raised the requirement: "+d.r.VoteProgress.String(), nil)
	}
	err := d.checkEligible(edit.By, requirement.VerbApprove)
	if err == nil {
		err = d.checkStage(edit.By, d.r.openStage())
	}
	switch {
	case err == nil:
		err = approval.apply(d)
	case approval.Conditions.IsZero() && (errors.Is(err, ErrExcluded) || errors.Is(err, ErrEarlierStage)):
		err = nil // the edit stays, and others approve it
	}
	if err != nil || d.r.State != StateOpen || d.r.Pending != nil {
		return err
	}
	var targets []string
	for _, v := range voided {
		if v.By != edit.By {
			targets = append(targets, "user:"+v.By)
		}
	}
	targets = append(targets, d.newApprovers(before)...)
	if len(targets) > 0 {
		d.addNotice(NoticeNotify, EventEdited, targets)
	}
	d.restartRoute(d.now)
	d.runDueSteps()
	return nil
}

// newApprovers returns targets that the new requirement adds, unless the route notifies them when
// it restarts. The route was chosen for the original arguments and may not include them.
func (d *update) newApprovers(before requirement.Requirement) []string {
	var notified []string
	for _, s := range d.r.Route.Steps {
		if s.At == 0 {
			notified = append(notified, d.resolveTargets(s.Notify)...)
		}
	}
	if slices.Contains(notified, TargetInbox) { // every approver sees the inbox
		return nil
	}
	asked := d.r
	asked.Requirement = before
	known := append(notified, asked.approverTargets()...)
	return slices.DeleteFunc(d.r.approverTargets(), func(who string) bool { return slices.Contains(known, who) })
}
