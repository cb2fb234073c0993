package desk

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/desk/quorum"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/sets"
)

// VoteProgress is the progress of the votes towards a decision, as of the last vote.
type VoteProgress struct {
	Have int `json:"have"`
	Need int `json:"need"`
	// Missing are the groups that need more votes.
	Missing []MissingGroup `json:"missing,omitempty"`
	// Uncounted are votes that no longer count.
	Uncounted []UncountedVote `json:"lapsed,omitempty"`
	// Rejections of RejectionsNeeded people have rejected.
	Rejections       int `json:"denials,omitempty"`
	RejectionsNeeded int `json:"deny_at,omitempty"`
	// Stage is the open stage of Stages, counted from 1. Both are 0 if the groups have no order.
	// Missing then lists the groups of the open stage only.
	Stage  int `json:"stage,omitempty"`
	Stages int `json:"stages,omitempty"`
}

// MissingGroup is a group that needs more people.
type MissingGroup struct {
	Group string `json:"group"`
	Count int    `json:"count"`
}

// UncountedVote is a vote that no longer counts.
type UncountedVote struct {
	By     string `json:"by"`
	Reason string `json:"why"`
}

// String returns a summary for people: "1 of 2, needs 1 × finops".
func (p VoteProgress) String() string {
	parts := []string{fmt.Sprintf("%d of %d", p.Have, p.Need)}
	if p.Stages > 0 {
		parts = append(parts, fmt.Sprintf("stage %d of %d", p.Stage, p.Stages))
	}
	for _, m := range p.Missing {
		parts = append(parts, fmt.Sprintf("needs %d × %s", m.Count, m.Group))
	}
	if p.Rejections > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d against", p.Rejections, p.RejectionsNeeded))
	}
	for _, l := range p.Uncounted {
		parts = append(parts, fmt.Sprintf("the vote of %s no longer counts: %s", l.By, l.Reason))
	}
	return strings.Join(parts, ", ")
}

// voteCount is the count of the votes for one choice.
type voteCount struct {
	quorum.Result
	by        []string // the voters that count
	uncounted []UncountedVote
	stage     int // the open stage
}

