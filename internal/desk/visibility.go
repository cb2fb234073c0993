package desk

import (
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/requirement"
)

// Viewer is a caller who wants to see a request.
type Viewer struct {
	ID string
	// Kind is [ActorAgent] for programs that may not decide.
	Kind ActorKind
	// Roles are the roles of the caller's credentials. An audience can name them as role:.
	Roles []string
	// Admin lets the caller see everything.
	Admin bool
}

// VisibleTo reports whether a viewer may see the request. Without audiences everyone may. Otherwise
// these callers may:
//   - admins
//   - people who belong to each audience of [Requirement.VisibleTo]
//   - people who may decide, as members of a named group: [PrincipalAnyone] does not count
//   - the agent that asked, which needs the outcome of its run; a person who asked must be listed
//
// The error is that of the directory; then the answer is unknown.
func (r Request) VisibleTo(v Viewer, directory Directory) (bool, error) {
	switch {
	case len(r.Requirement.VisibleTo) == 0, v.Admin:
		return true, nil
	case v.ID == "":
		return false, nil
	case r.IsAskedBy(v):
		return true, nil
	}
	in, err := r.inAudiences(v, directory)
	if in || err != nil || v.Kind == ActorAgent {
		return in, err
	}
	return r.decidesByName(v.ID, directory)
}

// GroupsOf returns the required groups that a person belongs to: each group:, role: or oncall: and
// its name, once. The error is that of the directory.
func (r Request) GroupsOf(person string, directory Directory) (groups []string, err error) {
	d := &update{r: r, env: Env{Directory: directory}, command: CommandView, from: From{Actor: Actor{ID: person}}}
	for _, g := range r.Requirement.Groups {
		for _, who := range g.From {
			if !strings.Contains(who, ":") || strings.HasPrefix(who, "user:") || slices.Contains(groups, who) {
				continue
			}
			in, err := d.isMember(requirement.Group{From: []string{who}}, person)
			if err != nil {
				return nil, err
			}
			if in {
				groups = append(groups, who)
			}
		}
	}
	return groups, nil
}

// IsAskedBy reports whether the viewer is the agent that made the request.
func (r Request) IsAskedBy(v Viewer) bool {
	return v.Kind == ActorAgent && v.ID != "" && v.ID == r.Subject.Requester
}

// inAudiences reports whether a viewer belongs to each audience.
func (r Request) inAudiences(v Viewer, directory Directory) (bool, error) {
	d := &update{r: r, env: Env{Directory: directory}, command: CommandView, from: From{Actor: Actor{ID: v.ID}}}
	for _, audience := range r.Requirement.VisibleTo {
		if slices.ContainsFunc(v.Roles, func(role string) bool { return slices.Contains(audience, "role:"+role) }) {
			continue
		}
		if in, err := d.isMember(requirement.Group{From: audience}, v.ID); !in || err != nil {
			return false, err
		}
	}
	return true, nil
}

// decidesByName reports whether a person may decide as a member of a named group. Anyone is not a
// name: otherwise an audience would have no effect on a request that anyone may decide.
func (r Request) decidesByName(person string, directory Directory) (bool, error) {
	d := &update{r: r, env: Env{Directory: directory}, command: CommandView, from: From{Actor: Actor{ID: person}}}
	for _, duty := range r.Requirement.Exclude {
		if d.hasDuty(duty, person, requirement.VerbReject) {
			return false, nil
		}
	}
	for _, g := range r.Requirement.Groups {
		g.From = slices.DeleteFunc(slices.Clone(g.From), func(who string) bool { return who == requirement.Anyone })
		if in, err := d.isMember(g, person); in || err != nil {
			return in, err
		}
	}
	return false, nil
}
