package server

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/desk"
)

// Me is who calls, as the server knows them.
type Me struct {
	Principal string     `json:"principal" doc:"Who you are in records."`
	Name      string     `json:"name,omitempty" doc:"What people call you."`
	Account   string     `json:"account"`
	Roles     []Role     `json:"roles"`
	Method    Method     `json:"method,omitempty" doc:"How you proved who you are." enum:"key,oidc,token,dev"`
	AMR       []string   `json:"amr,omitempty" doc:"How the identity provider made sure (RFC 8176)."`
	ACR       string     `json:"acr,omitempty" doc:"How sure the identity provider is."`
	Strength  desk.Auth  `json:"strength,omitempty" doc:"What that is worth to policies."`
	At        *time.Time `json:"at,omitempty" doc:"When you were asked for a proof last."`
	Until     *time.Time `json:"until,omitempty" doc:"When this ends by itself. A session that is not used ends before."`
}

func (s *Server) registerMe() {
	op := operation("me", http.MethodGet, api.Prefix+"/me", "Who you are here, how that is known, and until when", Agent, Approver, Auditor)
	huma.Register(s.api, op, func(ctx context.Context, _ *struct{}) (*struct{ Body Me }, error) {
		p := who(ctx)
		me := Me{
			Principal: p.ID, Name: p.Name, Account: p.Account, Roles: p.Roles,
			Method: p.Auth.Method, AMR: p.Auth.AMR, ACR: p.Auth.ACR, Strength: p.Auth.Strength, At: orNil(p.Auth.At), Until: orNil(p.Auth.Until),
		}
		return &struct{ Body Me }{me}, nil
	})
}

func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
