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

// Role is what a caller may do.
type Role string

// The roles. Admins may do everything.
const (
	RoleAgent    Role = "agent"    // start runs, ask for decisions, read what becomes of them
	RoleApprover Role = "approver" // decode requests and decide on them
	RoleAuditor  Role = "auditor"  // decode everything, change nothing
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

// Principal is who calls.
type Principal struct {
	// Account is the tenant. Everything that a principal sees and does is within it.
	Account string
	// ID is who it is, as it stands in records: a person's subject, or the name of a key.
	ID string
	// Name is what people call them, if anybody said so. Nothing goes by it.
	Name  string
	Roles []Role
	// Auth is how they proved who they are.
	Auth Auth
}

// Method is a way to prove who one is.
type Method string

// The ways to prove who one is.
const (
	MethodAPIKey Method = "key"   // an API key
	MethodOIDC   Method = "oidc"  // a session of somebody who signed in at the identity provider
	MethodToken  Method = "token" // a bearer token that the identity provider made for this API
	MethodDev    Method = "dev"   // a session from a link that was printed on this machine
)

// Auth is how a principal proved who they are. The zero value says nothing about it.
type Auth struct {
	Method Method
	// Credential is the id of the key or the session; "" if there is none.
	Credential string
	// AMR and ACR are how the identity provider made sure (the claims amr and acr), if it says so.
	AMR []string
	ACR string
	// Strength is how much that is worth to policies which ask for a certain strength.
	Strength desk.Auth
	// At is when the person was asked for a proof last; zero if nobody says.
	At time.Time
	// Until is when this ends by itself; zero if never.
	Until time.Time
}

// hardwareMethods are the methods (RFC 8176, and "fido" of Microsoft's provider) for which somebody needs a thing that cannot be copied.
var hardwareMethods = []string{"hwk", "sc", "fido"}

// strengthOf is what the word of an identity provider is worth. acr says what its classes stand for, if it has any; the stronger counts.
func (a Auth) strengthOf(acr map[string]desk.Auth) desk.Auth {
	strength := desk.AuthSSO
	switch {
	case slices.ContainsFunc(a.AMR, func(m string) bool { return slices.Contains(hardwareMethods, m) }):
		strength = desk.AuthHardware
	case slices.Contains(a.AMR, "mfa"): // two methods are not two factors: that is for the provider to say
		strength = desk.AuthMFA
	}
	if by := acr[a.ACR]; by != "" && by.AtLeast(strength) {
		return by
	}
	return strength
}

// Sizes of what identity providers say, in bytes. What is longer is none of the values that anybody has agreed on.
const (
	maxAMR, maxAMRs = 32, 8
	maxACR          = 128
)

// via is how a decision reached us, for the record: "http/oidc id=session_… amr=otp,pwd acr=urn:example:gold".
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

// isVisibleToken reports whether a text is short, visible and in one piece.
func isVisibleToken(text string, most int) bool {
	return text != "" && len(text) <= most && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Has reports whether the principal has one of some roles, or is an admin.
func (p Principal) Has(roles ...Role) bool {
	return slices.Contains(p.Roles, RoleAdmin) || slices.ContainsFunc(roles, func(role Role) bool { return slices.Contains(p.Roles, role) })
}

// kind is what the principal is to the record. Whoever may decide is a person, and so is who only reads.
func (p Principal) actorKind() desk.ActorKind {
	if slices.Contains(p.Roles, RoleAgent) && !p.Has(RoleApprover) {
		return desk.ActorAgent
	}
	return desk.ActorHuman
}

// from is the principal as one who does something.
func (p Principal) from() desk.From {
	return desk.From{Actor: desk.Actor{ID: p.ID, Kind: p.actorKind(), Auth: p.Auth.Strength}, Via: p.Auth.via()}
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

// errCrossOrigin says that a page of somebody else made a browser send a request with a session.
var errCrossOrigin = errors.New("server: a request with a session from another origin")

// identify finds out who calls. A token that is sent must be good, whatever else comes along; a session counts where there is no token.
func (s *Server) identify(r *http.Request) (Principal, error) {
	if s.sessions == nil || r.Header.Get("Authorization") != "" {
		return s.config.Auth.Authenticate(r)
	}
	found, err := s.sessions.authenticate(r)
	switch {
	case errors.Is(err, ErrUnauthenticated): // an authenticator of somebody else may go by something else
		return s.config.Auth.Authenticate(r)
	case err == nil && s.sessions.crossOrigin(r) != nil:
		return Principal{}, errCrossOrigin
	}
	return found.Who, err
}

type principalKey struct{}

// principalOf is the principal of a request that has passed the door.
func principalOf(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal)
	return p
}

// rolesMetadata is the metadata of an operation that says who may call it.
const rolesMetadata = "fermata-roles"

// actionMetadata is the metadata of an operation on a request, {id}, that says what it does with it: whoever may not is in the audit log.
const actionMetadata = "fermata-act"

// actionDecide is the act of a decision of which nobody has read yet what it says.
const actionDecide desk.CommandName = "decide"

// noteForbidden has it in the audit log that the caller does not have the role for what they wanted to do. They are refused even if it cannot be written.
func (s *Server) recordForbidden(ctx context.Context, request string, act desk.CommandName) {
	me := principalOf(ctx)
	if err := s.config.Executor.RecordForbidden(ctx, me.Account, request, act, me.from()); err != nil {
		s.config.Log.Error("a refusal is not in the audit log", "account", me.Account, "err", err)
	}
}

// door lets only those in who may call the operation.
func (s *Server) requireRole(ctx huma.Context, next func(huma.Context)) {
	roles, guarded := ctx.Operation().Metadata[rolesMetadata].([]Role)
	if !guarded { // for everybody
		next(ctx)
		return
	}
	principal, ok := ctx.Context().Value(principalKey{}).(Principal)
	switch {
	case !ok:
		s.respondProblem(ctx, problem("unauthenticated", "send a token"))
	case !principal.Has(roles...):
		if act, ok := ctx.Operation().Metadata[actionMetadata].(desk.CommandName); ok {
			s.recordForbidden(ctx.Context(), ctx.Param("id"), act)
		}
		s.respondProblem(ctx, problem("forbidden", "this needs one of the roles %v", roles))
	default:
		next(ctx)
	}
}

func (s *Server) respondProblem(ctx huma.Context, p *Problem) {
	s.metrics.countRejected(p.Code)
	p.rejected = true
	if err := huma.WriteErr(s.api, ctx, p.Status, p.Detail, p); err != nil {
		s.config.Log.Debug("a refusal could not be written", "err", err)
	}
}
