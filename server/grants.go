package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/policy/grant"
)

type rememberInput struct {
	ID   string `path:"id" maxLength:"512"`
	Once string `header:"Idempotency-Key" maxLength:"256" doc:"The same wish with the same key is one grant."`
	Body api.Remember
}

type grantOutput struct{ Body api.Grant }

type grantsOutput struct {
	Body struct {
		Items []api.Grant `json:"items"`
	}
}

type grantInput struct {
	ID string `path:"id" maxLength:"512"`
}

func (s *Server) registerGrants() {
	remember := operation("remember-request", http.MethodPost, api.Prefix+"/requests/{id}/remember", "Have a yes of yours remembered within bounds", Approver)
	remember.Metadata[actsAs] = executor.Remembers
	huma.Register(s.api, remember, s.remember)
	huma.Register(s.api, operation("list-grants", http.MethodGet, api.Prefix+"/grants", "What is remembered", Approver, Auditor), s.grants)
	huma.Register(s.api, operation("revoke-grant", http.MethodPost, api.Prefix+"/grants/{id}/revoke", "Have people asked again", Approver), s.revoke)
}

func (s *Server) remember(ctx context.Context, in *rememberInput) (*grantOutput, error) {
	me := who(ctx)
	terms := executor.Remember{By: me.ID, Via: me.Auth.via(), Auth: me.Auth.Strength, TTL: time.Duration(in.Body.Seconds) * time.Second, MaxUses: in.Body.Uses}
	if in.Once != "" {
		terms.Once = onceFor(in.Once, string(executor.Remembers), in.Body)
	}
	if in.Body.Budget != nil {
		terms.Budget = &grant.Budget{Of: in.Body.Budget.Of, Max: in.Body.Budget.Max}
	}
	if len(in.Body.Relax) > 0 {
		if err := json.Unmarshal(in.Body.Relax, &terms.Relax); err != nil {
			return nil, problem("bad_request", "relax is no object of constraints")
		}
	}
	g, err := s.config.Executor.Remember(ctx, me.Account, in.ID, terms)
	if err != nil {
		return nil, explain(err)
	}
	return &grantOutput{grantOf(g)}, nil
}

func (s *Server) grants(ctx context.Context, _ *struct{}) (*grantsOutput, error) {
	list, err := s.config.Executor.Grants(ctx, who(ctx).Account)
	if err != nil {
		return nil, explain(err)
	}
	out := new(grantsOutput)
	out.Body.Items = []api.Grant{}
	for _, g := range list {
		out.Body.Items = append(out.Body.Items, grantOf(g))
	}
	return out, nil
}

func (s *Server) revoke(ctx context.Context, in *grantInput) (*struct{}, error) {
	me := who(ctx)
	if err := s.config.Executor.Revoke(ctx, me.Account, in.ID, me.from()); err != nil {
		return nil, explain(err)
	}
	return nil, nil
}

func grantOf(g executor.Grant) api.Grant {
	out := api.Grant{
		ID: g.ID, By: g.By, Request: g.From, Tool: g.Scope.Tool, Graph: g.Scope.Graph, Environment: g.Scope.Environment, Requester: g.Scope.Requester,
		Since: g.Since, Until: g.NotAfter, Uses: g.Usage.Uses, MaxUses: g.MaxUses, Spent: g.Usage.Amount,
	}
	if args, err := json.Marshal(g.Args); err == nil { // a map of constraints always has a JSON
		out.Args = args
	}
	if g.Budget != nil {
		out.Budget = &api.Budget{Of: g.Budget.Of, Max: g.Budget.Max}
	}
	if !g.Revoked.IsZero() {
		out.Revoked = &g.Revoked
	}
	return out
}
