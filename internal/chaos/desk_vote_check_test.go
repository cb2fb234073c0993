//go:build unix

package chaos

import (
	"slices"
	"time"

	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
)

// submissionRecord is what somebody said under one id, and the answer that they got in the end.
type submissionRecord struct {
	id     decisionID
	meant  intendedVote
	answer *attempt // the first; nil if nobody knows
	all    []*attempt
}

// sayings are what was said to a request, by id. What is said under an id that stands for something else is not among it.
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

// voteOf is somebody's word in a line of the log.
func voteOf(line audit.Record) (id decisionID, decided audit.RequestDecided, ok bool) {
	decided, ok = line.Body.(audit.RequestDecided)
	return decisionID{line.Actor.Principal, decided.ResumeID}, decided, ok
}

// verb is the last that the log has of what somebody said.
func (s *submissionRecord) verb() audit.Verb {
	if s.meant.Approve == nil {
		return audit.VerbReject
	}
	return audit.VerbApprove
}

// words: every word in the log was said by somebody who meant it and was not told otherwise; every word that somebody was told to count is in the
// log, once, or says what they had said before.
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
			complain(wordCounts, "nobody said %s as %v under %q", decided.Verb, id.actor, id.id)
			continue
		case s.answer != nil && !s.answer.answer.accepted():
			complain(wordCounts, "%s\n        but the log has it in line %d", s.answer, line.Seq)
		case decided.Verb != s.verb() && (decided.Verb != audit.VerbApproveWithEdits || !s.meant.Edited):
			complain(asMeant, "%v meant %+v under %q, and the log has %s", id.actor, s.meant, id.id, decided.Verb)
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
			complain(wordCounts, "%s\n        but the log does not have it", s.answer)
		}
	}
}

// answers: whoever asks again under the same id is told the same, and why somebody's word does not count is so.
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

// refusedFor reports whether a refusal can be explained by what became of the request.
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

// deadline is when a replica had answered at the latest: whoever is a payer then was one before.
func (d *requestRecord) deadline(a *attempt) time.Time { return d.world.Add(a.got) }

// unfit reports whether somebody's word never counts here.
func (d *requestRecord) isIneligible(person string) bool {
	return person == d.doc.Subject.Requester || person == outsider
}

// voteSet is the votes as the log has them.
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

// count is how many of them count at a moment, whatever is the matter with the others. Who counts only until later is left out if sure is true.
func (b voteSet) count(d *requestRecord, at time.Time, sure bool) (n int) {
	for person := range b.yes {
		if !d.isIneligible(person) && payerAt(person, at) && (!sure || slices.Contains(permanent, person)) {
			n++
		}
	}
	return n
}

// recount: counted again by the log alone, the request was decided by the first word that was enough, and by no other. The document has the same votes.
func (d *requestRecord) recount(complain reportFunc) {
	box, over := newVoteSet(), false
	for _, line := range d.lines {
		id, decided, ok := voteOf(line)
		if !ok {
			continue
		}
		if over {
			complain(oneEnd, "line %d counts a word of %s after the end", line.Seq, id.actor)
		}
		if decided.Verb == audit.VerbApproveWithEdits { // what the others said was about something else
			box = newVoteSet()
			continue
		}
		box.put(id, decided.Verb)
		at := decided.Timing.Decided.Time
		switch {
		case decided.Verb == audit.VerbReject && !decided.Settles:
			complain(wordCounts, "line %d: the rejection of %s does not end it", line.Seq, id.actor)
		case decided.Verb == audit.VerbReject && (d.isIneligible(id.actor) || !payerAt(id.actor, at)):
			complain(twoPayers, "line %d: %s has no say in it", line.Seq, id.actor)
		case decided.Verb == audit.VerbApprove && decided.Settles && box.count(d, at, false) < quorum:
			complain(twoPayers, "line %d approves it at %s with the votes of %v; %s asks for it", line.Seq, at, box.yes, d.doc.Subject.Requester)
		case decided.Verb == audit.VerbApprove && !decided.Settles && box.count(d, at, true) >= quorum:
			complain(wordCounts, "line %d does not approve it, with the votes of %v", line.Seq, box.yes)
		}
		over = decided.Settles
	}
	for _, vote := range d.doc.Votes {
		from := map[desk.Verb]map[string]decisionID{desk.VerbApprove: box.yes, desk.VerbReject: box.no}[vote.Verb]
		if _, counted := from[vote.By]; !counted {
			complain(wordCounts, "the request has a vote of %s, %s, and the log does not", vote.By, vote.Verb)
		}
		delete(from, vote.By)
	}
	if len(box.yes)+len(box.no) > 0 {
		complain(wordCounts, "the votes %v and %v are in the log, and not in the request", box.yes, box.no)
	}
}

// binding: all those by whose word something is approved meant exactly that.
func (d *requestRecord) checkDigests(complain reportFunc) {
	final, all := d.doc.Decision, d.submissions()
	if final == nil || final.Outcome != desk.OutcomeApproved {
		return
	}
	if final.Digest != d.interrupt.ApprovedDigest {
		complain(asMeant, "the request approves %s, the store %s", final.Digest, d.interrupt.ApprovedDigest)
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
			complain(asMeant, "%s is among those who approve %s, and said %+v", person, final.Digest, s)
		}
	}
}
