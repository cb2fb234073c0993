package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/policy/internal/yamldoc"
)

// World is what lints compare rules with. What is not given is not looked at.
type World struct {
	// Directory knows groups as they are now: one that had members when the rules were loaded may be empty today.
	Directory Directory
	// Requesters are the people for whom runs work.
	Requesters []string
	// Tools are those that agents can call, by name.
	Tools map[string]Tool
	// Route says what is wrong with a route, as that one of its regions never opens; "" if nothing is. It says "unknown" of
	// a route that is not there.
	Route func(name string) (problem string)
	// Widens names those whom a route lets decide later, as far as the rules permit it.
	Widens func(route string) []string
}

// Tool is what lints know of a tool.
type Tool struct {
	// ArgsSchema is the JSON Schema of its arguments; nil if it is not known.
	ArgsSchema json.RawMessage
	// Effects says whether the outside world notices a call.
	Effects bool
}

// Lint lists what is allowed and probably not meant. None of it keeps the set from being used.
func (s *Set) Lint(world World) []Problem {
	l := &linter{set: s, world: world}
	l.ratings()
	for i, one := range s.rules {
		l.dead(i, one)
		l.tools(one)
		l.arguments(one)
		l.bareAllow(one)
		if one.Ask != nil {
			l.people(one.ID, one.Line, one.Ask)
		}
	}
	if s.ask != nil && s.fallback == Ask {
		l.people("", 1, s.ask)
	}
	return l.found
}

type linter struct {
	set   *Set
	world World
	found []Problem
}

func (l *linter) warn(id string, line int, format string, args ...any) {
	p := Problem{File: l.set.file, Line: line, Rule: id, Text: fmt.Sprintf(format, args...)}
	if !slices.Contains(l.found, p) {
		l.found = append(l.found, p)
	}
}

// dead finds rules that change nothing: they never hit, or a stricter rule hits wherever they do.
func (l *linter) dead(i int, one *rule) {
	if one.facts.tools != nil && len(one.facts.tools) == 0 || slices.Contains(one.facts.conjuncts, "false") {
		l.warn(one.ID, one.Line, "this rule never hits: its condition contradicts itself")
		return
	}
	for k, other := range l.set.rules {
		if k == i || other.DryRun || other.Limit != nil || one.Limit != nil || one.facts.conjuncts == nil || !impliedBy(other, one) {
			continue
		}
		stricter := other.Then.strictness() > one.Then.strictness()
		switch {
		case stricter:
			l.warn(one.ID, one.Line, "shadowed by %q in line %d, which hits wherever this rule does and says %s", other.ID, other.Line, other.Then)
		case other.Then == one.Then && k < i && len(other.facts.conjuncts) == len(one.facts.conjuncts):
			l.warn(one.ID, one.Line, "the same condition as %q in line %d, and the same verdict", other.ID, other.Line)
		}
	}
}

// impliedBy reports whether other surely hits when one does: all it wants, one wants too.
func impliedBy(other, one *rule) bool {
	for _, part := range other.facts.conjuncts {
		if part != "true" && !slices.Contains(one.facts.conjuncts, part) {
			return false
		}
	}
	return true
}

// ratings finds tools that the file speaks of and that are not there.
func (l *linter) ratings() {
	if l.world.Tools == nil {
		return
	}
	for _, tool := range l.set.toolNames() {
		l.known("", l.set.tools[tool].line, tool)
	}
}

func (l *linter) tools(one *rule) {
	if l.world.Tools == nil {
		return
	}
	for _, tool := range one.facts.tools {
		l.known(one.ID, one.Line, tool)
	}
}

func (l *linter) known(id string, line int, tool string) {
	if _, known := l.world.Tools[tool]; !known {
		l.warn(id, line, "there is no tool %q%s", tool, yamldoc.Suggest(tool, slices.Collect(maps.Keys(l.world.Tools))))
	}
}

// arguments finds paths that no tool of the rule has. A rule for any tool cannot be checked.
func (l *linter) arguments(one *rule) {
	paths := slices.Clone(one.facts.paths)
	if one.Ask != nil {
		paths = append(paths, one.Ask.Editable...)
		for _, shown := range one.Ask.Show {
			if strings.HasPrefix(shown, "/") {
				paths = append(paths, shown)
			}
		}
	}
	for _, tool := range one.facts.tools {
		schema := l.world.Tools[tool].ArgsSchema
		for _, path := range paths {
			if known, missing := inSchema(schema, path); missing != "" {
				l.warn(one.ID, one.Line, "%s has no argument %q%s", tool, path, yamldoc.Suggest(missing, known))
			}
		}
	}
}

