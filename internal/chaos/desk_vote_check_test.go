//go:build unix

package chaos

import (
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
)

// submissionRecord is a submission under one id and its final reply.
type submissionRecord struct {
	id     decisionID
	meant  intendedVote
	answer *attempt // the first; nil if unknown
	all    []*attempt
}

// submissions returns the submissions on a request, by id. It excludes an id that was used for
// something else.
func (d *requestRecord) submissions() map[decisionID]*submissionRecord {
	list := make(map[decisionID]*submissionRecord)
	for _, a := range d.attempts {
		if a.verb != doDecide || len(a.aims) != 1 {
			continue
		}
		s := list[a.id()]
		if s == nil {
			s = &submissionRecord{id: a.id(), meant: a.aims[0]}
			list[a.id()] = s
		}
		s.all = append(s.all, a)
		if a.got != 0 && (s.answer == nil || a.got < s.answer.got) {
			s.answer = a
		}
	}
	return list
}

// voteOf returns the vote in an audit record.
func voteOf(line audit.Record) (id decisionID, decided audit.RequestDecided, ok bool) {
	decided, ok = line.Body.(audit.RequestDecided)
	return decisionID{line.Actor.Principal, decided.ResumeID}, decided, ok
}

// verb returns the last recorded verb of a submission.
func (s *submissionRecord) verb() audit.Verb {
	if s.meant.Approve == nil {
		return audit.VerbReject
	}
	return audit.VerbApprove
}

// checkVotes checks that every recorded vote was submitted with that meaning and not refused, and
// that every accepted vote is recorded once, or equals an earlier one.
func (d *requestRecord) checkVotes(complain reportFunc) {
	all := d.submissions()
	count, verbs := make(map[decisionID]int), make(map[string][]audit.Verb)
	for _, line := range d.lines {
		id, decided, ok := voteOf(line)
		if !ok {
			continue
		}
		s := all[id]
		switch {
		case s == nil || s.meant.Nonsense:
			complain(wordCounts, "no one submitted %s as %v under %q", decided.Verb, id.actor, id.id)
			continue
		case s.answer != nil && !s.answer.answer.accepted():
			complain(wordCounts, "%s\n        but it is in audit record %d", s.answer, line.Seq)
		case decided.Verb != s.verb() && (decided.Verb != audit.VerbApproveWithEdits || !s.meant.Edited):
			complain(asMeant, "%v meant %+v under %q, but the audit log has %s", id.actor, s.meant, id.id, decided.Verb)
		}
		if decided.Verb != audit.VerbApproveWithEdits {
			count[id]++
		}
		verbs[id.actor] = append(verbs[id.actor], decided.Verb)
	}
	for id, s := range all {
		switch {
		case count[id] > 1:
			complain(wordCounts, "%v is counted %d times for %q", id.actor, count[id], id.id)
		case s.answer != nil && s.answer.answer.accepted() && count[id] == 0 && !slices.Contains(verbs[id.actor], s.verb()):
			complain(wordCounts, "%s\n        but it is not in the audit log", s.answer)
		}
	}
}

// checkReplies checks that a repeated submission gets the same reply, and that refusals are
// justified.
func (d *requestRecord) checkReplies(complain reportFunc) {
	for _, s := range d.submissions() {
		for _, a := range sortedAttempts(s.all) {
			if a.answer.Kind == saidUnfit || a.answer.Kind == saidReused {
				if a.answer.Kind == saidReused || s.answer.answer.Kind != saidUnfit && a.sent > s.answer.got {
					complain(oneAnswer, "\n        %s\n        %s", s.answer, a)
				}
				continue
			}
			if s.answer.answer.Kind != saidUnfit && !sameReceipt(s.answer, a) {
				complain(oneAnswer, "\n        %s\n        %s", s.answer, a)
			}
			if s.meant.Nonsense && a.answer.accepted() {
				complain(badIsNothing, "%s", a)
			}
			if a.answer.Kind == saidRefused && !d.refusedFor(s, a) {
				complain(wordCounts, "%s\n        but %s", a, describe(&d.interrupt))
			}
		}
	}
}

// refusedFor reports whether a refusal can be explained by the state of the request.
func (d *requestRecord) refusedFor(s *submissionRecord, a *attempt) bool {
	edited := slices.ContainsFunc(d.doc.Log, func(e desk.Event) bool { return e.Type == desk.EventEdited })
	switch a.answer.Result {
	case executor.Forbidden:
		return d.isIneligible(s.id.actor) || !payerAt(s.id.actor, d.deadline(a))
	case store.ResultDigestMismatch:
		return edited
	case store.ResultAlreadyDecided:
		return refusedFor(a.answer.Result, &d.interrupt) && (a.answer.By == "" || a.answer.By == d.interrupt.DecidedBy)
	}
	return refusedFor(a.answer.Result, &d.interrupt)
}

