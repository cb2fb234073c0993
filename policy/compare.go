package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Weakenings lists in which ways the second decision lets more through than the first; nothing if it is at least as strict.
func Weakenings(before, after Decision) []string {
	if after.Verdict.strictness() < before.Verdict.strictness() {
		return []string{fmt.Sprintf("%s becomes %s", before.Verdict, after.Verdict)}
	}
	if before.Verdict != Ask || after.Verdict != Ask {
		return nil
	}
	return RequirementWeakenings(before.Requirement, after.Requirement)
}

// RequirementWeakenings lists in which ways the second requirement is easier to satisfy, or leaves more open, than the first.
func RequirementWeakenings(before, after *Requirement) []string {
	if before == nil {
		return nil
	}
	if after == nil {
		return []string{"nothing is demanded any more"}
	}
	weaker := groupWeakenings(before.Groups, after.Groups)
	add := func(is bool, format string, args ...any) {
		if is {
			weaker = append(weaker, fmt.Sprintf(format, args...))
		}
	}
	add(after.Deadline > before.Deadline, "deadline up from %s to %s", before.Deadline, after.Deadline)
	add(before.OnTimeout == Expire && after.OnTimeout != Expire, "after the deadline it goes to others instead of expiring")
	add(after.MinAuth.requiredLevel() < before.MinAuth.requiredLevel(), "min_auth down from %s to %s", orNone(string(before.MinAuth)), orNone(string(after.MinAuth)))
	add(after.RememberMax > before.RememberMax, "remember_max up from %s to %s", before.RememberMax, after.RememberMax)
	add(after.DenyCount > before.DenyCount, "deny_count up from %d to %d", before.DenyCount, after.DenyCount)
	for _, who := range subtract(before.Exclude, after.Exclude) {
		add(true, "the yes of %s counts now", who)
	}
	for _, what := range subtract(before.Show, after.Show) {
		add(true, "%s need not be shown any more", what)
	}
	for _, pointer := range after.Editable {
		add(!covers(before.Editable, pointer), "%q may be edited now", pointer)
	}
	for _, verb := range subtract(after.allowedVerbs(), before.allowedVerbs()) {
		add(true, "%s is possible now", verb)
	}
	return weaker
}

// groupWeakenings finds those of before that no group of after is as strict as: as many people, out of no others, now or later.
func groupWeakenings(before, after []Group) []string {
	var weaker []string
	for _, old := range before {
		most, later := 0, []string(nil)
		for _, now := range after {
			if len(subtract(now.From, old.From)) > 0 {
				continue
			}
			count, more := min(now.Count, old.Count), subtract(now.Widen, slices.Concat(old.From, old.Widen))
			if count > most || count == most && len(more) < len(later) {
				most, later = count, more
			}
		}
		if old.isAnyone() {
			most, later = totalCount(after), nil
		}
		switch {
		case most == 0:
			weaker = append(weaker, fmt.Sprintf("%s not needed any more", old))
		case most < old.Count:
			weaker = append(weaker, fmt.Sprintf("count of %s down from %d to %d", strings.Join(old.From, " or "), old.Count, most))
		case len(later) > 0:
			weaker = append(weaker, fmt.Sprintf("%s may be let in for %s now", strings.Join(later, " or "), strings.Join(old.From, " or ")))
		}
	}
	if had, has := totalCount(before), totalCount(after); has < had && len(weaker) == 0 { // one group of after is as strict as two of before, and one person is not two
		weaker = append(weaker, fmt.Sprintf("%d different people down to %d", had, has))
	}
	return weaker
}

// subtract returns the words of a that are not in b.
func subtract(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(word string) bool { return slices.Contains(b, word) })
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
