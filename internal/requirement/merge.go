package requirement

import (
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/sets"
)

// Merge returns a requirement that is as strict as all: all groups, the strongest authentication,
// the shortest deadline, and only what all allow.
func (r Requirement) Merge(others ...Requirement) Requirement {
	people := peopleWithAnyone(r.Groups)
	for _, other := range others {
		people = max(people, peopleWithAnyone(other.Groups))
		r = r.mergeOne(other)
	}
	if len(others) > 0 {
		r.Groups = reduceAnyone(r.Groups, people)
	}
	return r
}

func (r Requirement) mergeOne(other Requirement) Requirement {
	r.Groups = mergeGroups(r.Groups, other.Groups)
	r.Exclude = sets.Union(r.Exclude, other.Exclude)
	// A side without a deadline expires with its route, so it does not conflict with an escalation.
	if r.Deadline == 0 || other.Deadline > 0 && other.OnTimeout.leniency() < r.OnTimeout.leniency() {
		r.OnTimeout = other.OnTimeout
	}
	if other.Deadline > 0 && (r.Deadline == 0 || other.Deadline < r.Deadline) {
		r.Deadline = other.Deadline
	}
	if r.OnEscalate == EscalateReturns {
		r.OnEscalate = other.OnEscalate
	}
	r.Routes = sets.Union(r.Routes, other.Routes)
	if other.MinAuth.requiredLevel() > r.MinAuth.requiredLevel() {
		r.MinAuth = other.MinAuth
	}
	r.Editable = commonPointers(r.Editable, other.Editable)
	r.EditReasons = sets.Union(r.EditReasons, other.EditReasons)
	r.RejectReasons = sets.Union(r.RejectReasons, other.RejectReasons)
	r.Confirm = sets.Union(r.Confirm, other.Confirm)
	slices.Sort(r.Confirm)
	r.VisibleTo = mergeAudiences(r.VisibleTo, other.VisibleTo)
	r.Sensitive = sets.Union(r.Sensitive, other.Sensitive)
	slices.Sort(r.Sensitive)
	r.RememberMax = min(r.RememberMax, other.RememberMax)
	r.Undo = max(r.Undo, other.Undo)
	r.DenyCount = min(max(1, r.DenyCount), max(1, other.DenyCount))
	switch {
	case len(r.Verbs) == 0:
		r.Verbs = slices.Clone(other.Verbs)
	case len(other.Verbs) > 0:
		r.Verbs = sets.Intersect(r.Verbs, other.Verbs)
	}
	return r
}

// mergeGroups joins groups of the same people and keeps the higher count and the later stage: two
// rules that need one dba need one dba. Widening is permitted only to names that both permit.
func mergeGroups(a, b []Group) []Group {
	merged := slices.Clone(a)
	// join each group once: two equal groups on one side need two people
	joined := make([]bool, len(a))
	var places []int // of the groups of b in merged
	for _, g := range b {
		i := 0
		for i < len(a) && (joined[i] || !sets.Equal(a[i].original(), g.original())) {
			i++
		}
		if i == len(a) {
			merged = append(merged, g)
			places = append(places, len(merged)-1)
			continue
		}
		joined[i] = true
		places = append(places, i)
		m := &merged[i]
		m.Count, m.Stage = max(m.People(), g.People()), max(m.Stage, g.Stage)
		m.From = sets.Subtract(m.From, sets.Subtract(m.Widen, g.Widen)) // members that were already added
		m.Widen = sets.Intersect(m.Widen, g.Widen)
	}
	// A later stage of one group can move it behind groups that waited for it.
	for range merged {
		keepOrder(merged, a, nil)
		keepOrder(merged, b, places)
	}
	return merged
}

// keepOrder moves merged groups to later stages, so that each waits for those that it waited for
// before. places are the indexes of groups in merged; nil means the same ones.
func keepOrder(merged, groups []Group, places []int) {
	place := func(i int) *Group {
		if places != nil {
			i = places[i]
		}
		return &merged[i]
	}
	for i, earlier := range groups {
		for k, later := range groups {
			if earlier.Stage < later.Stage && place(k).Stage <= place(i).Stage {
				place(k).Stage = place(i).Stage + 1
			}
		}
	}
}

// reduceAnyone keeps a group of anyone only if the named groups have too few people. people is the
// total that a side with anyone requires: "a dba, and anyone" are two people, and the dba is one of
// them. Groups in several stages are kept: a named person may decide in another stage than anyone.
func reduceAnyone(groups []Group, people int) []Group {
	i := slices.IndexFunc(groups, Group.isAnyone)
	if i < 0 || slices.ContainsFunc(groups, func(g Group) bool { return g.Stage != groups[i].Stage }) {
		return groups
	}
	named := People(groups) - groups[i].People()
	//mutate:merge-people-not-seats
	if missing := people - named; missing > 0 {
		groups[i].Count = missing
		return groups
	}
	return slices.Delete(groups, i, i+1)
}

// peopleWithAnyone returns the number of required people if anyone is among the groups, and 0 if
// all groups are named.
func peopleWithAnyone(groups []Group) int {
	if !slices.ContainsFunc(groups, Group.isAnyone) {
		return 0
	}
	return People(groups)
}

// mergeAudiences adds audiences that are not implied yet: a person must belong to each.
func mergeAudiences(all, more [][]string) [][]string {
	all = slices.Clone(all)
	for _, audience := range more {
		if !impliesAudience(all, audience) {
			all = append(all, audience)
		}
	}
	return all
}

// impliesAudience reports whether everyone who belongs to all audiences also belongs to audience.
func impliesAudience(all [][]string, audience []string) bool {
	return slices.ContainsFunc(all, func(other []string) bool { return len(sets.Subtract(other, audience)) == 0 })
}

// Covers reports whether a JSON pointer is equal to or below one of the pointers.
func Covers(pointers []string, pointer string) bool {
	return slices.ContainsFunc(pointers, func(p string) bool { return pointer == p || strings.HasPrefix(pointer, p+"/") })
}

// commonPointers returns the pointers that both sides cover, sorted.
func commonPointers(a, b []string) []string {
	var common []string
	for _, p := range a {
		if Covers(b, p) {
			common = append(common, p)
		}
	}
	for _, p := range b {
		if Covers(a, p) && !slices.Contains(common, p) {
			common = append(common, p)
		}
	}
	slices.Sort(common)
	return common
}
