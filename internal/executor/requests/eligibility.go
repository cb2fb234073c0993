package requests

import (
	"context"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/history"
	"github.com/fermata-go/fermata/internal/requirement"
)

// Routes returns the routes of requests by name. The one named "default" is always there.
func (s *Service) Routes() map[string]desk.Route {
	routes := map[string]desk.Route{defaultRouteName: defaultRouteFor(s.RequestTimeout(0), s.config.DefaultPage)}
	for name, route := range s.config.Routes() {
		routes[name] = route
	}
	return routes
}

// MayDecide returns nil if a person's decision on a request would count, or else an error that
// desk.Code knows.
func (s *Service) MayDecide(doc desk.Request, person string) error {
	return desk.CheckEligible(doc, person, s.DeskEnv(doc.Created).Directory)
}

// CanStandIn returns nil if a delegate can stand in for an absent person.
func (s *Service) CanStandIn(doc desk.Request, absent, delegate string) error {
	return desk.CanStandIn(doc, absent, delegate, s.DeskEnv(doc.Created).Directory)
}

// MaySee reports whether a caller may see a request.
func (s *Service) MaySee(doc desk.Request, viewer desk.Viewer) (bool, error) {
	return doc.VisibleTo(viewer, s.DeskEnv(doc.Created).Directory)
}

// GroupsOf returns the required groups that a person belongs to.
func (s *Service) GroupsOf(doc desk.Request, person string) ([]string, error) {
	return doc.GroupsOf(person, s.DeskEnv(doc.Created).Directory)
}

// AllowedVerbs returns the verbs of a request that are open to a person, or an error that desk.Code
// knows if no decision of theirs would count.
func (s *Service) AllowedVerbs(doc desk.Request, person string) ([]requirement.Verb, error) {
	return desk.AllowedVerbs(doc, person, s.DeskEnv(doc.Created).Directory)
}

// Delegates returns the people to whom a person can delegate a request. all is false if there may
// be others whom the directory does not list.
func (s *Service) Delegates(ctx context.Context, doc desk.Request, person string) (people []string, all bool, err error) {
	directory := s.DeskEnv(doc.Created).Directory
	lister, _ := directory.(desk.Lister)
	return desk.Delegates(ctx, doc, person, directory, lister)
}

// Preview returns what the decisions of a person on an open request would cause now, as the code
// that decides finds it.
func (s *Service) Preview(ctx context.Context, q docs.RequestView, person desk.Actor) ([]desk.Consequence, error) {
	if q.Request == nil || q.Request.State != desk.StateOpen {
		return nil, nil
	}
	env := s.DeskEnv(time.Now())
	if slices.Contains(q.Request.Requirement.Exclude, requirement.DutyPriorApprover) {
		var err error
		if env.PriorApprovers, err = history.New(s.docs, runOfRequest(q.InboxItem)).PriorApprovers(ctx, *q.Request, nil); err != nil {
			return nil, err
		}
	}
	return desk.Preview(*q.Request, person, env), nil
}
