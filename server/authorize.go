package server

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/server/authn"
	"github.com/fermata-go/fermata/server/internal/endpoint"
	"github.com/fermata-go/fermata/server/internal/problems"
)

// identify authenticates a request by session, or as a program.
func (s *Server) identify(r *http.Request) (authn.Principal, error) {
	return s.config.Auth.Authenticate(r)
}

// requireRole admits only callers with a role that the operation allows.
func (s *Server) requireRole(ctx huma.Context, next func(huma.Context)) {
	roles, guarded := endpoint.Roles(ctx.Operation())
	if !guarded { // open to all callers
		next(ctx)
		return
	}
	me := endpoint.Principal(ctx.Context())
	switch {
	case !endpoint.IsAuthenticated(ctx.Context()):
		s.respondProblem(ctx, problems.New("unauthenticated", "send a bearer token"))
	case !me.Has(roles...):
		if act, ok := endpoint.Action(ctx.Operation()); ok {
			endpoint.RecordForbidden(ctx.Context(), s.config.Executor, s.config.Log, ctx.Param("id"), act)
		}
		s.respondProblem(ctx, problems.New("forbidden", "one of these roles is required: %v", roles))
	default:
		next(ctx)
	}
}

func (s *Server) respondProblem(ctx huma.Context, p *problems.Problem) {
	s.metrics.CountRejected(p.Code)
	p.Rejected = true
	if err := huma.WriteErr(s.api, ctx, p.Status, p.Detail, p); err != nil {
		s.config.Log.Debug("writing a problem response failed", "err", err)
	}
}
