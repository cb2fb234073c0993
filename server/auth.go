package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/desk"
)

// Role is a permission level of a caller.
type Role string

// The roles. Admins may do everything.
const (
	RoleAgent    Role = "agent"    // start runs, create requests, read their results
	RoleApprover Role = "approver" // read requests and decide them
	RoleAuditor  Role = "auditor"  // read everything, change nothing
	RoleAdmin    Role = "admin"
)

// Roles lists all roles.
var Roles = []Role{RoleAgent, RoleApprover, RoleAuditor, RoleAdmin}

func roleNames(roles []Role) []string {
	names := make([]string, len(roles))
	for i, role := range roles {
		names[i] = string(role)
	}
	return names
}

// Principal is an authenticated caller.
type Principal struct {
	// Account is the tenant. A principal sees and changes only data of its account.
	Account string
	// ID identifies the principal in records: a person's subject, or the name of an API key.
	ID string
	// Name is the display name, if there is one. It has no effect on authorization.
	Name  string
	Roles []Role
	// Auth says how the principal was authenticated.
	Auth Auth
}

// Method is an authentication method.
type Method string

// The authentication methods.
const (
	MethodAPIKey Method = "key"   // an API key
	MethodOIDC   Method = "oidc"  // a session after sign-in at the identity provider
	MethodToken  Method = "token" // a bearer token that the identity provider issued for this API
	MethodDev    Method = "dev"   // a session from a development link printed on this machine
)

// Auth says how a principal was authenticated. The zero value means unknown.
type Auth struct {
	Method Method
	// Credential is the id of the API key or session; "" if there is none.
	Credential string
	// AMR and ACR are the identity provider's amr and acr claims, if it sent them.
	AMR []string
	ACR string
	// Strength is the authentication strength that policies compare with their minimum.
	Strength desk.Auth
	// At is when the person last authenticated; zero if unknown.
	At time.Time
	// Until is when the credential expires; zero if never.
	Until time.Time
}

// hardwareMethods are the methods (RFC 8176, and "fido" of Microsoft's provider) that require a
// device that cannot be copied.
var hardwareMethods = []string{"hwk", "sc", "fido"}

// strengthOf maps the provider's claims to an authentication strength. acr maps the provider's
// classes, if it has any; the stronger result wins.
func (a Auth) strengthOf(acr map[string]desk.Auth) desk.Auth {
	strength := desk.AuthSSO
	switch {
	case slices.ContainsFunc(a.AMR, func(m string) bool { return slices.Contains(hardwareMethods, m) }):
		strength = desk.AuthHardware
	// two methods are not two factors; only the provider can say so
	case slices.Contains(a.AMR, "mfa"):
		strength = desk.AuthMFA
	}
	if by := acr[a.ACR]; by != "" && by.AtLeast(strength) {
		return by
	}
	return strength
}

// Maximum sizes of provider claims, in bytes. No registered value is longer.
const (
	maxAMR, maxAMRs = 32, 8
	maxACR          = 128
)

// via describes for the audit record how a decision was authenticated: "http/oidc id=session_…
// amr=otp,pwd acr=urn:example:gold".
func (a Auth) via() string {
	via := "http"
	if a.Method != "" {
		via += "/" + string(a.Method)
	}
	if a.Credential != "" {
		via += " id=" + a.Credential
	}
	var amr []string
	for _, m := range a.AMR {
		if isVisibleToken(m, maxAMR) && !strings.Contains(m, ",") && len(amr) < maxAMRs {
			amr = append(amr, m)
		}
	}
	if len(amr) > 0 {
		via += " amr=" + strings.Join(amr, ",")
	}
	if isVisibleToken(a.ACR, maxACR) {
		via += " acr=" + a.ACR
	}
	return via
}

// isVisibleToken reports whether a text is short and has only visible characters.
func isVisibleToken(text string, most int) bool {
	return text != "" && len(text) <= most && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Has reports whether the principal has one of the roles, or is an admin.
func (p Principal) Has(roles ...Role) bool {
	return slices.Contains(p.Roles, RoleAdmin) || slices.ContainsFunc(roles, func(role Role) bool { return slices.Contains(p.Roles, role) })
}

// actorKind returns the kind of actor for the audit record. A principal that may decide, or only
// reads, is a person.
func (p Principal) actorKind() desk.ActorKind {
	if slices.Contains(p.Roles, RoleAgent) && !p.Has(RoleApprover) {
		return desk.ActorAgent
	}
	return desk.ActorHuman
}

// from returns the principal as the actor of a command.
func (p Principal) from() desk.From {
	return desk.From{Actor: desk.Actor{ID: p.ID, Kind: p.actorKind(), Auth: p.Auth.Strength}, Via: p.Auth.via()}
}

// ErrUnauthenticated is returned if a request carries no valid credentials.
var ErrUnauthenticated = errors.New("server: not authenticated")

// Authenticator identifies the caller of a request. It returns ErrUnauthenticated if the
// credentials are missing or invalid. Any other error means that authentication is temporarily
// unavailable.
type Authenticator interface {
	Authenticate(r *http.Request) (Principal, error)
}

// AuthenticatorFunc adapts a function to an Authenticator.
type AuthenticatorFunc func(r *http.Request) (Principal, error)

// Authenticate calls f.
func (f AuthenticatorFunc) Authenticate(r *http.Request) (Principal, error) { return f(r) }

// errCrossOrigin is returned if a page of another origin made a browser send a request with a
// session.
var errCrossOrigin = errors.New("server: cross-origin request with a session")

// identify authenticates a request. A token that is sent must be valid, whatever else the request
// carries; a session counts only without a token.
func (s *Server) identify(r *http.Request) (Principal, error) {
	if s.sessions == nil || r.Header.Get("Authorization") != "" {
		return s.config.Auth.Authenticate(r)
	}
	found, err := s.sessions.authenticate(r)
	switch {
	// a custom authenticator may use something other than a token
	case errors.Is(err, ErrUnauthenticated):
		return s.config.Auth.Authenticate(r)
	case err == nil && s.sessions.crossOrigin(r) != nil:
		return Principal{}, errCrossOrigin
	}
	return found.Who, err
}

type principalKey struct{}

// principalOf returns the principal of a request that requireRole admitted.
func principalOf(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal)
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
	if err := s.config.Executor.RecordForbidden(ctx, me.Account, request, act, me.from()); err != nil {
		s.config.Log.Error("audit write of a rejected action failed", "account", me.Account, "err", err)
	}
}

// requireRole admits only callers with a role that the operation allows.
func (s *Server) requireRole(ctx huma.Context, next func(huma.Context)) {
	roles, guarded := ctx.Operation().Metadata[rolesMetadata].([]Role)
	if !guarded { // open to all callers
		next(ctx)
		return
	}
	principal, ok := ctx.Context().Value(principalKey{}).(Principal)
	switch {
	case !ok:
		s.respondProblem(ctx, problem("unauthenticated", "send a bearer token"))
	case !principal.Has(roles...):
		if act, ok := ctx.Operation().Metadata[actionMetadata].(desk.CommandName); ok {
			s.recordForbidden(ctx.Context(), ctx.Param("id"), act)
		}
		s.respondProblem(ctx, problem("forbidden", "one of these roles is required: %v", roles))
	default:
		next(ctx)
	}
}

func (s *Server) respondProblem(ctx huma.Context, p *Problem) {
	s.metrics.countRejected(p.Code)
	p.rejected = true
	if err := huma.WriteErr(s.api, ctx, p.Status, p.Detail, p); err != nil {
		s.config.Log.Debug("writing a problem response failed", "err", err)
	}
}
