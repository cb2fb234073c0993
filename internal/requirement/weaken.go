package requirement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/sets"
)

// Weakenings lists the ways in which the second requirement is easier to satisfy, or allows more,
// than the first. It is empty if the second is at least as strict.
func Weakenings(before, after *Requirement) []string {
	if before == nil {
		return nil
	}
	if after == nil {
		return []string{"no requirement any more"}
	}
	weaker := groupWeakenings(before.Groups, after.Groups)
	add := func(is bool, format string, args ...any) {
		if is {
			weaker = append(weaker, fmt.Sprintf(format, args...))
		}
	}
	add(after.Deadline > before.Deadline, "deadline up from %s to %s", before.Deadline, after.Deadline)
	add(after.OnTimeout.leniency() > before.OnTimeout.leniency(), "on_timeout changes from %s to %s", before.OnTimeout, after.OnTimeout)
	add(before.OnEscalate != EscalateReturns && after.OnEscalate == EscalateReturns, "an escalation returns the request to the run instead of asking the next people")
	add(len(before.EditReasons) > 0 && len(after.EditReasons) == 0, "an edit needs no reason code any more")
	add(len(before.RejectReasons) > 0 && len(after.RejectReasons) == 0, "a rejection needs no reason code any more")
	add(before.IsTyped() && !after.IsTyped(), "an approver no longer types the name of the object")
	add(after.MinAuth.requiredLevel() < before.MinAuth.requiredLevel(), "min_auth down from %s to %s", cmp.Or(before.MinAuth, "none"), cmp.Or(after.MinAuth, "none"))
	add(after.RememberMax > before.RememberMax, "remember_max up from %s to %s", before.RememberMax, after.RememberMax)
	add(after.Undo < before.Undo, "undo down from %s to %s", before.Undo, after.Undo)
	add(after.DenyCount > before.DenyCount, "deny_count up from %d to %d", before.DenyCount, after.DenyCount)
	for _, who := range sets.Subtract(before.Exclude, after.Exclude) {
		add(true, "%s is no longer excluded", who)
	}
	for _, audience := range before.VisibleTo {
		add(!impliesAudience(after.VisibleTo, audience), "visible to more than %s now", strings.Join(audience, " or "))
	}
	for _, pointer := range before.Sensitive {
		add(!Covers(after.Sensitive, pointer), "%q is no longer masked", pointer)
	}
	for _, pointer := range after.Editable {
		add(!Covers(before.Editable, pointer), "%q is editable now", pointer)
	}
	for _, verb := range sets.Subtract(after.actionVerbs(), before.actionVerbs()) {
		add(true, "%s is allowed now", verb)
	}
	return weaker
}

// groupWeakenings finds groups of before for which after has no group that is as strict: as many
// people, from the same names, now and after widening.
func groupWeakenings(before, after []Group) []string {
	weaker := stageWeakenings(before, after)
	for _, old := range before {
		most, later := 0, []string(nil)
		for _, now := range after {
			if len(sets.Subtract(now.From, old.From)) > 0 {
				continue
			}
			count, more := min(now.People(), old.People()), sets.Subtract(now.Widen, slices.Concat(old.From, old.Widen))
			if count > most || count == most && len(more) < len(later) {
				most, later = count, more
			}
		}
		if old.isAnyone() {
			most, later = People(after), nil
		}
		switch {
		case most == 0:
			weaker = append(weaker, fmt.Sprintf("%s no longer required", old))
		case most < old.People():
			weaker = append(weaker, fmt.Sprintf("count of %s down from %d to %d", strings.Join(old.From, " or "), old.People(), most))
		case len(later) > 0:
			weaker = append(weaker, fmt.Sprintf("%s can be added to %s now", strings.Join(later, " or "), strings.Join(old.From, " or ")))
		}
	}
	// one group of after is as strict as two of before, but one person does not count twice
	if had, has := People(before), People(after); has < had && len(weaker) == 0 {
		weaker = append(weaker, fmt.Sprintf("%d different people down to %d", had, has))
	}
	return weaker
}

// stageWeakenings finds groups that waited for an earlier stage and do so no longer.
func stageWeakenings(before, after []Group) (weaker []string) {
	for _, old := range before {
		for _, now := range after {
			if slices.Equal(now.From, old.From) && stagesBefore(after, now.Stage) < stagesBefore(before, old.Stage) {
				weaker = append(weaker, fmt.Sprintf("%s waits for fewer stages", strings.Join(old.From, " or ")))
				break
			}
		}
	}
	return weaker
}

// stagesBefore returns how many stages of the groups come before a stage.
func stagesBefore(groups []Group, stage int) int {
	var earlier []int
	for _, g := range groups {
		if g.Stage < stage && !slices.Contains(earlier, g.Stage) {
			earlier = append(earlier, g.Stage)
		}
	}
	return len(earlier)
}
