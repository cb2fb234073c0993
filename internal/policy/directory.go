package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/sets"
	"github.com/fermata-go/fermata/internal/yamldoc"
)

// Directory knows the members of groups. It is used when rules are loaded and linted, not for
// decisions.
type Directory interface {
	// Members returns the people of group:x, role:x, oncall:x or user:x, and whether the name
	// exists.
	Members(name string) (people []string, known bool)
}

// onCall is the prefix of schedules. A directory may know them without their people.
const onCall = "oncall:"

// The limits of one rule. The desk rejects more.
const (
	maxStage = requirement.MaxGroups - 1
	maxCodes = 50
)

func (r *loader) parseGroups(node yamldoc.Node) []Group {
	var groups []Group
	for _, item := range node.List() {
		fields := item.Map("from", "count", "widen", "stage")
		group := Group{From: parseNames(fields["from"]), Widen: parseNames(fields["widen"]), Count: 1}
		if !fields["count"].Missing() {
			group.Count = int(fields["count"].Int(1))
		}
		if group.Count > requirement.MaxCount {
			item.Reportf("count %d is more than %d", group.Count, requirement.MaxCount)
		}
		if !fields["stage"].Missing() {
			group.Stage = int(fields["stage"].Int(0))
		}
		if group.Stage > maxStage {
			item.Reportf("stage %d is more than %d", group.Stage, maxStage)
		}
		if len(group.From) == 0 {
			item.Reportf("the group is empty: from has no names")
		}
		for _, name := range group.Widen {
			switch {
			case name == requirement.Requester:
				item.Reportf("widen must not contain the requester: it is for additional approvers")
			case slices.Contains(group.From, name):
				item.Reportf("%s is already in from", name)
			}
		}
		r.checkMembers(item, group)
		if slices.ContainsFunc(groups, func(g Group) bool { return slices.Equal(g.From, group.From) }) {
			item.Reportf("duplicate group: use count to require more people")
		}
		groups = append(groups, group)
	}
	if len(groups) > requirement.MaxGroups {
		node.Reportf("%d groups are more than %d", len(groups), requirement.MaxGroups)
	}
	return groups
}

