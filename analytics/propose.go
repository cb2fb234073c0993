package analytics

import (
	"cmp"
	"fmt"
	"slices"
)

// proposals are actions about which people were asked often, and always said yes without changing anything. Whoever looks like a
// rubber stamp has no say in it: else they would write the policy.
func (c *Collector) proposals(people []Voices) []Proposal {
	suspect := make(map[string]bool)
	for _, p := range people {
		suspect[p.Name] = p.Suspect
	}
	type subject struct{ action, rule string }
	found := make(map[subject]*Proposal)
	deciders := make(map[subject]map[string]bool)
	spoiled := make(map[subject]bool)
	for _, r := range c.requests {
		about := subject{r.Action, r.Rule}
		if r.Action == "" || r.Outcome == "" || r.Outcome == "withdraw" {
			continue
		}
		if r.Outcome != "approve" || r.Edited > 0 || r.Asked > 0 {
			spoiled[about] = true
			continue
		}
		if suspect[r.By] {
			continue
		}
		if found[about] == nil {
			found[about], deciders[about] = &Proposal{Action: r.Action, Rule: r.Rule}, make(map[string]bool)
		}
		found[about].Approved++
		found[about].Waited += seconds(r.Decided-r.Created) / 3600
		deciders[about][r.By] = true
	}
	var all []Proposal
	for about, p := range found {
		p.Deciders = len(deciders[about])
		if spoiled[about] || p.Approved < proposeAfter || p.Deciders < proposeDeciders {
			continue
		}
		p.Text = fmt.Sprintf("%s was approved %d times by %d people, never edited, refused or asked about; runs waited %.1f hours for it. A rule could allow it; try it on history first (fermata policy simulate).",
			p.Action, p.Approved, p.Deciders, p.Waited)
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b Proposal) int {
		return cmp.Or(cmp.Compare(b.Waited, a.Waited), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Rule, b.Rule))
	})
	return all
}
