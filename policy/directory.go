package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/policy/internal/yamldoc"
)

// Directory knows who belongs to what. It is asked when rules are loaded and linted, not when they decide.
type Directory interface {
	// Members returns the people behind group:x, role:x, oncall:x or user:x, and whether there is such a thing at all.
	Members(name string) (people []string, known bool)
}

// requester in a group is the person for whom the run works: that is a confirmation, and not four eyes.
const requester = "requester"

// author in separation_of_duties is the requester, too: a run begins with what the requester wants.
const author = "author"

// anyone is every person who can decide at all.
const anyone = "anyone"

// The most that one rule may ask for: more is a mistake, and the desk would refuse it.
const (
	maxGroups = 20
	maxCount  = 50
)

var principalKinds = []string{"group", "user", "role", "oncall"}

func (r *loader) parseGroups(node yamldoc.Node) []Group {
	var groups []Group
	for _, item := range node.List() {
		fields := item.Map("from", "count", "widen")
		group := Group{From: parseNames(fields["from"]), Widen: parseNames(fields["widen"]), Count: 1}
		if !fields["count"].Missing() {
			group.Count = int(fields["count"].Int(1))
		}
		if group.Count > maxCount {
			item.Reportf("a count of %d is more than %d", group.Count, maxCount)
		}
		if len(group.From) == 0 {
			item.Reportf("the group names nobody: from is empty")
		}
		for _, name := range group.Widen {
			switch {
			case name == requester:
				item.Reportf("the requester cannot be let in later: widen is for more people who can say yes")
			case slices.Contains(group.From, name):
				item.Reportf("%s is in from already, and need not be let in later", name)
			}
		}
		r.checkMembers(item, group)
		if slices.ContainsFunc(groups, func(g Group) bool { return slices.Equal(g.From, group.From) }) {
			item.Reportf("the same people are in a group above: ask for more of them with count")
		}
		groups = append(groups, group)
	}
	if len(groups) > maxGroups {
		node.Reportf("%d groups are more than %d", len(groups), maxGroups)
	}
	return groups
}

// parseNames reads who is meant, in order.
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

// placeholderValues are the fields that can stand in a name, as in group:owners:${req.graph}.
var placeholderValues = map[string]func(*Input) string{
	"req.account": dimensions["account"], "req.environment": dimensions["environment"], "req.graph": dimensions["graph"],
	"req.node": dimensions["node"], "req.tool": dimensions["tool"], "req.requester": dimensions["requester"], "req.agent": dimensions["agent"],
}

func checkName(at yamldoc.Node, name string) {
	checkLabel(at, "the name", name)
	for _, found := range placeholder.FindAllStringSubmatch(name, -1) {
		if placeholderValues[found[1]] == nil {
			known := make([]string, 0, len(placeholderValues))
			for field := range placeholderValues {
				known = append(known, field)
			}
			at.Reportf("%q cannot be filled in%s", found[0], yamldoc.Suggest(found[1], known))
		}
	}
	if name == requester || name == anyone {
		return
	}
	sort, rest, ok := strings.Cut(name, ":")
	if !ok || rest == "" {
		at.Reportf("%q says not what it is; write group:%s, user:…, role:…, oncall:…, requester or anyone", name, name)
		return
	}
	if !slices.Contains(principalKinds, sort) {
		at.Reportf("%q is of an unknown sort%s", name, yamldoc.Suggest(sort, principalKinds))
	}
}

// checkMembers finds groups that can never say yes. Names that are filled in later cannot be checked.
func (r *loader) checkMembers(at yamldoc.Node, group Group) {
	if r.directory == nil {
		return
	}
	unknown := func(name string) { at.Reportf("there is no %s", name) }
	members(r.directory, group.Widen, unknown)
	people, open := members(r.directory, group.From, unknown)
	if open || len(group.From) == 0 {
		return
	}
	switch {
	case len(people) == 0:
		at.Reportf("nobody is in %s: nobody could ever say yes", strings.Join(group.From, " or "))
	case len(people) < group.Count:
		at.Reportf("%d people are needed and only %d are in %s", group.Count, len(people), strings.Join(group.From, " or "))
	}
}

// members returns the people behind names. It is open if some are known only when an action is judged.
func members(directory Directory, names []string, unknown func(name string)) (people []string, open bool) {
	for _, name := range names {
		if name == requester || name == anyone || strings.Contains(name, "${") {
			open = true
			continue
		}
		more, known := directory.Members(name)
		if !known {
			unknown(name)
			open = true // said already; do not also say that it is empty
		}
		people = union(people, more)
	}
	return people, open
}

// complete reports what is still missing once the defaults are filled in.
func (r *loader) checkComplete(at yamldoc.Node, req *Requirement) {
	if len(req.Groups) == 0 {
		at.Reportf("nobody is asked: ask.groups is missing, here and in defaults.ask")
	}
	if req.Deadline == 0 {
		at.Reportf("deadline is missing, here and in defaults.ask: say how long the request stays open, as deadline: 24h")
	}
	for _, group := range req.Groups {
		if !slices.Equal(group.From, []string{requester}) {
			continue
		}
		if i := slices.IndexFunc(req.Exclude, func(duty string) bool { return duty == requester || duty == author }); i >= 0 {
			at.Reportf("the requester is asked, and separation_of_duties does not let the requester's yes count: %s", req.Exclude[i])
		}
		if group.Count > 1 && len(group.Widen) == 0 {
			at.Reportf("%d people are needed, and there is one requester", group.Count)
		}
	}
	for _, problem := range []string{tooFewPeople(r.directory, req.Groups), cannotReject(r.directory, req)} {
		if problem != "" {
			at.Reportf("%s", problem)
		}
	}
}

// cannotReject says why people could never refuse what a requirement asks for; "" if they could, or it is not known. Those that are let in later count, too.
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
		asked = union(asked, who)
	}
	if len(asked) == 0 || len(asked) >= req.DenyCount { // that nobody is asked was said already
		return ""
	}
	return fmt.Sprintf("%d people have to say no until it is a no, and only %d are asked: nobody could ever refuse it", req.DenyCount, len(asked))
}

// tooFewPeople says why groups cannot all be satisfied: they share their people, and one person counts once; "" if they can, or it is not known. Those that are
// let in later count, too.
func tooFewPeople(directory Directory, groups []Group) string {
	if directory == nil {
		return ""
	}
	var places [][]string // who could take each place
	for _, group := range groups {
		who, open := members(directory, slices.Concat(group.From, group.Widen), func(string) {})
		if open || len(who) < group.Count { // it is not known, or was said already
			continue
		}
		places = append(places, slices.Repeat([][]string{who}, group.Count)...)
	}
	n := maxAssignment(places)
	if n == len(places) {
		return ""
	}
	return fmt.Sprintf("%d different people are needed, and the groups have only %d together who could say yes: one person counts once", len(places), n)
}

// maxAssignment is how many places can be taken at once, each by somebody else.
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

// filled returns the requirement with names filled in.
func (r *Requirement) expand(in *Input) *Requirement {
	c := r.clone()
	for i, group := range c.Groups {
		c.Groups[i].From = expandNames(group.From, in)
		c.Groups[i].Widen = subtract(expandNames(group.Widen, in), c.Groups[i].From)
	}
	return c
}

// expandNames are names filled in, in order, each once.
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
