package server

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// Role is what a caller may do.
type Role string

// The roles. Admins may do everything.
const (
	Agent    Role = "agent"    // start runs, ask for decisions, read what becomes of them
	Approver Role = "approver" // read requests and decide on them
	Auditor  Role = "auditor"  // read everything, change nothing
	Admin    Role = "admin"
)

// Roles lists all roles.
var Roles = []Role{Agent, Approver, Auditor, Admin}

// Principal is who calls.
type Principal struct {
	// Account is the tenant. Everything that a principal sees and does is within it.
	Account string
	// ID is who it is, as it stands in records: a person's subject, or the name of a key.
	ID    string
	Roles []Role
}

// Has reports whether the principal has one of some roles.
func (p Principal) Has(roles ...Role) bool {
	for _, role := range append(roles, Admin) {
		if slices.Contains(p.Roles, role) {
			return true
		}
	}
	return false
}

// ErrUnauthenticated says that a request carries no valid credentials.
var ErrUnauthenticated = errors.New("server: not signed in")

// Authenticator finds out who calls. It returns ErrUnauthenticated if nobody knows; any other error means that it could not be found out now.
type Authenticator interface {
	Authenticate(r *http.Request) (Principal, error)
}

// AuthenticatorFunc makes an authenticator of a function.
type AuthenticatorFunc func(r *http.Request) (Principal, error)

// Authenticate calls f.
func (f AuthenticatorFunc) Authenticate(r *http.Request) (Principal, error) { return f(r) }

type principalKey struct{}

// who is the principal of a request that has passed the door.
func who(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal)
	return p
}

// allowed is the metadata of an operation that says who may call it.
const allowed = "fermata-roles"

// door lets only those in who may call the operation.
func (s *Server) door(ctx huma.Context, next func(huma.Context)) {
	roles, guarded := ctx.Operation().Metadata[allowed].([]Role)
	if !guarded { // for everybody
		next(ctx)
		return
	}
	principal, ok := ctx.Context().Value(principalKey{}).(Principal)
	switch {
	case !ok:
		s.refuse(ctx, problem("unauthenticated", "send a token"))
	case !principal.Has(roles...):
		s.refuse(ctx, problem("forbidden", "this needs one of the roles %v", roles))
	default:
		next(ctx)
	}
}

func (s *Server) refuse(ctx huma.Context, p *Problem) {
	s.metrics.refused(p.Code)
	if err := huma.WriteErr(s.api, ctx, p.Status, p.Detail, p); err != nil {
		s.config.Log.Debug("a refusal could not be written", "err", err)
	}
}
