package server

import (
	"errors"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/store"
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

// errHidden is the response for a request that the caller may not see, and for one that does not
// exist.
func errHidden() *problems.Problem { return problems.Of(store.ErrNotFound) }

// requireVisible admits callers to the operations on a request that they may see. Others get the
// response for a request that does not exist.
func (s *Server) requireVisible(ctx huma.Context, next func(huma.Context)) {
	me := endpoint.Principal(ctx.Context())
	if me.Has() || !isRequestPath(ctx.Operation().Path) {
		next(ctx)
		return
	}
	id := ctx.Param("id")
	doc, visible, err := s.visibility.MaySeeID(ctx.Context(), me, id)
	if err == nil && doc == nil { // the same response as for a hidden one
		_, err = s.config.Executor.GetRequest(ctx.Context(), me.Account, id)
		visible = !errors.Is(err, store.ErrNotFound)
	}
	switch {
	case errors.Is(err, executor.ErrUnreadable), err == nil && visible: // the operation reports it
		next(ctx)
	case !visible && (err == nil || errors.Is(err, store.ErrNotFound)):
		s.respondProblem(ctx, errHidden())
	default:
		s.respondProblem(ctx, problems.Of(err))
	}
}

func isRequestPath(path string) bool {
	rest, ok := strings.CutPrefix(path, endpoint.RequestPath)
	return ok && (rest == "" || rest[0] == '/')
}

// stillAuthorized reports whether a request for an operation would still be admitted with the same
// roles. It returns true while that is unknown. It recovers from panics itself.
func (s *Server) stillAuthorized(r *http.Request, op *huma.Operation) (in bool) {
	defer func() {
		if recover() != nil {
			s.metrics.CountError("panic")
			s.config.Log.Error("authentication panicked", "stack", string(debug.Stack()))
			in = true
		}
	}()
	principal, err := s.identify(r)
	if err != nil {
		return !errors.Is(err, authn.ErrUnauthenticated)
	}
	before := endpoint.Principal(r.Context())
	if principal.Account != before.Account || principal.ID != before.ID {
		return false
	}
	roles, _ := endpoint.Roles(op)
	// the response may depend on any of the roles
	lost := slices.ContainsFunc(roles, func(role authn.Role) bool { return before.Has(role) && !principal.Has(role) })
	return !lost && principal.Has(roles...)
}
