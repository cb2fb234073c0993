package authn

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
)

// Role is a permission level of a caller.
type Role string

// The roles. Admins may do everything.
const (
	RoleAgent    Role = "agent"    // start runs, create requests, read their results
	RoleApprover Role = "approver" // read requests and decide them
	RoleAuditor  Role = "auditor"  // read everything, change nothing
	RoleUser     Role = "user"     // talk to an assistant, and see one's own conversations only
	RoleAdmin    Role = "admin"
	// RoleFrontend is for API keys only: hold conversations for end users that the caller names.
	// Admins do not have it.
	RoleFrontend Role = "frontend"
)

// Roles lists the roles of people. API keys may also have RoleFrontend.
var Roles = []Role{RoleAgent, RoleApprover, RoleAuditor, RoleUser, RoleAdmin}

// RoleNames returns the roles as text.
func RoleNames(roles []Role) []string {
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
	// a session after sign-in with a password, for members
	MethodPassword Method = "password"
	// a session after sign-in with a passkey, for members
	MethodPasskey Method = "passkey"
	// a person whose account of a channel is linked, in process
	MethodLinked Method = "linked"
	MethodDev    Method = "dev" // a session from a development link printed on this machine
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
	Strength requirement.Auth
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
func (a Auth) strengthOf(acr map[string]requirement.Auth) requirement.Auth {
	strength := requirement.AuthSSO
	switch {
	case slices.ContainsFunc(a.AMR, func(m string) bool { return slices.Contains(hardwareMethods, m) }):
		strength = requirement.AuthHardware
	// two methods are not two factors; only the provider can say so
	case slices.Contains(a.AMR, "mfa"):
		strength = requirement.AuthMFA
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

// Via describes for the audit record how a decision was authenticated: "http/oidc id=session_…
// amr=otp,pwd acr=urn:example:gold".
func (a Auth) Via() string {
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

// ActorKind returns the kind of actor for the audit record. A principal that may decide, or only
// reads, is a person.
func (p Principal) ActorKind() desk.ActorKind {
	if slices.Contains(p.Roles, RoleAgent) && !p.Has(RoleApprover) {
		return desk.ActorAgent
	}
	return desk.ActorHuman
}

// SpeaksForUsers reports whether the principal holds conversations for end users that it names.
func (p Principal) SpeaksForUsers() bool { return slices.Contains(p.Roles, RoleFrontend) }

// IsUserName reports whether a text may name an end user.
func IsUserName(text string) bool { return isPrincipalName(text) && strings.TrimSpace(text) == text }

// From returns the principal as the actor of a command.
func (p Principal) From() desk.From {
	return desk.From{Actor: desk.Actor{ID: p.ID, Kind: p.ActorKind(), Auth: p.Auth.Strength}, Via: p.Auth.Via()}
}

// Viewer returns the principal as the viewer of a request.
func (p Principal) Viewer() desk.Viewer {
	return desk.Viewer{ID: p.ID, Kind: p.ActorKind(), Roles: RoleNames(p.Roles), Admin: p.Has()}
}

// ErrUnauthenticated is returned if a request carries no valid credentials.
var ErrUnauthenticated = errors.New("authn: not authenticated")

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

// ErrCrossOrigin is returned if a page of another origin made a browser send a request with a
// session.
var ErrCrossOrigin = errors.New("authn: cross-origin request with a session")

// identify authenticates a request. A token that is sent must be valid, whatever else the request
// carries; a session counts only without a token.
func (p *Sessions) identify(r *http.Request, programs Authenticator) (Principal, error) {
	if r.Header.Get("Authorization") != "" {
		return programs.Authenticate(r)
	}
	found, err := p.authenticate(r)
	switch {
	// a custom authenticator may use something other than a token
	case errors.Is(err, ErrUnauthenticated):
		return programs.Authenticate(r)
	case err == nil && p.crossOrigin(r) != nil:
		return Principal{}, ErrCrossOrigin
	}
	return found.Who, err
}
