package desk

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/desk/quorum"
)

// VoteProgress says how far the votes are from being enough, as it was when somebody voted last.
type VoteProgress struct {
	Have int `json:"have"`
	Need int `json:"need"`
	// MissingGroup are the groups that are not satisfied.
	Missing []MissingGroup `json:"missing,omitempty"`
	// OutcomeExpired are people whose votes do not count any more.
	Uncounted []UncountedVote `json:"lapsed,omitempty"`
	// Denials of DenyAt have said no.
	Rejections       int `json:"denials,omitempty"`
	RejectionsNeeded int `json:"deny_at,omitempty"`
}

// MissingGroup is a group that needs more people.
type MissingGroup struct {
	Group string `json:"group"`
	Count int    `json:"count"`
}

// UncountedVote is a vote that does not count any more.
type UncountedVote struct {
	By     string `json:"by"`
	Reason string `json:"why"`
}

// String says it in words: "1 of 2, needs 1 × finops".
func (p VoteProgress) String() string {
	parts := []string{fmt.Sprintf("%d of %d", p.Have, p.Need)}
	for _, m := range p.Missing {
		parts = append(parts, fmt.Sprintf("needs %d × %s", m.Count, m.Group))
	}
	if p.Rejections > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d against", p.Rejections, p.RejectionsNeeded))
	}
	for _, l := range p.Uncounted {
		parts = append(parts, fmt.Sprintf("the vote of %s does not count any more: %s", l.By, l.Reason))
	}
	return strings.Join(parts, ", ")
}

// voteCount is the votes of one word, counted.
type voteCount struct {
	quorum.Result
	by        []string // performer counts
	uncounted []UncountedVote
}

// member reports whether somebody is in a group of the requirement now.
func (d *update) isMember(g Group, person string) (bool, error) {
	for _, who := range g.From {
		switch {
		case who == PrincipalAnyone, who == "user:"+person, who == PrincipalRequester && person == d.r.Subject.Requester:
			return true, nil
		case who == PrincipalRequester, strings.HasPrefix(who, "user:"), d.env.Directory == nil:
			continue
		}
		in, err := d.env.Directory.Member(who, person)
		if err != nil {
			return false, d.refuse(ErrDirectoryUnavailable, err.Error())
		}
		if in {
			return true, nil
		}
	}
	return false, nil
}

// groupsOf names the groups of the requirement that somebody is in now.
func (d *update) groupsOf(person string) (names []string, err error) {
	for _, g := range d.r.Requirement.Groups {
		in, err := d.isMember(g, person)
		if err != nil {
			return nil, err
		}
		if in {
			names = append(names, g.String())
		}
	}
	return names, nil
}

// mayDecide returns why somebody's word would not count now: they have another part in the request, or are in none of its groups.
func (d *update) checkEligible(person string, verb Verb) error {
	for _, duty := range d.r.Requirement.Exclude {
		if d.hasDuty(duty, person, verb) {
			return d.refuse(ErrExcluded, person+" is its "+strings.ReplaceAll(string(duty), "_", " "))
		}
	}
	for _, g := range d.r.Requirement.Groups {
		in, err := d.isMember(g, person)
		if err != nil {
			return err
		}
		if in {
			return nil
		}
	}
	if person != d.from.Actor.ID { // "they" are not the ones who act
		return d.refuse(ErrNotMember, person)
	}
	return d.refuse(ErrNotMember, "")
}

// mayStill reports whether somebody could decide now. If nobody knows, they could not: it is better to tell people once too often.
func (d *update) isEligible(person string) bool { return d.checkEligible(person, VerbApprove) == nil }

// has reports whether somebody has a duty that stands against the verb.
func (d *update) hasDuty(duty Duty, person string, verb Verb) bool {
	switch duty {
	case DutyRequester:
		return person == d.r.Subject.Requester
	case DutyAuthor:
		return slices.Contains(d.r.Subject.Authors, person)
	case DutyPriorApprover:
		return slices.Contains(d.r.Subject.PriorApprovers, person) || slices.Contains(d.env.PriorApprovers, person)
	case DutyLastEditor: // performer edits again takes the place of the last editor, and is then judged as such
		return verb == VerbApprove && person != "" && person == d.r.LastEditor()
	}
	return true // a duty that this program does not know excludes everybody
}

// countTrue matches those who said a word with the groups, as they are now.
func (d *update) countVotes(verb Verb, word string) (voteCount, error) {
	var t voteCount
	var people []string
	var in [][]bool
	for _, v := range d.r.Votes {
		if v.Verb != verb || v.Choice != word {
			continue
		}
		why, err := d.uncountedReason(v)
		if err != nil {
			return t, err
		}
		if why != "" { //mutate:left-group-vote-ignored
			t.uncounted = append(t.uncounted, UncountedVote{By: v.By, Reason: why})
			continue
		}
		row := make([]bool, len(d.r.Requirement.Groups))
		for i, g := range d.r.Requirement.Groups {
			if row[i], err = d.isMember(g, v.By); err != nil { //mutate:left-group-member-checked
				return t, err
			}
		}
		people, in = append(people, v.By), append(in, row)
	}
	t.Result = quorum.Assign(d.groupCounts(), in)
	for i, person := range people {
		if t.GroupOf[i] >= 0 || verb == VerbReject {
			t.by = append(t.by, person)
		}
	}
	return t, nil
}

// lapse says why a vote does not count any more; "" if it does. Membership is a matter of now, not of when somebody voted. How well
// they were authenticated is not looked at again: what could ask for more, an edit, voids the votes.
func (d *update) uncountedReason(v Vote) (string, error) {
	err := d.checkEligible(v.By, v.Verb)
	switch Code(err) {
	case "":
		return "", err
	case "excluded":
		return "has another part in it", nil
	case "not_member":
		return "has left the group", nil //mutate:left-group-reason
	}
	return "", err
}

// progress counts anew what is shown to people: for the word that most stand behind.
func (d *update) updateProgress() error {
	p := VoteProgress{Need: totalCount(d.r.Requirement.Groups), RejectionsNeeded: max(1, d.r.Requirement.Denials)}
	best := voteCount{Result: quorum.Assign(d.groupCounts(), nil)}
	for _, v := range d.r.Votes {
		t, err := d.countVotes(v.Verb, v.Choice)
		if err != nil {
			return err
		}
		p.Uncounted = union(p.Uncounted, t.uncounted)
		if v.Verb == VerbReject {
			p.Rejections = max(p.Rejections, len(t.by))
		} else if t.Have() > best.Have() {
			best = t
		}
	}
	p.Have = best.Have()
	for i, n := range best.Missing {
		if n > 0 {
			p.Missing = append(p.Missing, MissingGroup{Group: d.r.Requirement.Groups[i].String(), Count: n})
		}
	}
	if !slices.Contains(d.r.Requirement.Verbs, VerbReject) {
		p.RejectionsNeeded = 0
	}
	d.r.VoteProgress = p
	return nil
}

func (d *update) groupCounts() []int {
	counts := make([]int, len(d.r.Requirement.Groups))
	for i, g := range d.r.Requirement.Groups {
		counts[i] = g.minCount()
	}
	return counts
}
