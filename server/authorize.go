package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/server/authn"
	"github.com/fermata-go/fermata/server/internal/problems"
)

// identify authenticates a request by session, or as a program.
func (s *Server) identify(r *http.Request) (authn.Principal, error) {
	return s.config.Auth.Authenticate(r)
}

type principalKey struct{}

// principalOf returns the principal of a request that requireRole admitted.
func principalOf(ctx context.Context) authn.Principal {
	p, _ := ctx.Value(principalKey{}).(authn.Principal)
	return p
}

// rolesMetadata is the operation metadata that lists the allowed roles.
const rolesMetadata = "fermata-roles"

// actionMetadata is the operation metadata that names the action on the request {id}. Attempts
// without the required role are audited under that name.
const actionMetadata = "fermata-act"

// actionDecide is the action of a decision whose body has not been read yet.
const actionDecide desk.CommandName = "decide"

// recordForbidden writes to the audit log that the caller lacks the role for an action. The caller
// is rejected even if the write fails.
func (s *Server) recordForbidden(ctx context.Context, request string, act desk.CommandName) {
	me := principalOf(ctx)
	if err := s.config.Executor.RecordForbidden(ctx, me.Account, request, act, me.From()); err != nil {
		s.config.Log.Error("audit write of a rejected action failed", "account", me.Account, "err", err)
	}
}

// requireRole admits only callers with a role that the operation allows.
func (s *Server) requireRole(ctx huma.Context, next func(huma.Context)) {
	roles, guarded := ctx.Operation().Metadata[rolesMetadata].([]authn.Role)
	if !guarded { // open to all callers
		next(ctx)
		return
	}
	principal, ok := ctx.Context().Value(principalKey{}).(authn.Principal)
	switch {
	case !ok:
		s.respondProblem(ctx, problems.New("unauthenticated", "send a bearer token"))
	case !principal.Has(roles...):
		if act, ok := ctx.Operation().Metadata[actionMetadata].(desk.CommandName); ok {
			s.recordForbidden(ctx.Context(), ctx.Param("id"), act)
		}
		s.respondProblem(ctx, problems.New("forbidden", "one of these roles is required: %v", roles))
	default:
		next(ctx)
	}
}

func (s *Server) respondProblem(ctx huma.Context, p *problems.Problem) {
	s.metrics.countRejected(p.Code)
	p.Rejected = true
	if err := huma.WriteErr(s.api, ctx, p.Status, p.Detail, p); err != nil {
		s.config.Log.Debug("writing a problem response failed", "err", err)
	}
}
