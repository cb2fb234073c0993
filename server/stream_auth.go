package server

import (
	"errors"
	"net/http"
	"runtime/debug"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/server/authn"
	"github.com/fermata-go/fermata/server/internal/endpoint"
)

// stillAuthorized reports whether a request for an operation would still be admitted. It returns
// true while that is unknown. It recovers from panics itself.
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
	roles, _ := endpoint.Roles(op)
	return principal.Account == endpoint.Principal(r.Context()).Account && principal.Has(roles...)
}
