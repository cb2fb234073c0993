package server

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/server/authn"
)

func (s *Server) registerMe() {
	op := operation("me", http.MethodGet, api.Prefix+"/me", "Get the authenticated principal", authn.RoleAgent, authn.RoleApprover, authn.RoleAuditor)
	huma.Register(s.api, op, func(ctx context.Context, _ *struct{}) (*struct{ Body api.Me }, error) {
		p := principalOf(ctx)
		me := api.Me{
			Principal: p.ID, Name: p.Name, Account: p.Account, Roles: authn.RoleNames(p.Roles), Method: string(p.Auth.Method),
			AMR: p.Auth.AMR, ACR: p.Auth.ACR, Strength: string(p.Auth.Strength), At: orNil(p.Auth.At), Until: orNil(p.Auth.Until),
		}
		return &struct{ Body api.Me }{me}, nil
	})
}

func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