// inSchema follows a path through the properties of a schema. It returns the step that is not there and what is instead;
// where a schema is not plain properties and items it knows nothing, and finds nothing wrong.
func inSchema(schema json.RawMessage, path string) (known []string, missing string) {
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

// bareAllow finds rules that let a tool with effects do anything.
func (l *linter) bareAllow(one *rule) {
	if one.Then != Allow || one.facts.args || len(both(one.facts.uses, tellable)) > 0 || slices.Contains(one.facts.conjuncts, "false") {
		return
	}
	tools := one.facts.tools
	if tools == nil {
		tools = union(slices.Sorted(maps.Keys(l.world.Tools)), l.set.toolNames())
	}
	var open []string
	for _, tool := range tools {
		if word := wordFor(l.set.tools, tool); l.world.Tools[tool].Effects || word != nil && len(word.effects) > 0 {
			open = append(open, tool)
		}
	}
	if len(open) > 0 {
		l.warn(one.ID, one.Line, "allows %s with any arguments, and the outside world notices; constrain args", strings.Join(open, ", "))
	}
}

func (l *linter) people(id string, line int, need *Requirement) {
	l.widening(id, line, need)
	for _, route := range need.Routes {
		if l.world.Route == nil {
			break
		}
		if problem := l.world.Route(route); problem != "" {
			l.warn(id, line, "route %q: %s", route, problem)
		}
	}
	if l.world.Directory == nil {
		return
	}
	for _, group := range need.Groups {
		names := strings.Join(group.From, " or ")
		unknown := func(name string) { l.warn(id, line, "there is no %s", name) }
		members(l.world.Directory, group.Widen, unknown)
		people, open := members(l.world.Directory, group.From, unknown)
		switch {
		case open:
		case len(people) == 0:
			l.warn(id, line, "nobody is in %s: nobody can say yes", names)
		case len(people) < group.Count:
			l.warn(id, line, "%d people are needed and only %d are in %s", group.Count, len(people), names)
		case len(l.world.Requesters) > 0 && len(without(people, l.world.Requesters)) == 0:
			l.warn(id, line, "everybody in %s is also a requester%s", names, sodNote(need, group, people))
		}
	}
	for _, problem := range []string{tooFewTogether(l.world.Directory, need.Groups), undeniable(l.world.Directory, need)} {
		if problem != "" {
			l.warn(id, line, "%s", problem)
		}
	}
}

// widening finds people whom a route lets in and no group permits, and those whom a group permits and no route lets in.
func (l *linter) widening(id string, line int, need *Requirement) {
	if l.world.Widens == nil || len(need.Routes) == 0 {
		return
	}
	var let []string
	for _, route := range need.Routes {
		for _, who := range l.world.Widens(route) {
			let = append(let, who)
			if !slices.ContainsFunc(need.Groups, func(g Group) bool { return among(slices.Concat(g.From, g.Widen), who) }) {
				l.warn(id, line, "route %q widens to %s, and no group permits it: add it to widen of a group", route, who)
			}
		}
	}
	for _, group := range need.Groups {
		for _, name := range group.Widen {
			if !slices.ContainsFunc(let, func(who string) bool { return among([]string{name}, who) }) {
				l.warn(id, line, "%s is never let in: no step of %s widens to it", name, strings.Join(need.Routes, " or "))
			}
		}
	}
}

// among reports whether one of the names is who. One that is filled in later may become whatever begins like it.
func among(names []string, who string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		start, _, open := strings.Cut(name, "${")
		return name == who || open && strings.HasPrefix(who, start)
	})
}

// sodNote says what that means where the requester's own yes does not count.
func sodNote(need *Requirement, group Group, people []string) string {
	switch {
	case !slices.Contains(need.Exclude, requester):
		return ", and may approve their own requests: add separation_of_duties: [requester]"
	case len(people) <= group.Count:
		return ": for their own requests too few are left to say yes"
	}
	return ": they approve one another's requests"
}
