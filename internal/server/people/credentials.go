package people

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/store"
)

// credentialList is a list of credentials in the API.
type credentialList struct {
	path, name string // name is the plural
	of         authn.CredentialType
	mine       bool // only those of the caller
	roles      []authn.Role
}

var credentialLists = []credentialList{
	{path: "/keys", name: "keys", of: authn.TypeKey, roles: []authn.Role{authn.RoleAdmin}},
	{path: "/sessions", name: "sessions", of: authn.TypeSession, roles: []authn.Role{authn.RoleAdmin}},
	{path: "/invitations", name: "invitations", of: authn.TypeInvitation, roles: []authn.Role{authn.RoleAdmin}},
	{path: "/me/sessions", name: "my-sessions", of: authn.TypeSession, mine: true, roles: authn.Roles},
}

func (h *Handlers) registerCredentials(to huma.API) {
	for _, l := range credentialLists {
		text := map[bool]string{false: "", true: "your "}[l.mine] + strings.TrimPrefix(l.name, "my-")
		huma.Register(to, endpoint.New("list-"+l.name, http.MethodGet, api.Prefix+l.path, "List "+text+" that are valid", l.roles...),
			func(ctx context.Context, _ *struct{}) (*endpoint.Page[api.Credential], error) {
				return h.listCredentials(ctx, l)
			})
		end := endpoint.New("end-"+strings.TrimSuffix(l.name, "s"), http.MethodDelete, api.Prefix+l.path+"/{id}", "Revoke one of "+text, l.roles...)
		end.DefaultStatus = http.StatusNoContent
		huma.Register(to, end, func(ctx context.Context, in *memberInput) (*struct{}, error) {
			return nil, h.endCredential(ctx, l, in.ID)
		})
	}
}

// personOf returns the person whose credentials a list has; "" for all.
func (h *Handlers) personOf(ctx context.Context, l credentialList) (person string, err error) {
	me := endpoint.Principal(ctx)
	switch {
	case h.Sessions == nil, l.mine && !authn.IsSession(me.Auth.Credential):
		return "", store.ErrNotFound
	case l.mine:
		return me.ID, nil
	}
	return "", nil
}

func (h *Handlers) listCredentials(ctx context.Context, l credentialList) (*endpoint.Page[api.Credential], error) {
	me := endpoint.Principal(ctx)
	person, err := h.personOf(ctx, l)
	if err != nil {
		return nil, problems.Of(err)
	}
	list, err := h.Sessions.ValidCredentials(ctx, me.Account, l.of, person)
	if err != nil {
		return nil, problems.Of(err)
	}
	return endpoint.Paged(list, len(list), func(c store.Credential) api.Credential {
		return api.Credential{ID: c.ID, Name: c.Name, Roles: authn.RoleNames(authn.RolesOf(c)), CreatedAt: c.Created, ExpiresAt: endpoint.TimeOrNil(c.Expires), Current: c.ID == me.Auth.Credential}
	}, nil)
}

func (h *Handlers) endCredential(ctx context.Context, l credentialList, id string) error {
	me := endpoint.Principal(ctx)
	person, err := h.personOf(ctx, l)
	if err == nil {
		err = h.Sessions.EndCredential(ctx, me.Account, l.of, person, id, me)
	}
	if err != nil {
		return problems.Of(err)
	}
	return nil
}