// parseNames parses a list of names and sorts it.
func parseNames(node yamldoc.Node) []string {
	if node.Missing() {
		return nil
	}
	var all []string
	for _, item := range node.List() {
		name := item.Text()
		checkName(item, name)
		all = append(all, name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

var placeholder = regexp.MustCompile(`\$\{([^}]*)\}`)

// placeholderValues are the fields that a name can contain, as in group:owners:${req.graph}.
var placeholderValues = map[string]func(*Input) string{
	"req.account": dimensions["account"], "req.environment": dimensions["environment"], "req.graph": dimensions["graph"],
	"req.node": dimensions["node"], "req.tool": dimensions["tool"], "req.requester": dimensions["requester"], "req.agent": dimensions["agent"],
}

func checkName(at yamldoc.Node, name string) {
	checkLabel(at, name)
	for _, found := range placeholder.FindAllStringSubmatch(name, -1) {
		if placeholderValues[found[1]] == nil {
			known := make([]string, 0, len(placeholderValues))
			for field := range placeholderValues {
				known = append(known, field)
			}
			at.Reportf("unknown placeholder %q%s", found[0], yamldoc.Suggest(found[1], known))
		}
	}
	if name == requirement.Requester || name == requirement.Anyone {
		return
	}
	sort, rest, ok := strings.Cut(name, ":")
	if !ok || rest == "" {
		at.Reportf("%q has no kind; use group:%s, user:…, role:…, oncall:…, requester or anyone", name, name)
		return
	}
	if !slices.Contains(requirement.PrincipalKinds, sort) {
		at.Reportf("%q has an unknown kind%s", name, yamldoc.Suggest(sort, requirement.PrincipalKinds))
	}
}

// checkMembers finds groups that can never approve. Names with placeholders cannot be checked.
func (r *loader) checkMembers(at yamldoc.Node, group Group) {
	if r.directory == nil {
		return
	}
	unknown := func(name string) { at.Reportf("unknown name %s", name) }
	members(r.directory, group.Widen, unknown)
	people, open := members(r.directory, group.From, unknown)
	if open || len(group.From) == 0 {
		return
	}
	switch {
	case len(people) == 0:
		at.Reportf("%s has no members: no one could ever approve", strings.Join(group.From, " or "))
	case len(people) < group.Count:
		at.Reportf("%d people are required, but only %d are in %s", group.Count, len(people), strings.Join(group.From, " or "))
	}
}

// members returns the people of names. open reports that some are known only at evaluation.
func members(directory Directory, names []string, unknown func(name string)) (people []string, open bool) {
	for _, name := range names {
		if name == requirement.Requester || name == requirement.Anyone || strings.Contains(name, "${") {
			open = true
			continue
		}
		more, known := directory.Members(name)
		if !known {
			unknown(name)
			open = true // already reported; do not also report an empty group
		}
		open = open || known && strings.HasPrefix(name, onCall) && len(more) == 0 // it changes
		people = sets.Union(people, more)
	}
	return people, open
}

// checkComplete reports what is missing after the defaults are applied.
func (r *loader) checkComplete(at yamldoc.Node, req *Requirement) {
	if len(req.Groups) == 0 {
		at.Reportf("ask.groups is missing, here and in defaults.ask")
	}
	if req.Deadline == 0 {
		at.Reportf("deadline is missing, here and in defaults.ask: set it, for example deadline: 24h")
	}
	for _, group := range req.Groups {
		if !slices.Equal(group.From, []string{requirement.Requester}) {
			continue
		}
		if i := slices.IndexFunc(req.Exclude, func(duty requirement.Duty) bool {
			return duty == requirement.DutyRequester || duty == requirement.DutyAuthor
		}); i >= 0 {
			at.Reportf("the requester is an approver, but separation_of_duties excludes %s", req.Exclude[i])
		}
		if group.Count > 1 && len(group.Widen) == 0 {
			at.Reportf("%d people are required, but there is only one requester", group.Count)
		}
	}
	for _, problem := range []string{tooFewPeople(r.directory, req.Groups), cannotReject(r.directory, req)} {
		if problem != "" {
			at.Reportf("%s", problem)
		}
	}
}

// cannotReject explains why people could never reject, or returns "" if they could or it is
// unknown. People that are added later count too.
func cannotReject(directory Directory, req *Requirement) string {
	if directory == nil {
		return ""
	}
	var asked []string
	for _, group := range req.Groups {
		who, open := members(directory, slices.Concat(group.From, group.Widen), func(string) {})
		if open {
			return ""
		}
		asked = sets.Union(asked, who)
	}
	if len(asked) == 0 || len(asked) >= req.DenyCount { // empty groups are already reported
		return ""
	}
	return fmt.Sprintf("%d rejections are required, but only %d people are asked: no one could ever reject it", req.DenyCount, len(asked))
}

// tooFewPeople explains why the groups cannot all be satisfied, because they overlap and each
// person counts once. It returns "" if they can or it is unknown. People that are added later count
// too.
func tooFewPeople(directory Directory, groups []Group) string {
	if directory == nil {
		return ""
	}
	var places [][]string // the candidates of each place
	for _, group := range groups {
		who, open := members(directory, slices.Concat(group.From, group.Widen), func(string) {})
		if open || len(who) < group.Count { // unknown, or already reported
			continue
		}
		places = append(places, slices.Repeat([][]string{who}, group.Count)...)
	}
	n := maxAssignment(places)
	if n == len(places) {
		return ""
	}
	return fmt.Sprintf("%d different people are required, but the groups have only %d together: each person counts once", len(places), n)
}

// maxAssignment returns how many places can be filled at once with different people.
func maxAssignment(places [][]string) (n int) {
	taken := make(map[string]int)
	var seat func(place int, asked map[string]bool) bool
	seat = func(place int, asked map[string]bool) bool {
		for _, person := range places[place] {
			if asked[person] {
				continue
			}
			asked[person] = true
			other, sits := taken[person]
			if !sits || seat(other, asked) {
				taken[person] = place
				return true
			}
		}
		return false
	}
	for place := range places {
		if seat(place, make(map[string]bool)) {
			n++
		}
	}
	return n
}

// expand returns a requirement with placeholders expanded.
func expand(req *Requirement, in *Input) *Requirement {
	c := req.Clone()
	for i, group := range c.Groups {
		c.Groups[i].From = expandNames(group.From, in)
		c.Groups[i].Widen = sets.Subtract(expandNames(group.Widen, in), c.Groups[i].From)
	}
	c.OnTimeout = onTimeoutFor(in.kind(), c.OnTimeout)
	for i := range c.VisibleTo {
		c.VisibleTo[i] = expandNames(c.VisibleTo[i], in)
	}
	return c
}

// expandNames expands placeholders, sorts the names and removes duplicates.
func expandNames(names []string, in *Input) []string {
	for i, name := range names {
		names[i] = expandName(name, in)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func expandName(name string, in *Input) string {
	if !strings.Contains(name, "${") {
		return name
	}
	return placeholder.ReplaceAllStringFunc(name, func(found string) string {
		return placeholderValues[found[2:len(found)-1]](in)
	})
}
