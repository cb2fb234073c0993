package replay

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/fermata-go/fermata/policy"
)

// RuleChange is a rule that is new, gone or changed between two sets; "default" is what holds where no rule speaks, "tools: NAME" what is said of a tool.
type RuleChange struct {
	Rule string `json:"rule"`
	What string `json:"what"`
	// Weaker says in which ways more gets through. A condition that changed counts, as nobody can tell.
	Weakenings []string `json:"weaker,omitempty"`
}

// Changes compares two sets rule by rule, by the ids.
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

// compareRatings compares what is said of tools. That any of it is other counts as weaker, as nobody can tell: rules may hold for less by it, or allow more.
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
			what = "is gone"
		}
		changes = append(changes, RuleChange{
			Rule: "tools: " + tool, What: what, Weakenings: []string{"rules that look at its effects, cost or risk may hold for less, or allow more"},
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
	c := RuleChange{Rule: was.ID, What: fmt.Sprintf("is gone: %s", was.Then)}
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
		return c, true // it counts neither before nor after
	}
	if now.DryRun {
		if was.Then != policy.Allow {
			c.Weakenings = append(c.Weakenings, fmt.Sprintf("%s is only rehearsed now", was.Then))
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
		c.Weakenings = append(c.Weakenings, "the condition is another; it may hold for less, or allow more")
	}
	c.Weakenings = append(c.Weakenings, limitWeakenings(was, now)...)
	return c, true
}

// limitWeakenings compares limits. For a rule that allows, more room is weaker too.
func limitWeakenings(was, now policy.Rule) []string {
	old, limit := was.Limit, now.Limit
	switch {
	case old == nil && limit == nil:
		return nil
	case old == nil && now.Then != policy.Allow:
		return []string{"it holds only beyond a limit now"}
	case limit == nil && was.Then == policy.Allow:
		return []string{"the limit of the allow is gone"}
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
