package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/sets"
	"github.com/fermata-go/fermata/internal/yamldoc"
)

// LintContext is what Lint compares the rules with. Fields that are not set are not checked.
type LintContext struct {
	// Directory knows the current groups. A group that had members when the rules were loaded may
	// be empty now.
	Directory Directory
	// Requesters are the people for whom runs work.
	Requesters []string
	// Tools are the tools that agents can call, by name.
	Tools map[string]Tool
	// CheckRoute returns what is wrong with a route, for example that a region never opens, or ""
	// if nothing is. It returns "unknown" for a missing route.
	CheckRoute func(name string) (problem string)
	// WidensTo returns who a route adds later, as far as the rules permit.
	WidensTo func(route string) []string
	// Channels returns the targets of a route whose readers are not known, such as slack:#ops.
	Channels func(route string) []string
}

// Tool describes a tool for Lint.
type Tool struct {
	// ArgsSchema is the JSON Schema of the arguments, or nil if unknown.
	ArgsSchema json.RawMessage
	// Effects reports whether the tool changes the outside world.
	Effects bool
}

// Lint returns warnings: constructs that are valid but probably not intended. They do not prevent
// the use of the set.
func (s *Set) Lint(context LintContext) []Problem {
	l := &linter{set: s, context: context}
	l.checkRatings()
	for i, one := range s.rules {
		l.checkShadowed(i, one)
		l.checkTools(one)
		l.checkArguments(one)
		l.checkBareAllow(one)
		if one.Ask != nil {
			l.checkPeople(one.ID, one.Line, one.Ask)
		}
	}
	if s.defaultAsk != nil && s.defaultVerdict == Ask {
		l.checkPeople("", 1, s.defaultAsk)
	}
	return append(l.problems, s.LintChannels(context.Channels)...)
}

// LintChannels warns of restricted requests in channels: their readers get only a link.
func (s *Set) LintChannels(channels func(route string) []string) []Problem {
	l := &linter{set: s}
	for _, one := range s.rules {
		l.checkChannels(one.ID, one.Line, one.Ask, channels)
	}
	l.checkChannels("", 1, s.defaultAsk, channels)
	return l.problems
}

func (l *linter) checkChannels(id string, line int, need *Requirement, channels func(route string) []string) {
	if channels == nil || need == nil || len(need.VisibleTo) == 0 {
		return
	}
	for _, route := range append(slices.Clone(need.Routes), "default")[:max(1, len(need.Routes))] {
		if targets := channels(route); len(targets) > 0 {
			l.warn(id, line, "route %q sends to %s: with visible_to, its readers get only a link", route, strings.Join(targets, ", "))
		}
	}
}

type linter struct {
	set      *Set
	context  LintContext
	problems []Problem
}

func (l *linter) warn(id string, line int, format string, args ...any) {
	p := Problem{File: l.set.file, Line: line, Rule: id, Text: fmt.Sprintf(format, args...)}
	if !slices.Contains(l.problems, p) {
		l.problems = append(l.problems, p)
	}
}

// checkShadowed finds rules without effect: they never match, or a stricter rule always matches
// too.
func (l *linter) checkShadowed(i int, one *rule) {
	if one.info.tools != nil && len(one.info.tools) == 0 || slices.Contains(one.info.conjuncts, "false") {
		l.warn(one.ID, one.Line, "this rule never matches: its condition contradicts itself")
		return
	}
	for k, other := range l.set.rules {
		if k == i || other.DryRun || other.Limit != nil || one.Limit != nil || one.info.conjuncts == nil || !impliedBy(other, one) {
			continue
		}
		stricter := other.Then.strictness() > one.Then.strictness()
		switch {
		case stricter:
			l.warn(one.ID, one.Line, "shadowed by %q in line %d, which always matches too and says %s", other.ID, other.Line, other.Then)
		case other.Then == one.Then && k < i && len(other.info.conjuncts) == len(one.info.conjuncts):
			l.warn(one.ID, one.Line, "same condition and verdict as %q in line %d", other.ID, other.Line)
		}
	}
}

// impliedBy reports whether other always matches if one does: one has all its conjuncts.
func impliedBy(other, one *rule) bool {
	for _, part := range other.info.conjuncts {
		if part != "true" && !slices.Contains(one.info.conjuncts, part) {
			return false
		}
	}
	return true
}

// checkRatings finds rated tools that do not exist.
func (l *linter) checkRatings() {
	if l.context.Tools == nil {
		return
	}
	for _, tool := range l.set.toolNames() {
		l.checkToolExists("", l.set.ratings[tool].line, tool)
	}
}

func (l *linter) checkTools(one *rule) {
	if l.context.Tools == nil {
		return
	}
	for _, tool := range one.info.tools {
		l.checkToolExists(one.ID, one.Line, tool)
	}
}

func (l *linter) checkToolExists(id string, line int, tool string) {
	if _, known := l.context.Tools[tool]; !known {
		l.warn(id, line, "unknown tool %q%s", tool, yamldoc.Suggest(tool, slices.Collect(maps.Keys(l.context.Tools))))
	}
}

// checkArguments finds paths that a tool of the rule does not have. A rule for all tools cannot be
// checked.
func (l *linter) checkArguments(one *rule) {
	paths := slices.Clone(one.info.argPaths)
	if one.Ask != nil {
		paths = slices.Concat(paths, one.Ask.Editable, one.Ask.Sensitive, one.Ask.Confirm)
	}
	for _, tool := range one.info.tools {
		schema := l.context.Tools[tool].ArgsSchema
		for _, path := range paths {
			if known, missing := findInSchema(schema, path); missing != "" {
				l.warn(one.ID, one.Line, "%s has no argument %q%s", tool, path, yamldoc.Suggest(missing, known))
			}
		}
	}
}

