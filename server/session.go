package server

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

	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/store"
)

// A session is what a person has after they signed in. The browser keeps it, sealed, in a cookie; the store keeps a credential of the same id.
// Without the cookie nobody gets in, and without the credential neither: so every replica knows a session, and ends it when the credential is revoked.
type session struct {
	ID     string
	Secret string // the store has its hash
	Who    Principal
	// Seen is when the cookie was written. A session that is not used for a while ends before its time.
	Seen time.Time
}

const (
	sessionIDKind = "session" // of the ids
	sessionCookie = "fermata"
	sessionLabel  = "session cookie"
	// hostPrefix makes browsers keep a cookie to this host, and to TLS.
	hostPrefix = "__Host-"
	// maxCookie is what browsers take.
	maxCookie = 3800
)

// errCookieTooLong says that a cookie would not be kept by browsers.
var errCookieTooLong = errors.New("server: what the identity provider says of this person is too long for a session")

// errProofUsed says that somebody signed in with the same proof before.
var errProofUsed = errors.New("server: this sign-in was used before")

// begin makes a session for somebody. It is named after the proof that they brought, and the store takes a name once: whoever brings the same
// proof again, to whichever replica, gets errProofUsed.
func (p *sessionManager) createSession(ctx context.Context, who Principal, proof string) (session, error) {
	now := p.now()
	who.Auth.Until = now.Add(p.Lifetime).Truncate(time.Second)
	who.Auth.Credential = ident.Derive(sessionIDKind, proof)
	s := session{ID: who.Auth.Credential, Secret: rand.Text(), Who: who, Seen: now}
	if value, err := p.sealCookie(sessionLabel, s); err != nil || len(value) > maxCookie {
		return s, errors.Join(errCookieTooLong, err)
	}
	roles := roleNames(who.Roles)
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

// line is what the audit log says of a session, in the name of its person.
func (s session) auditLine(body audit.Body) (store.Writes, error) {
	auth := s.Who.Auth
	actor := audit.Actor{Principal: s.Who.ID, Kind: audit.ActorPerson, Via: auth.via(), Auth: string(auth.Strength), MFA: auth.Strength.AtLeast(desk.AuthMFA)}
	line, err := audit.NewLine(s.Who.Account, actor, audit.Location{}, body)
	return store.Writes{Audit: [][]byte{line}}, err
}

// authenticate finds out whose session a request carries.
func (p *sessionManager) authenticate(r *http.Request) (session, error) {
	s, ok := p.readSession(r)
	now := p.now()
	switch {
	case !ok, !now.Before(s.Who.Auth.Until), now.Sub(s.Seen) >= p.IdleTimeout:
		return session{}, ErrUnauthenticated
	case s.Who.Auth.Method == MethodDev && !isLocal(r):
		return session{}, ErrUnauthenticated
	}
	// The store knows whether it was ended. What it says of account and role is for those who list credentials: the cookie is sealed.
	if _, err := checkCredential(r.Context(), p.Credentials, s.ID, s.Secret); err != nil {
		return session{}, err
	}
	return s, nil
}

// cookieRenewals is how often the cookie of a session in use is written within the time after which it would end unused.
const cookieRenewals = 6

// renew writes the cookie of a session that is in use again, so that it does not end as an unused one would.
func (s *Server) renew(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if by := principalOf(r.Context()).Auth.Method; s.sessions != nil && (by == MethodOIDC || by == MethodDev) {
			s.sessions.renew(w, r)
		}
		next.ServeHTTP(w, r)
	})
}

func (p *sessionManager) renew(w http.ResponseWriter, r *http.Request) {
	now := p.now()
	if s, ok := p.readSession(r); !ok || now.Sub(s.Seen) < p.IdleTimeout/cookieRenewals && p.isSealedWithCurrentKey(r) {
		return
	}
	if s, err := p.authenticate(r); err == nil { // now and then it may cost a second look
		s.Seen = now
		_ = p.writeSession(w, r, s) // it is as long as it was
	}
}

// session reads the session of a request. It may be over.
func (p *sessionManager) readSession(r *http.Request) (s session, ok bool) {
	ok = p.readCookie(r, sessionCookie, sessionLabel, &s)
	return s, ok
}

// end ends the session of a request, if it has one, everywhere and for ever.
func (p *sessionManager) revokeSession(r *http.Request) error {
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

// give hands a session to the browser.
func (p *sessionManager) writeSession(w http.ResponseWriter, r *http.Request, s session) error {
	return p.setCookie(w, r, sessionCookie, sessionLabel, s, s.Who.Auth.Until.Sub(p.now()))
}

// secure reports whether browsers speak to us over TLS, be it to us or to what stands before us.
func (p *sessionManager) secure(r *http.Request) bool { return p.tls || r.TLS != nil }

// cookieName is the name of a cookie as the browser has it. Where there is TLS no other name counts: a host beside us, or somebody on the way to
// a page without TLS, could have set it.
func (p *sessionManager) cookieName(r *http.Request, name string) string {
	if p.secure(r) {
		return hostPrefix + name
	}
	return name
}

func (p *sessionManager) sealCookie(label string, value any) (string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(p.Sealer.Seal(label, data)), nil
}

func (p *sessionManager) openCookie(label, text string, value any) bool {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(sealed) == 0 {
		return false
	}
	data, err := p.Sealer.Open(label, sealed)
	return err == nil && json.Unmarshal(data, value) == nil
}

func (p *sessionManager) setCookie(w http.ResponseWriter, r *http.Request, name, label string, value any, life time.Duration) error {
	text, err := p.sealCookie(label, value)
	if err != nil {
		return err
	}
	if len(text) > maxCookie {
		return fmt.Errorf("%w: %d bytes", errCookieTooLong, len(text))
	}
	http.SetCookie(w, p.cookie(r, name, text, max(int(life.Seconds()), 1)))
	return nil
}

func (p *sessionManager) readCookie(r *http.Request, name, label string, value any) bool {
	all := r.CookiesNamed(p.cookieName(r, name))
	return len(all) == 1 && p.openCookie(label, all[0].Value, value) // of two, nobody knows which one is meant
}

// isCurrent reports whether the session of a request is sealed with the key of today. While that is changed, those who are at work stay signed in.
func (p *sessionManager) isSealedWithCurrentKey(r *http.Request) bool {
	all := r.CookiesNamed(p.cookieName(r, sessionCookie))
	if len(all) != 1 {
		return false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(all[0].Value)
	return err == nil && p.Sealer.Current(sealed)
}

func (p *sessionManager) dropCookie(w http.ResponseWriter, r *http.Request, name string) {
	http.SetCookie(w, p.cookie(r, name, "", -1))
}

// cookie is Lax, not Strict: a link in a message leads to the inbox, and whoever follows it is signed in.
func (p *sessionManager) cookie(r *http.Request, name, value string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: p.cookieName(r, name), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: p.secure(r), SameSite: http.SameSiteLaxMode}
}

// crossOrigin refuses what changes something, carries a session, and comes from a page of somebody else. Browsers say where from; whoever does not
// say is no browser, and has no business with a session.
func (p *sessionManager) crossOrigin(r *http.Request) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return nil
	}
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
		return errCrossOrigin
	}
	return p.origins.Check(r)
}
