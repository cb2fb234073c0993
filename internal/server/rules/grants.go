package rules

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy/grant"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/server/visibility"
)

type createGrantInput struct {
	ID             string `path:"id" maxLength:"512"`
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"256" doc:"Idempotency key: the same call with the same key creates one grant."`
	Body           api.CreateGrant
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

func (h *Handlers) registerGrants(to huma.API) {
	create := endpoint.New("create-grant", http.MethodPost, api.Prefix+"/requests/{id}/grant", "Create a bounded grant from your approval", authn.RoleApprover)
	endpoint.SetAction(create, executor.ActCreateGrant)
	huma.Register(to, create, h.createGrant)
	huma.Register(to, endpoint.New("list-grants", http.MethodGet, api.Prefix+"/grants", "List grants", authn.RoleApprover, authn.RoleAuditor), h.listGrants)
	huma.Register(to, endpoint.New("revoke-grant", http.MethodPost, api.Prefix+"/grants/{id}/revoke", "Revoke a grant", authn.RoleApprover), h.revokeGrant)
}

func (h *Handlers) createGrant(ctx context.Context, in *createGrantInput) (*grantOutput, error) {
	me := endpoint.Principal(ctx)
	terms := executor.GrantRequest{By: me.ID, Via: me.Auth.Via(), Auth: me.Auth.Strength, TTL: time.Duration(in.Body.Seconds) * time.Second, MaxUses: in.Body.Uses}
	if in.IdempotencyKey != "" {
		terms.Idempotency = endpoint.IdempotencyKey(in.IdempotencyKey, string(executor.ActCreateGrant), in.Body)
	}
	if in.Body.Budget != nil {
		terms.Budget = &grant.Budget{Of: in.Body.Budget.Field, Max: in.Body.Budget.Max}
	}
	if len(in.Body.Relax) > 0 {
		if err := json.Unmarshal(in.Body.Relax, &terms.Relax); err != nil {
			return nil, problems.New("bad_request", "relax must be an object of constraints")
		}
	}
	g, err := h.Executor.CreateGrant(ctx, me.Account, in.ID, terms)
	if err != nil {
		return nil, problems.Of(err)
	}
	one, _, err := h.shownGrant(ctx, g)
	if err != nil {
		return nil, problems.Of(err)
	}
	return &grantOutput{one}, nil
}

// shownGrant returns a grant as the caller may see it. A grant is visible to the audience of its
// request.
func (h *Handlers) shownGrant(ctx context.Context, g executor.Grant) (api.Grant, bool, error) {
	me, one := endpoint.Principal(ctx), grantOf(g)
	doc, visible, err := h.Visibility.MaySeeID(ctx, me, g.Request)
	if err != nil || !visible || !visibility.Masks(me, doc) {
		return one, visible, err
	}
	q, err := h.Executor.GetRequest(ctx, me.Account, g.Request)
	if err == nil {
		one.Args = visibility.MaskConstraints(one.Args, q)
	}
	return one, visible, err
}

func (h *Handlers) listGrants(ctx context.Context, _ *struct{}) (*grantsOutput, error) {
	list, err := h.Executor.ListGrants(ctx, endpoint.Principal(ctx).Account)
	if err != nil {
		return nil, problems.Of(err)
	}
	out := new(grantsOutput)
	out.Body.Items = []api.Grant{}
	for _, g := range list {
		one, visible, err := h.shownGrant(ctx, g)
		if err != nil {
			return nil, problems.Of(err)
		}
		if visible {
			out.Body.Items = append(out.Body.Items, one)
		}
	}
	return out, nil
}

func (h *Handlers) revokeGrant(ctx context.Context, in *grantInput) (*struct{}, error) {
	me := endpoint.Principal(ctx)
	if err := h.Executor.RevokeGrant(ctx, me.Account, in.ID, me.From()); err != nil {
		return nil, problems.Of(err)
	}
	return nil, nil
}

func grantOf(g executor.Grant) api.Grant {
	out := api.Grant{
		ID: g.ID, By: g.By, Request: g.Request, Tool: g.Scope.Tool, Graph: g.Scope.Graph, Environment: g.Scope.Environment, Requester: g.Scope.Requester,
		Since: g.Since, Until: g.NotAfter, Uses: g.Usage.Uses, MaxUses: g.MaxUses, Spent: g.Usage.Amount,
	}
	if args, err := json.Marshal(g.Args); err == nil { // a map of constraints can always be encoded
		out.Args = args
	}
	if g.Budget != nil {
		out.Budget = &api.Budget{Field: g.Budget.Of, Max: g.Budget.Max}
	}
	if !g.Revoked.IsZero() {
		out.Revoked = &g.Revoked
	}
	return out
}
