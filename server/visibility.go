package server

import (
	"errors"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/server/internal/endpoint"
	"github.com/fermata-go/fermata/server/internal/problems"
	"github.com/fermata-go/fermata/store"
)

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
