package desk

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/desk/quorum"
)

// Progress says how far the votes are from being enough, as it was when somebody voted last.
type Progress struct {
	Have int `json:"have"`
	Need int `json:"need"`
	// Missing are the groups that are not satisfied.
	Missing []Missing `json:"missing,omitempty"`
	// Lapsed are people whose votes do not count any more.
	Lapsed []Lapse `json:"lapsed,omitempty"`
	// Denials of DenyAt have said no.
	Denials int `json:"denials,omitempty"`
	DenyAt  int `json:"deny_at,omitempty"`
}

// Missing is a group that needs more people.
type Missing struct {
	Group string `json:"group"`
	Count int    `json:"count"`
}

// Lapse is a vote that does not count any more.
type Lapse struct {
	By  string `json:"by"`
	Why string `json:"why"`
}

// String says it in words: "1 of 2, needs 1 × finops".
func (p Progress) String() string {
	parts := []string{fmt.Sprintf("%d of %d", p.Have, p.Need)}
	for _, m := range p.Missing {
		parts = append(parts, fmt.Sprintf("needs %d × %s", m.Count, m.Group))
	}
	if p.Denials > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d against", p.Denials, p.DenyAt))
	}
	for _, l := range p.Lapsed {
		parts = append(parts, fmt.Sprintf("the vote of %s does not count any more: %s", l.By, l.Why))
	}
	return strings.Join(parts, ", ")
}

// tally is the votes of one word, counted.
type tally struct {
	quorum.Result
	by     []string // who counts
	lapsed []Lapse
}

// member reports whether somebody is in a group of the requirement now.
func (d *draft) member(g Group, person string) (bool, error) {
	for _, who := range g.From {
		switch {
		case who == Anyone, who == "user:"+person, who == TheRequester && person == d.r.Asked.Requester:
			return true, nil
		case who == TheRequester, strings.HasPrefix(who, "user:"), d.env.Directory == nil:
			continue
		}
		in, err := d.env.Directory.Member(who, person)
		if err != nil {
			return false, d.refuse(ErrDirectory, err.Error())
		}
		if in {
			return true, nil
		}
	}
	return false, nil
}

// groupsOf names the groups of the requirement that somebody is in now.
func (d *draft) groupsOf(person string) (names []string, err error) {
	for _, g := range d.r.Need.Groups {
		in, err := d.member(g, person)
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
func (d *draft) mayDecide(person string, verb Verb) error {
	for _, duty := range d.r.Need.Exclude {
		if d.has(duty, person, verb) {
			return d.refuse(ErrExcluded, person+" is its "+strings.ReplaceAll(string(duty), "_", " "))
		}
	}
	for _, g := range d.r.Need.Groups {
		in, err := d.member(g, person)
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
func (d *draft) mayStill(person string) bool { return d.mayDecide(person, VerbApprove) == nil }

// has reports whether somebody has a duty that stands against the verb.
func (d *draft) has(duty Duty, person string, verb Verb) bool {
	switch duty {
	case Requester:
		return person == d.r.Asked.Requester
	case Author:
		return slices.Contains(d.r.Asked.Authors, person)
	case PriorApprover:
		return slices.Contains(d.r.Asked.PriorApprovers, person) || slices.Contains(d.env.PriorApprovers, person)
	case LastEditor: // who edits again takes the place of the last editor, and is then judged as such
		return verb == VerbApprove && person != "" && person == d.r.LastEditor()
	}
	return true // a duty that this program does not know excludes everybody
}

// count matches those who said a word with the groups, as they are now.
func (d *draft) count(verb Verb, word string) (tally, error) {
	var t tally
	var people []string
	var in [][]bool
	for _, v := range d.r.Votes {
		if v.Verb != verb || v.Word != word {
			continue
		}
		why, err := d.lapse(v)
		if err != nil {
			return t, err
		}
		if why != "" { //mutate:left-group-vote-ignored
			t.lapsed = append(t.lapsed, Lapse{By: v.By, Why: why})
			continue
		}
		row := make([]bool, len(d.r.Need.Groups))
		for i, g := range d.r.Need.Groups {
			if row[i], err = d.member(g, v.By); err != nil { //mutate:left-group-member-checked
				return t, err
			}
		}
		people, in = append(people, v.By), append(in, row)
	}
	t.Result = quorum.Fill(d.needs(), in)
	for i, person := range people {
		if t.Of[i] >= 0 || verb == VerbReject {
			t.by = append(t.by, person)
		}
	}
	return t, nil
}

// lapse says why a vote does not count any more; "" if it does. Membership is a matter of now, not of when somebody voted. How well
// they were authenticated is not looked at again: what could ask for more, an edit, voids the votes.
func (d *draft) lapse(v Vote) (string, error) {
	err := d.mayDecide(v.By, v.Verb)
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
func (d *draft) progress() error {
	p := Progress{Need: total(d.r.Need.Groups), DenyAt: max(1, d.r.Need.Denials)}
	best := tally{Result: quorum.Fill(d.needs(), nil)}
	for _, v := range d.r.Votes {
		t, err := d.count(v.Verb, v.Word)
		if err != nil {
			return err
		}
		p.Lapsed = union(p.Lapsed, t.lapsed)
		if v.Verb == VerbReject {
			p.Denials = max(p.Denials, len(t.by))
		} else if t.Have() > best.Have() {
			best = t
		}
	}
	p.Have = best.Have()
	for i, n := range best.Missing {
		if n > 0 {
			p.Missing = append(p.Missing, Missing{Group: d.r.Need.Groups[i].String(), Count: n})
		}
	}
	if !slices.Contains(d.r.Need.Verbs, VerbReject) {
		p.DenyAt = 0
	}
	d.r.Progress = p
	return nil
}

func (d *draft) needs() []int {
	counts := make([]int, len(d.r.Need.Groups))
	for i, g := range d.r.Need.Groups {
		counts[i] = g.need()
	}
	return counts
}
