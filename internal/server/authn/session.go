package authn

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
)

// A session exists after a person signed in. The browser keeps it, sealed, in a cookie; the store
// keeps a credential with the same id. Both are required. So every replica accepts a session, and
// ends it when the credential is revoked.
type session struct {
	ID     string
	Secret string // the store has its hash
	Who    Principal
	// Seen is when the cookie was written. An unused session ends early.
	Seen time.Time
}

const (
	sessionIDKind = "session" // prefix of session ids
	sessionCookie = "fermata"
	sessionLabel  = "session cookie"
	// SessionCookie is the name of the session cookie in a browser that uses TLS.
	SessionCookie = hostPrefix + sessionCookie
	// hostPrefix restricts a cookie to this host and to TLS.
	hostPrefix = "__Host-"
	// maxCookie is the maximum cookie size of browsers, in bytes.
	maxCookie = 3800
)

// errCookieTooLong is returned if browsers would not keep a cookie.
var errCookieTooLong = errors.New("authn: the claims of this person are too long for a session cookie")

// errProofUsed is returned for a sign-in proof that was already used.
var errProofUsed = errors.New("authn: this sign-in was already used")

// createSession creates a session. Its id is derived from the proof, and the store accepts an id
// once: a second sign-in with the same proof returns errProofUsed on every replica.
func (p *Sessions) createSession(ctx context.Context, who Principal, proof string) (session, error) {
	now := p.now()
	who.Auth.Until = now.Add(p.Lifetime).Truncate(time.Second)
	who.Auth.Credential = ident.Derive(sessionIDKind, proof)
	s := session{ID: who.Auth.Credential, Secret: rand.Text(), Who: who, Seen: now}
	if value, err := p.sealCookie(sessionLabel, s); err != nil || len(value) > maxCookie {
		return s, errors.Join(errCookieTooLong, err)
	}
	roles := RoleNames(who.Roles)
	line, err := s.auditLine(audit.SessionBegun{Session: s.ID, Roles: roles, Until: audit.TimestampOf(who.Auth.Until)})
	if err != nil {
		return s, err
	}
	err = p.Credentials.AddCredential(ctx, store.Credential{
		ID: s.ID, Account: who.Account, Name: who.ID, Role: strings.Join(roles, ","), Hash: hashOf(s.Secret), Expires: who.Auth.Until,
	}, line)
	if errors.Is(err, store.ErrExists) {
		return s, errProofUsed
	}
	return s, err
}

// auditLine returns the audit record of a session, with its person as the actor.
func (s session) auditLine(body audit.Body) (store.Writes, error) {
	auth := s.Who.Auth
	actor := audit.Actor{Principal: s.Who.ID, Kind: audit.ActorPerson, Via: auth.Via(), Auth: string(auth.Strength), MFA: auth.Strength.AtLeast(requirement.AuthMFA)}
	line, err := audit.NewLine(s.Who.Account, actor, audit.Location{}, body)
	return store.Writes{Audit: [][]byte{line}}, err
}

// authenticate returns the valid session of a request.
func (p *Sessions) authenticate(r *http.Request) (session, error) {
	s, ok := p.readSession(r)
	now := p.now()
	switch {
	case !ok, !now.Before(s.Who.Auth.Until), now.Sub(s.Seen) >= p.IdleTimeout:
		return session{}, ErrUnauthenticated
	case s.Who.Auth.Method == MethodDev && !isLocal(r):
		return session{}, ErrUnauthenticated
	}
	// The store knows whether the session was revoked. Account and role come from the sealed
	// cookie; those in the store are for listing credentials.
	if _, err := checkCredential(r.Context(), p.Credentials, s.ID, s.Secret); err != nil {
		return session{}, err
	}
	return s, nil
}

// cookieRenewals is how often the cookie of an active session is rewritten within its idle timeout.
const cookieRenewals = 6