// deadline returns the latest time of the reply: a payer at that time was one before.
func (d *requestRecord) deadline(a *attempt) time.Time { return d.world.Add(a.got) }

// isIneligible reports whether a person is never eligible here.
func (d *requestRecord) isIneligible(person string) bool {
	return person == d.doc.Subject.Requester || person == outsider
}

// voteSet is the votes in the audit log.
type voteSet struct {
	yes, no map[string]decisionID
}

func newVoteSet() voteSet {
	return voteSet{yes: make(map[string]decisionID), no: make(map[string]decisionID)}
}

func (b voteSet) put(id decisionID, verb audit.Verb) {
	delete(b.yes, id.actor)
	delete(b.no, id.actor)
	if verb == audit.VerbReject {
		b.no[id.actor] = id
	} else {
		b.yes[id.actor] = id
	}
}

// count returns how many votes count at a time. If sure is true, voters who leave later are
// excluded.
func (b voteSet) count(d *requestRecord, at time.Time, sure bool) (n int) {
	for person := range b.yes {
		if !d.isIneligible(person) && payerAt(person, at) && (!sure || slices.Contains(permanent, person)) {
			n++
		}
	}
	return n
}

// recount checks, by the audit log alone, that the request was decided by the first sufficient
// vote. The document must have the same votes.
func (d *requestRecord) recount(complain reportFunc) {
	box, over := newVoteSet(), false
	for _, line := range d.lines {
		id, decided, ok := voteOf(line)
		if !ok {
			continue
		}
		if over {
			complain(oneEnd, "record %d counts a vote of %s after the decision", line.Seq, id.actor)
		}
		if decided.Verb == audit.VerbApproveWithEdits { // earlier votes were about something else
			box = newVoteSet()
			continue
		}
		box.put(id, decided.Verb)
		at := decided.Timing.Decided.Time
		switch {
		case decided.Verb == audit.VerbReject && !decided.Settles:
			complain(wordCounts, "record %d: the rejection of %s does not decide", line.Seq, id.actor)
		case decided.Verb == audit.VerbReject && (d.isIneligible(id.actor) || !payerAt(id.actor, at)):
			complain(twoPayers, "record %d: %s is not eligible", line.Seq, id.actor)
		case decided.Verb == audit.VerbApprove && decided.Settles && box.count(d, at, false) < quorum:
			complain(twoPayers, "record %d approves it at %s with the votes of %v; the requester is %s", line.Seq, at, box.yes, d.doc.Subject.Requester)
		case decided.Verb == audit.VerbApprove && !decided.Settles && box.count(d, at, true) >= quorum:
			complain(wordCounts, "record %d does not approve it, with the votes of %v", line.Seq, box.yes)
		}
		over = decided.Settles
	}
	for _, vote := range d.doc.Votes {
		from := map[requirement.Verb]map[string]decisionID{requirement.VerbApprove: box.yes, requirement.VerbReject: box.no}[vote.Verb]
		if _, counted := from[vote.By]; !counted {
			complain(wordCounts, "the request has a vote of %s, %s, but the audit log does not", vote.By, vote.Verb)
		}
		delete(from, vote.By)
	}
	if len(box.yes)+len(box.no) > 0 {
		complain(wordCounts, "the votes %v and %v are in the audit log, but not in the request", box.yes, box.no)
	}
}

// checkDigests checks that all voters of an approval approved exactly this action.
func (d *requestRecord) checkDigests(complain reportFunc) {
	final, all := d.doc.Decision, d.submissions()
	if final == nil || final.Outcome != desk.OutcomeApproved {
		return
	}
	if final.Digest != d.interrupt.ApprovedDigest {
		complain(asMeant, "the request approves %s, but the store %s", final.Digest, d.interrupt.ApprovedDigest)
	}
	last := make(map[string]*submissionRecord)
	for _, line := range d.lines {
		if id, _, ok := voteOf(line); ok && all[id] != nil {
			last[id.actor] = all[id]
		}
	}
	people := slices.Compact(slices.Sorted(slices.Values(final.By)))
	if len(people) < quorum {
		complain(twoPayers, "approved by %q", final.By)
	}
	for _, person := range people {
		s := last[person]
		if s == nil || s.meant.Approve == nil || digestOf(pay, *s.meant.Approve) != final.Digest {
			complain(asMeant, "%s is a voter for %s, but submitted %+v", person, final.Digest, s)
		}
	}
}