// isMember reports whether a person is currently in a group of the requirement.
func (d *update) isMember(g requirement.Group, person string) (bool, error) {
	for _, who := range g.From {
		switch {
		case who == requirement.Anyone, who == "user:"+person, who == requirement.Requester && person == d.r.Subject.Requester:
			return true, nil
		case who == requirement.Requester, strings.HasPrefix(who, "user:"), d.env.Directory == nil:
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

// groupsOf returns the names of the groups that a person is currently in.
func (d *update) groupsOf(person string) (names []string, err error) {
	for _, g := range d.r.Requirement.Groups {
		in, err := d.isMember(g, person)
		if err != nil {
			return nil, err
		}
		if in {
			names = append(names, g.Names())
		}
	}
	return names, nil
}

// checkEligible returns why a person may not decide now: excluded by a duty, or not in any group.
func (d *update) checkEligible(person string, verb requirement.Verb) error {
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
			return d.checkAudience(person)
		}
	}
	if person != d.from.Actor.ID { // name the person if it is not the actor
		return d.refuse(ErrNotMember, person)
	}
	return d.refuse(ErrNotMember, "")
}

// checkAudience returns an error if a person may decide only because anyone may, and does not
// belong to the people who see the request.
func (d *update) checkAudience(person string) error {
	if len(d.r.Requirement.VisibleTo) == 0 {
		return nil
	}
	sees, err := d.r.VisibleTo(Viewer{ID: person, Kind: ActorHuman}, d.env.Directory)
	if err == nil && !sees {
		err = d.refuse(ErrNotMember, "")
	}
	return err
}

// isEligible reports whether a person may decide now. If the directory is unavailable, it returns
// false: an extra notice is better than a missing one.
func (d *update) isEligible(person string) bool {
	return d.checkEligible(person, requirement.VerbApprove) == nil
}

// hasDuty reports whether a person has a duty that excludes the verb.
func (d *update) hasDuty(duty requirement.Duty, person string, verb requirement.Verb) bool {
	switch duty {
	case requirement.DutyRequester:
		return person == d.r.Subject.Requester || person != "" && person == d.r.Subject.StatedRequester
	case requirement.DutyAuthor:
		return slices.Contains(d.r.Subject.Authors, person)
	case requirement.DutyPriorApprover:
		return slices.Contains(d.r.Subject.PriorApprovers, person) || slices.Contains(d.env.PriorApprovers, person)
	case requirement.DutyLastEditor: // a second editor replaces the last editor and is then checked as such
		return verb == requirement.VerbApprove && person != "" && person == d.r.LastEditor()
	}
	return true // an unknown duty excludes everyone
}

// countVotes assigns the voters for a choice to the groups, with current memberships.
func (d *update) countVotes(verb requirement.Verb, choice string) (voteCount, error) {
	var t voteCount
	var people []string
	var in [][]bool
	for _, v := range d.r.Votes {
		if v.Verb != verb || v.Choice != choice {
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
			row[i] = row[i] && g.Stage <= v.Stage
		}
		people, in = append(people, v.By), append(in, row)
	}
	t.Result, t.stage = d.assign(in)
	for i, person := range people {
		if t.GroupOf[i] >= 0 || verb == requirement.VerbReject {
			t.by = append(t.by, person)
		}
	}
	return t, nil
}

// assign assigns voters to groups, stage by stage: a vote counts for a group only if all groups of
// earlier stages are satisfied. It returns the open stage, or the last one if all are satisfied.
func (d *update) assign(in [][]bool) (result quorum.Result, open int) {
	stages := d.r.Requirement.Stages()
	for _, open = range stages {
		reached := make([][]bool, len(in))
		for p, row := range in {
			reached[p] = slices.Clone(row)
			for i, g := range d.r.Requirement.Groups {
				reached[p][i] = row[i] && g.Stage <= open
			}
		}
		result = quorum.Assign(d.groupCounts(), reached)
		for i, g := range d.r.Requirement.Groups {
			if g.Stage <= open && result.Missing[i] > 0 {
				return result, open
			}
		}
	}
	return result, open
}

// uncountedReason returns why a vote no longer counts, or "" if it counts. Membership is checked
// now, not as of the vote. Authentication is not checked again: only an edit can raise it, and an
// edit voids the votes.
func (d *update) uncountedReason(v Vote) (string, error) {
	err := d.checkEligible(v.By, v.Verb)
	if err == nil {
		err = d.checkConditions(v.Conditions)
	}
	switch Code(err) {
	case "":
		return "", err
	case "invalid_conditions":
		return "has conditions that no longer hold", nil
	case "excluded":
		return "is excluded by separation of duties", nil
	case "not_member":
		return "has left the group", nil //mutate:left-group-reason
	}
	return "", err
}

// updateProgress recounts the votes for display, for the choice with the most votes.
func (d *update) updateProgress() error {
	p := VoteProgress{Need: requirement.People(d.r.Requirement.Groups), RejectionsNeeded: max(1, d.r.Requirement.DenyCount)}
	var best voteCount
	best.Result, best.stage = d.assign(nil)
	for _, v := range d.r.Votes {
		t, err := d.countVotes(v.Verb, v.Choice)
		if err != nil {
			return err
		}
		p.Uncounted = sets.Union(p.Uncounted, t.uncounted)
		if v.Verb == requirement.VerbReject {
			p.Rejections = max(p.Rejections, len(t.by))
		} else if t.Have() > best.Have() {
			best = t
		}
	}
	p.Have = best.Have()
	if stages := d.r.Requirement.Stages(); len(stages) > 1 {
		p.Stage, p.Stages = slices.Index(stages, best.stage)+1, len(stages)
	}
	for i, n := range best.Missing {
		if n > 0 && d.r.Requirement.Groups[i].Stage <= best.stage {
			p.Missing = append(p.Missing, MissingGroup{Group: d.r.Requirement.Groups[i].Names(), Count: n})
		}
	}
	if !slices.Contains(d.r.Requirement.Verbs, requirement.VerbReject) {
		p.RejectionsNeeded = 0
	}
	d.r.VoteProgress = p
	return nil
}

func (d *update) groupCounts() []int {
	counts := make([]int, len(d.r.Requirement.Groups))
	for i, g := range d.r.Requirement.Groups {
		counts[i] = g.People()
	}
	return counts
}