// Renew rewrites the cookie of the session of a request, so that an active session does not time
// out. The session must be that of the principal.
func (p *Sessions) Renew(w http.ResponseWriter, r *http.Request, who Principal) {
	switch who.Auth.Method {
	case MethodOIDC, MethodDev, MethodPassword, MethodPasskey:
	default:
		return
	}
	now := p.now()
	if s, ok := p.readSession(r); !ok || now.Sub(s.Seen) < p.IdleTimeout/cookieRenewals && p.isSealedWithCurrentKey(r) {
		return
	}
	if s, err := p.authenticate(r); err == nil { // occasionally this costs a second lookup
		s.Seen = now
		_ = p.writeSession(w, r, s) // its size has not changed
	}
}

// readSession reads the session of a request. It may have ended.
func (p *Sessions) readSession(r *http.Request) (s session, ok bool) {
	ok = p.readCookie(r, sessionCookie, sessionLabel, &s)
	return s, ok
}

// revokeSession permanently ends the session of a request on all replicas, if it has one.
func (p *Sessions) revokeSession(r *http.Request) error {
	s, ok := p.readSession(r)
	if !ok {
		return nil
	}
	line, err := s.auditLine(audit.SessionEnded{Session: s.ID})
	if err != nil {
		return err
	}
	err = p.Credentials.RevokeCredential(r.Context(), s.Who.Account, s.ID, line)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// writeSession sets the session cookie.
func (p *Sessions) writeSession(w http.ResponseWriter, r *http.Request, s session) error {
	return p.setCookie(w, r, sessionCookie, sessionLabel, s, s.Who.Auth.Until.Sub(p.now()))
}

// Credential returns the sealed session of a request; "" if it has none. It is not verified.
func (p *Sessions) Credential(r *http.Request) string {
	c, err := r.Cookie(p.cookieName(r, sessionCookie))
	if err != nil {
		return ""
	}
	return c.Value
}

// secure reports whether browsers use TLS, to this server or to a proxy in front of it.
func (p *core) secure(r *http.Request) bool { return p.tls || r.TLS != nil }

// cookieName returns the cookie's name in the browser. With TLS only the prefixed name counts: a
// neighbouring host or an attacker on a page without TLS could have set another one.
func (p *core) cookieName(r *http.Request, name string) string {
	if p.secure(r) {
		return hostPrefix + name
	}
	return name
}

func (p *core) sealCookie(label string, value any) (string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(p.Sealer.Seal(label, data)), nil
}

func (p *core) openCookie(label, text string, value any) bool {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(sealed) == 0 {
		return false
	}
	data, err := p.Sealer.Open(label, sealed)
	return err == nil && json.Unmarshal(data, value) == nil
}

func (p *core) setCookie(w http.ResponseWriter, r *http.Request, name, label string, value any, lifetime time.Duration) error {
	text, err := p.sealCookie(label, value)
	if err != nil {
		return err
	}
	if len(text) > maxCookie {
		return fmt.Errorf("%w: %d bytes", errCookieTooLong, len(text))
	}
	http.SetCookie(w, p.cookie(r, name, text, max(int(lifetime.Seconds()), 1)))
	return nil
}

func (p *core) readCookie(r *http.Request, name, label string, value any) bool {
	all := r.CookiesNamed(p.cookieName(r, name))
	// two cookies of the same name are ambiguous
	return len(all) == 1 && p.openCookie(label, all[0].Value, value)
}

// isSealedWithCurrentKey reports whether the session cookie uses the current key. During a key
// rotation, active people stay signed in.
func (p *core) isSealedWithCurrentKey(r *http.Request) bool {
	all := r.CookiesNamed(p.cookieName(r, sessionCookie))
	if len(all) != 1 {
		return false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(all[0].Value)
	return err == nil && p.Sealer.Current(sealed)
}

func (p *core) dropCookie(w http.ResponseWriter, r *http.Request, name string) {
	http.SetCookie(w, p.cookie(r, name, "", -1))
}

// cookie returns a cookie with SameSite=Lax, not Strict: a link in a message opens the inbox signed
// in.
func (p *core) cookie(r *http.Request, name, value string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: p.cookieName(r, name), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: p.secure(r), SameSite: http.SameSiteLaxMode}
}

// crossOrigin rejects requests that change something, carry a session, and come from another
// origin. Browsers state the origin; clients without one are not browsers and may not use a
// session.
func (p *Sessions) crossOrigin(r *http.Request) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return nil
	}
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
		return ErrCrossOrigin
	}
	return p.origins.Check(r)
}
