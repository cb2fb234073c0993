package replay

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/fermata-go/fermata/internal/policy"
)

// RuleChange is a rule that was added, removed or changed between two sets. "default" is the
// default, "tools: NAME" is the rating of a tool.
type RuleChange struct {
	Rule string `json:"rule"`
	What string `json:"what"`
	// Weakenings lists the ways in which the new set is weaker. A changed condition counts, because
	// its effect is unknown.
	Weakenings []string `json:"weakenings,omitempty"`
}

// Changes compares two sets rule by rule, by id.
func Changes(before, after *policy.Set) []RuleChange {
	var changes []RuleChange
	old := make(map[string]policy.Rule)
	for _, r := range before.Rules() {
		old[r.ID] = r
	}
	for _, now := range after.Rules() {
		was, known := old[now.ID]
		delete(old, now.ID)
		if !known {
			changes = append(changes, addedRule(now))
			continue
		}
		if c, changed := compareRules(was, now); changed {
			changes = append(changes, c)
		}
	}
	for _, was := range before.Rules() {
		if _, gone := old[was.ID]; gone {
			changes = append(changes, removedRule(was))
		}
	}
	return slices.Concat(changes, compareRatings(before.Ratings(), after.Ratings()), compareDefaults(before, after))
}

// compareRatings compares tool ratings. Any change counts as weaker, because its effect is unknown:
// rules may match less often, or allow more.
func compareRatings(before, after map[string]policy.Rating) (changes []RuleChange) {
	both := maps.Clone(before)
	maps.Copy(both, after)
	for _, tool := range slices.Sorted(maps.Keys(both)) {
		was, old := before[tool]
		now, known := after[tool]
		what := "has changed"
		switch {
		case old && known && reflect.DeepEqual(was, now):
			continue
		case !old:
			what = "is new"
		case !known:
			what = "was removed"
		}
		changes = append(changes, RuleChange{
			Rule: "tools: " + tool, What: what, Weakenings: []string{"rules that use its effects, cost or risk may match less often or allow more"},
		})
	}
	return changes
}

func addedRule(now policy.Rule) RuleChange {
	c := RuleChange{Rule: now.ID, What: fmt.Sprintf("is new: %s", now.Then)}
	if now.Then == policy.Allow && !now.DryRun {
		c.Weakenings = []string{"allow added"}
	}
	return c
}

func removedRule(was policy.Rule) RuleChange {
	c := RuleChange{Rule: was.ID, What: fmt.Sprintf("was removed: %s", was.Then)}
	if was.Then != policy.Allow && !was.DryRun {
		c.Weakenings = []string{fmt.Sprintf("%s removed", was.Then)}
	}
	return c
}

func compareRules(was, now policy.Rule) (RuleChange, bool) {
	c := RuleChange{Rule: now.ID, What: "has changed"}
	was.Line, now.Line = 0, 0
	if reflect.DeepEqual(was, now) {
		return c, false
	}
	if was.DryRun && now.DryRun {
		return c, true // it does not count before or after
	}
	if now.DryRun {
		if was.Then != policy.Allow {
			c.Weakenings = append(c.Weakenings, fmt.Sprintf("%s is only a dry run now", was.Then))
		}
		return c, true
	}
	if was.DryRun {
		if now.Then == policy.Allow {
			c.Weakenings = append(c.Weakenings, "allow added")
		}
		return c, true
	}
	c.Weakenings = append(c.Weakenings, policy.Weakenings(policy.Decision{Verdict: was.Then, Requirement: was.Ask}, policy.Decision{Verdict: now.Then, Requirement: now.Ask})...)
	if was.When != now.When {
		c.Weakenings = append(c.Weakenings, "the condition has changed; it may match less often or allow more")
	}
	c.Weakenings = append(c.Weakenings, limitWeakenings(was, now)...)
	return c, true
}

// limitWeakenings compares limits. For a rule that allows, a higher limit is weaker too.
func limitWeakenings(was, now policy.Rule) []string {
	old, limit := was.Limit, now.Limit
	switch {
	case old == nil && limit == nil:
		return nil
	case old == nil && now.Then != policy.Allow:
		return []string{"it applies only above a limit now"}
	case limit == nil && was.Then == policy.Allow:
		return []string{"the allow has no limit any more"}
	case old == nil || limit == nil:
		return nil
	}
	var weaker []string
	if limit.Max > old.Max {
		weaker = append(weaker, fmt.Sprintf("limit up from %d to %d", old.Max, limit.Max))
	}
	if limit.Window < old.Window {
		weaker = append(weaker, fmt.Sprintf("window down from %s to %s", old.Window, limit.Window))
	}
	if limit.Amount != old.Amount || !reflect.DeepEqual(limit.By, old.By) {
		weaker = append(weaker, "the limit counts something else")
	}
	return weaker
}

func compareDefaults(before, after *policy.Set) []RuleChange {
	old, oldNeed := before.Default()
	now, need := after.Default()
	if old == now && reflect.DeepEqual(oldNeed, need) {
		return nil
	}
	return []RuleChange{{
		Rule: policy.DefaultRule, What: fmt.Sprintf("has changed: %s, then %s", old, now),
		Weakenings: policy.Weakenings(policy.Decision{Verdict: old, Requirement: oldNeed}, policy.Decision{Verdict: now, Requirement: need}),
	}}
}
