package analytics

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// candidate is the subject of a possible rule.
type candidate struct{ action, rules string }

// candidateHistory has the approvals of a candidate by person. It is nil after any other outcome.
type candidateHistory struct {
	by map[string]*approvals
}

type approvals struct {
	n      int
	waited int64 // milliseconds
}

// addEvidence adds a request to the proposal candidates. Beyond the limits, candidates are ignored
// or have fewer approvals.
func (c *Collector) addEvidence(r RequestIndex) {
	if r.Action == "" || r.Outcome == "" || r.Outcome == "withdraw" {
		return
	}
	key := candidate{r.Action, strings.Join(r.Rules, ", ")}
	history := c.candidates[key]
	if history == nil {
		if len(c.candidates) >= c.limits.names {
			return
		}
		history = &candidateHistory{by: make(map[string]*approvals)}
		c.candidates[key] = history
	}
	if r.Outcome != "approve" || r.Edited > 0 || r.Clarifications > 0 {
		c.deciders -= len(history.by)
		history.by = nil
	}
	if history.by == nil {
		return
	}
	by := history.by[r.By]
	if by == nil {
		if c.deciders >= c.limits.deciders {
			return
		}
		c.deciders++
		by = new(approvals)
		history.by[r.By] = by
	}
	by.n++
	by.waited += r.Decided - r.Created
}

// proposals returns actions that were requested often and always approved without changes.
// Approvals by people who look like rubber-stamping do not count, or they would write the policy.
// People without their own row do not count either, because they cannot be checked.
func (c *Collector) proposals() (all []Proposal) {
	_, crowded := c.people.byName[otherRow]
	for key, history := range c.candidates {
		p, waited := Proposal{Action: key.action, Rule: key.rules}, int64(0)
		for name, by := range history.by {
			if stats := c.people.byName[name]; stats == nil && crowded || stats != nil && stats.isSuspect() {
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
		p.Text = fmt.Sprintf("%s was approved %d times by %d people, and never edited, rejected or clarified; runs waited %.1f hours for it. A rule could allow it; test it on history first (fermata policy simulate).",
			p.Action, p.Approved, p.Deciders, p.WaitedHours)
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Proposal) int {
		return cmp.Or(cmp.Compare(b.WaitedHours, a.WaitedHours), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Rule, b.Rule))
	})
	return all
}
