// Package endpoint has the parts that the operations of the API share: their description with the
// required roles, the principal of a call, pages and cursors.
//
// A package of handlers has a struct of its dependencies with a method Register, which adds its
// operations:
//
//	func (h *Handlers) Register(to huma.API) {
//		huma.Register(to, endpoint.New("list-runs", http.MethodGet, api.Prefix+"/runs", "List runs", authn.RoleAgent), h.list)
//	}
package endpoint

import (
	"context"
	"log/slog"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
)

// RequestPath is the path of the operations on one request. The server calls them only for requests
// that the caller may see.
const RequestPath = api.Prefix + "/requests/{id}"

// ComponentPrefix is the path of named schemas in the OpenAPI document.
const ComponentPrefix = "#/components/schemas/"

const (
	rolesMetadata  = "fermata-roles"
	actionMetadata = "fermata-act"
)

// New describes an operation that callers with one of the roles may call. Without roles it is open
// to all callers.
func New(id, method, path, summary string, roles ...authn.Role) huma.Operation {
	op := huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, Metadata: map[string]any{}}
	if len(roles) > 0 {
		op.Metadata[rolesMetadata] = roles
		op.Security = []map[string][]string{{"bearer": {}}, {"session": {}}}
	}
	return op
}

// Roles returns the roles that an operation requires; ok is false if it is open to all callers.
func Roles(op *huma.Operation) (roles []authn.Role, ok bool) {
	roles, ok = op.Metadata[rolesMetadata].([]authn.Role)
	return roles, ok
}

// SetAction names the action of an operation on the request {id}. Attempts without the required
// role are audited under that name.
func SetAction(op huma.Operation, action desk.CommandName) { op.Metadata[actionMetadata] = action }

// Action returns the action of an operation, if it has one.
func Action(op *huma.Operation) (action desk.CommandName, ok bool) {
	action, ok = op.Metadata[actionMetadata].(desk.CommandName)
	return action, ok
}

// ActionDecide is the action of a decision whose body has not been read yet.
const ActionDecide desk.CommandName = "decide"

type principalKey struct{}

// WithPrincipal returns a context of an authenticated call.
func WithPrincipal(ctx context.Context, p authn.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// Principal returns the principal of an authenticated call; the zero value for an anonymous one.
func Principal(ctx context.Context) authn.Principal {
	p, _ := ctx.Value(principalKey{}).(authn.Principal)
	return p
}

// IsAuthenticated reports whether a call has a principal.
func IsAuthenticated(ctx context.Context) bool {
	_, ok := ctx.Value(principalKey{}).(authn.Principal)
	return ok
}

// RecordForbidden writes to the audit log that the caller lacks the role for an action. The caller
// is rejected even if the write fails.
func RecordForbidden(ctx context.Context, e *executor.Executor, log *slog.Logger, request string, action desk.CommandName) {
	me := Principal(ctx)
	if err := e.RecordForbidden(ctx, me.Account, request, action, me.From()); err != nil {
		log.Error("audit write of a rejected action failed", "account", me.Account, "err", err)
	}
}

// TimeOrNil returns nil for the zero time, which JSON would not omit.
func TimeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
