package people

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
)

func (h *Handlers) registerMe(to huma.API) {
	op := endpoint.New("me", http.MethodGet, api.Prefix+"/me", "Get the authenticated principal", append(slices.Clone(authn.Roles), authn.RoleFrontend)...)
	huma.Register(to, op, func(ctx context.Context, _ *struct{}) (*struct{ Body api.Me }, error) {
		p := endpoint.Principal(ctx)
		me := api.Me{
			Principal: p.ID, Name: p.Name, Account: p.Account, Roles: authn.RoleNames(p.Roles), Method: string(p.Auth.Method),
			AMR: p.Auth.AMR, ACR: p.Auth.ACR, Strength: string(p.Auth.Strength), At: endpoint.TimeOrNil(p.Auth.At), Until: endpoint.TimeOrNil(p.Auth.Until),
		}
		return &struct{ Body api.Me }{me}, nil
	})
}
