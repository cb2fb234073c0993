package desk_test

import (
	"errors"
	"testing"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
)

// A restricted request is visible to its audience, to the people who decide it, to the agent that
// asked, and to admins.
func TestVisibleTo_AudienceAndDeciders(t *testing.T) {
	people := desk.StaticDirectory{"group:dba": {"dora", "rita"}, "group:hr": {"hugo"}, "group:audit": {"hugo", "ada"}, "role:counsel": {"cleo"}}
	spec := func(audiences ...[]string) desk.Request {
		ask := actionSpec()
		ask.Requirement.VisibleTo = audiences
		return desk.Request{Subject: ask.Subject, Requirement: ask.Requirement}
	}
	person := func(id string, roles ...string) desk.Viewer {
		return desk.Viewer{ID: id, Kind: desk.ActorHuman, Roles: roles}
	}
	open := spec([]string{"group:hr"})
	open.Requirement.Groups = []requirement.Group{{From: []string{requirement.Anyone}}}
	for name, c := range map[string]struct {
		r    desk.Request
		by   desk.Viewer
		want bool
	}{
		"without an audience":           {spec(), person("zoe"), true},
		"in the audience":               {spec([]string{"group:hr"}), person("hugo"), true},
		"outside":                       {spec([]string{"group:hr"}), person("zoe"), false},
		"without a name":                {spec([]string{"group:hr"}), desk.Viewer{}, false},
		"an admin":                      {spec([]string{"group:hr"}), desk.Viewer{ID: "root", Kind: desk.ActorHuman, Admin: true}, true},
		"named":                         {spec([]string{"user:zoe"}), person("zoe"), true},
		"with a role of the directory":  {spec([]string{"role:counsel"}), person("cleo"), true},
		"with a role of the key":        {spec([]string{"role:auditor"}), person("zoe", "auditor"), true},
		"without the role":              {spec([]string{"role:auditor"}), person("zoe", "approver"), false},
		"in both audiences":             {spec([]string{"group:hr"}, []string{"group:audit"}), person("hugo"), true},
		"in one of two audiences":       {spec([]string{"group:hr"}, []string{"group:audit"}), person("ada"), false},
		"who decides":                   {spec([]string{"group:hr"}), person("dora"), true},
		"who may not decide":            {spec([]string{"group:hr"}), person("rita"), false},
		"the requester, not listed":     {spec([]string{"group:hr"}), person("rita"), false},
		"the requester, listed":         {spec([]string{requirement.Requester}), person("rita"), true},
		"another requester":             {spec([]string{requirement.Requester}), person("zoe"), false},
		"the agent that asked":          {spec([]string{"group:hr"}), desk.Viewer{ID: "rita", Kind: desk.ActorAgent}, true},
		"another agent":                 {spec([]string{"group:hr"}), desk.Viewer{ID: "bot", Kind: desk.ActorAgent}, false},
		"an agent in a group":           {spec([]string{"group:hr"}), desk.Viewer{ID: "dora", Kind: desk.ActorAgent}, false},
		"one of anyone, in the group":   {open, person("hugo"), true},
		"one of anyone, not in a group": {open, person("zoe"), false},
	} {
		if got, err := c.r.VisibleTo(c.by, people); got != c.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// People whom a step of the route adds see the request from then on.
func TestVisibleTo_WidenedGroup(t *testing.T) {
	r := desk.Request{Requirement: requirement.Requirement{VisibleTo: [][]string{{"group:hr"}}, Groups: []requirement.Group{{From: []string{"group:dba"}, Widen: []string{"user:max"}}}}}
	max := desk.Viewer{ID: "max", Kind: desk.ActorHuman}
	if seen, err := r.VisibleTo(max, nil); seen || err != nil {
		t.Errorf("before: %v, %v", seen, err)
	}
	r.Requirement.Groups[0].From = append(r.Requirement.Groups[0].From, "user:max")
	if seen, err := r.VisibleTo(max, nil); !seen || err != nil {
		t.Errorf("after: %v, %v", seen, err)
	}
}

type unavailableDirectory struct{}

func (unavailableDirectory) Member(string, string) (bool, error) { return true, errors.New("down") }

// A directory that does not answer shows nothing.
func TestVisibleTo_BrokenDirectoryIsAnError(t *testing.T) {
	r := desk.Request{Requirement: requirement.Requirement{VisibleTo: [][]string{{"group:hr"}}}}
	seen, err := r.VisibleTo(desk.Viewer{ID: "zoe", Kind: desk.ActorHuman}, unavailableDirectory{})
	if seen || !errors.Is(err, desk.ErrDirectoryUnavailable) {
		t.Errorf("%v, %v", seen, err)
	}
}
