package server

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/fermata-go/fermata/server/authn"
	"github.com/fermata-go/fermata/server/internal/stream"
)

// stream answers an operation with an event stream: show is called after the operation has
// returned. A stream stays open for hours, and the call stack between the middleware and an
// operation needs four times the memory of a stream.
//
// The stream ends when its client is no longer authorized. Other responses are too short for that
// to matter; a stream would outlive the session or key it was opened with.
func (s *Server) stream(hctx huma.Context, show func(context.Context, *stream.Writer)) {
	r, w := humago.Unwrap(hctx)
	seen, ctx, out := w.(*statusWriter), hctx.Context(), stream.Open(w, s.config.Limits.WriteTimeout)
	roles, _ := hctx.Operation().Metadata[rolesMetadata].([]authn.Role)
	if r.Method == http.MethodHead { // no body is expected
		return
	}
	seen.stream = func() {
		ctx, end := context.WithCancel(ctx)
		defer end()
		defer stream.Recheck(s.config.Limits.AuthRecheck, func() bool { return s.stillAuthorized(r, roles) }, end)()
		show(ctx, out)
	}
}

// stillAuthorized reports whether a request would still be admitted. It returns true while that is
// unknown. It recovers from panics itself.
func (s *Server) stillAuthorized(r *http.Request, roles []authn.Role) (in bool) {
	defer func() {
		if recover() != nil {
			s.metrics.errors.WithLabelValues("panic").Inc()
			s.config.Log.Error("authentication panicked", "stack", string(debug.Stack()))
			in = true
		}
	}()
	principal, err := s.identify(r)
	if err != nil {
		return !errors.Is(err, authn.ErrUnauthenticated)
	}
	return principal.Account == principalOf(r.Context()).Account && principal.Has(roles...)
}
