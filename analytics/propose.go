package analytics

import (
	"cmp"
	"fmt"
	"slices"
)

// candidate is what a rule could be about.
type candidate struct{ action, rule string }

// candidateHistory is what came of a subject: approvals by whoever gave them, or nil once something else came of it.
type candidateHistory struct {
	by map[string]*approvals
}

type approvals struct {
	n      int
	waited int64 // milliseconds
}

// consider notes a request for the proposals. What there is no room for any more is never proposed, or with fewer approvals than it had.
func (c *Collector) addEvidence(r RequestIndex) {
	if r.Action == "" || r.Outcome == "" || r.Outcome == "withdraw" {
		return
	}
	about := candidate{r.Action, r.Rule}
	so := c.candidates[about]
	if so == nil {
		if len(c.candidates) >= c.limits.names {
			return
		}
		so = &candidateHistory{by: make(map[string]*approvals)}
		c.candidates[about] = so
	}
	if r.Outcome != "approve" || r.Edited > 0 || r.Clarifications > 0 {
		c.deciders -= len(so.by)
		so.by = nil
	}
	if so.by == nil {
		return
	}
	by := so.by[r.By]
	if by == nil {
		if c.deciders >= c.limits.deciders {
			return
		}
		c.deciders++
		by = new(approvals)
		so.by[r.By] = by
	}
	by.n++
	by.waited += r.Decided - r.Created
}

// proposals are actions about which people were asked often, and always said yes without changing anything. Whoever looks like a
// rubber stamp has no say in it: else they would write the policy. Neither has whoever has no row of their own, and might be one.
func (c *Collector) proposals() (all []Proposal) {
	_, crowded := c.people.byName[otherRow]
	for about, so := range c.candidates {
		p, waited := Proposal{Action: about.action, Rule: about.rule}, int64(0)
		for name, by := range so.by {
			if voice := c.people.byName[name]; voice == nil && crowded || voice != nil && voice.isSuspect() {
				continue
			}
			p.Deciders++
			p.Approved += by.n
			waited += by.waited
		}
		if p.Approved < proposeAfter || p.Deciders < proposeDeciders {
			continue
		}
		p.WaitedHours = hours(waited)
		p.Text = fmt.Sprintf("%s was approved %d times by %d people, never edited, refused or asked about; runs waited %.1f hours for it. A rule could allow it; try it on history first (fermata policy simulate).",
			p.Action, p.Approved, p.Deciders, p.WaitedHours)
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Proposal) int {
		return cmp.Or(cmp.Compare(b.WaitedHours, a.WaitedHours), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Rule, b.Rule))
	})
	return all
}