// findInSchema follows a path through the properties of a schema. It returns the missing step and
// the known properties. It finds nothing if the schema uses more than plain properties and items.
func findInSchema(schema json.RawMessage, path string) (known []string, missing string) {
	if len(schema) == 0 {
		return nil, ""
	}
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if path == "" {
			return nil, ""
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		var here struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if json.Unmarshal(schema, &here) != nil || len(here.Properties) == 0 {
			return nil, ""
		}
		next, ok := here.Properties[step]
		if !ok {
			return slices.Sorted(maps.Keys(here.Properties)), step
		}
		schema = next
	}
	return nil, ""
}

// checkBareAllow finds rules that allow a tool with effects for any arguments.
func (l *linter) checkBareAllow(one *rule) {
	if one.Then != Allow || one.info.usesArgs || len(sets.Intersect(one.info.requestFields, ratingFields)) > 0 || slices.Contains(one.info.conjuncts, "false") {
		return
	}
	tools := one.info.tools
	if tools == nil {
		tools = sets.Union(slices.Sorted(maps.Keys(l.context.Tools)), l.set.toolNames())
	}
	var open []string
	for _, tool := range tools {
		if rating := ratingFor(l.set.ratings, tool); l.context.Tools[tool].Effects || rating != nil && len(rating.effects) > 0 {
			open = append(open, tool)
		}
	}
	if len(open) > 0 {
		l.warn(one.ID, one.Line, "allows %s with any arguments, although it has effects; constrain args", strings.Join(open, ", "))
	}
}

// checkAudience finds groups of whom no one may see the request.
func (l *linter) checkAudience(id string, line int, need *Requirement) {
	for _, audience := range need.VisibleTo {
		viewers, open := members(l.context.Directory, audience, func(name string) { l.warn(id, line, "unknown name %s", name) })
		if open {
			continue
		}
		for _, group := range need.Groups {
			people, open := members(l.context.Directory, group.From, func(string) {})
			if !open && len(people) > 0 && len(sets.Intersect(people, viewers)) == 0 {
				l.warn(id, line, "no one in %s can see the request: visible_to is %s", strings.Join(group.From, " or "), strings.Join(audience, " or "))
			}
		}
	}
}

func (l *linter) checkPeople(id string, line int, need *Requirement) {
	l.checkWidening(id, line, need)
	for _, route := range need.Routes {
		if l.context.CheckRoute == nil {
			break
		}
		if problem := l.context.CheckRoute(route); problem != "" {
			l.warn(id, line, "route %q: %s", route, problem)
		}
	}
	if l.context.Directory == nil {
		return
	}
	l.checkAudience(id, line, need)
	for _, group := range need.Groups {
		names := strings.Join(group.From, " or ")
		unknown := func(name string) { l.warn(id, line, "unknown name %s", name) }
		members(l.context.Directory, group.Widen, unknown)
		people, open := members(l.context.Directory, group.From, unknown)
		switch {
		case open:
		case len(people) == 0:
			l.warn(id, line, "%s has no members: no one can approve", names)
		case len(people) < group.Count:
			l.warn(id, line, "%d people are required, but only %d are in %s", group.Count, len(people), names)
		case len(l.context.Requesters) > 0 && len(sets.Subtract(people, l.context.Requesters)) == 0:
			l.warn(id, line, "everyone in %s is also a requester%s", names, separationNote(need, group, people))
		}
	}
	for _, problem := range []string{tooFewPeople(l.context.Directory, need.Groups), cannotReject(l.context.Directory, need)} {
		if problem != "" {
			l.warn(id, line, "%s", problem)
		}
	}
}

// checkWidening finds names that a route adds and no group permits, and names that a group permits
// and no route adds.
func (l *linter) checkWidening(id string, line int, need *Requirement) {
	if l.context.WidensTo == nil || len(need.Routes) == 0 {
		return
	}
	var let []string
	for _, route := range need.Routes {
		for _, who := range l.context.WidensTo(route) {
			let = append(let, who)
			if !slices.ContainsFunc(need.Groups, func(g Group) bool { return matchesAny(slices.Concat(g.From, g.Widen), who) }) {
				l.warn(id, line, "route %q widens to %s, but no group permits it: add it to widen of a group", route, who)
			}
		}
	}
	for _, group := range need.Groups {
		for _, name := range group.Widen {
			if !slices.ContainsFunc(let, func(who string) bool { return matchesAny([]string{name}, who) }) {
				l.warn(id, line, "%s is never added: no step of %s widens to it", name, strings.Join(need.Routes, " or "))
			}
		}
	}
}

// matchesAny reports whether one of the names is who. A placeholder matches any suffix.
func matchesAny(names []string, who string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		start, _, open := strings.Cut(name, "${")
		return name == who || open && strings.HasPrefix(who, start)
	})
}

// separationNote explains the consequence if all approvers are requesters.
func separationNote(need *Requirement, group Group, people []string) string {
	switch {
	case !slices.Contains(need.Exclude, requirement.DutyRequester):
		return ", and may approve their own requests: add separation_of_duties: [requester]"
	case len(people) <= group.Count:
		return ": too few people are left to approve their own requests"
	}
	return ": they approve each other's requests"
}
