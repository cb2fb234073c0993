package server

import (
	"context"
	"errors"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/server/internal/endpoint"
	"github.com/fermata-go/fermata/server/internal/problems"
	"github.com/fermata-go/fermata/store"
)

// errHidden is the response for a request that the caller may not see, and for one that does not
// exist.
func errHidden() *problems.Problem { return problems.Of(store.ErrNotFound) }

// requestPath is the path of the operations on one request.
const requestPath = api.Prefix + "/requests/{id}"

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
	rest, ok := strings.CutPrefix(path, requestPath)
	return ok && (rest == "" || rest[0] == '/')
}

// checkTargets rejects answers to requests that the caller may not see.
func (s *Server) checkTargets(ctx context.Context, request executor.RunRequest) error {
	me := endpoint.Principal(ctx)
	if me.Has() {
		return nil
	}
	for id := range request.Targets {
		if _, visible, err := s.visibility.MaySeeID(ctx, me, id); err != nil {
			return problems.Of(err)
		} else if !visible {
			return problems.ForResult(store.ResultNotFound)
		}
	}
	if request.Value == nil || request.StateKey == "" {
		return nil
	}
	view, err := s.config.Executor.GetRun(ctx, me.Account, request.StateKey)
	if errors.Is(err, executor.ErrRunNotFound) { // the executor answers repetitions
		return nil
	}
	if err != nil {
		return problems.Of(err)
	}
	shown, err := s.visibility.Requests(me, view)
	if err != nil {
		return problems.Of(err)
	}
	open := func(list []executor.RequestView) (n int) {
		for _, q := range list {
			if q.State == store.InterruptPending {
				n++
			}
		}
		return n
	}
	switch visible, all := open(shown), open(view.Interrupts); {
	case visible == all:
		return nil
	case visible == 0:
		return problems.Of(&executor.RefusedError{Result: store.ResultWithdrawn})
	}
	return problems.New("bad_request", "name the request that is answered in resumeTargets")
}
