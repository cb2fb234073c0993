package server

import (
	"cmp"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
)

// SignIn says how people sign in with a browser. Who signed in has a session, in a cookie that only this server can read; programs use API keys.
//
//	GET  /                      is a page that says who one is, and what there is
//	GET  /signin?return=/path   leads to the identity provider, and back to the path
//	GET  /signin/callback       is where the identity provider sends people back to
//	POST /signout               ends the session, on all replicas
//	GET  /api/v1/me             says who one is, and until when
type SignIn struct {
	// Credentials is where sessions are kept beside API keys, so that they can be revoked.
	Credentials store.Credentials
	// Box seals what browsers keep. All replicas need the same keys.
	Sealer executor.Sealer
	// OIDC is the identity provider. Without one people get in by [Server.DevLink] only.
	OIDC *OIDC
	// Life is how long a session lasts, however much it is used. The default is 8 h.
	Lifetime time.Duration
	// Idle is how long a session lasts unused. The default is 30 min.
	IdleTimeout time.Duration
	// Now is the clock. The default is time.Now.
	Now func() time.Time
}

// testPeople lets people in.
type sessionManager struct {
	SignIn
	idp         *idp // nil: none
	tls         bool // browsers know us by an https URL
	origins     *http.CrossOriginProtection
	devEnabled  atomic.Bool // claimsFor made a link for development
	lastCleanup interval
}

func newSessionManager(config SignIn) (*sessionManager, error) {
	switch {
	case config.Credentials == nil || config.Sealer == nil:
		return nil, errors.New("server: SignIn needs Credentials and a Box")
	case config.Lifetime < 0 || config.IdleTimeout < 0:
		return nil, errors.New("server: SignIn.Life and SignIn.Idle cannot be negative")
	}
	config.Lifetime, config.IdleTimeout = cmp.Or(config.Lifetime, 8*time.Hour), cmp.Or(config.IdleTimeout, 30*time.Minute)
	p := &sessionManager{SignIn: config, origins: http.NewCrossOriginProtection()}
	if config.OIDC == nil {
		return p, nil
	}
	home, err := config.OIDC.validate()
	if err != nil {
		return nil, err
	}
	p.tls = home.Scheme == "https"
	p.idp = newIDP(*config.OIDC, p.now)
	return p, p.origins.AddTrustedOrigin(home.Scheme + "://" + home.Host) // what stands before us may change the header Host
}

func (p *sessionManager) now() time.Time {
	if p.Now != nil {
		return p.Now()
	}
	return time.Now()
}

// openSignIn gets ready to let people in.
func (s *Server) setUpSignIn() error {
	if s.config.SignIn == nil {
		return nil
	}
	p, err := newSessionManager(*s.config.SignIn)
	if err != nil {
		return err
	}
	s.sessions = p
	if p.idp != nil && p.idp.Audience != "" {
		s.config.Auth = firstOf(s.config.Auth, p.idp)
	}
	return nil
}

// registerSignIn adds the pages. They are no part of the API.
func (s *Server) registerSignIn(mux *routeTable) {
	s.registerMe()
	if s.sessions == nil {
		return
	}
	mux.HandleFunc("GET /{$}", s.home)
	mux.HandleFunc("GET /signin", s.signIn)
	mux.HandleFunc("GET /signin/callback", s.callback)
	mux.HandleFunc("GET /signin/dev", s.devSignIn)
	mux.HandleFunc("POST /signout", s.signOut)
}

// flow is what a browser keeps while its person is at the identity provider. It binds the answer to the browser that asked.
type flow struct {
	State, Nonce, Verifier string
	Return                 string
	Until                  time.Time
}

const (
	flowLabel = "sign-in cookie"
	flowTTL   = 10 * time.Minute
)

// flowCookieName is the cookie of one flow: somebody who opens three links at once signs in three times at once.
func flowCookieName(state string) string {
	return sessionCookie + "-signin-" + state[:min(len(state), 8)]
}

// maxFlowBytes is how many bytes of flows a browser may have before those it began are forgotten, so that its requests do not grow beyond what servers take.
const maxFlowBytes = 6000

// home is where signing in leads to, if nobody says elsewhere. Programs have no business there.
func (s *Server) home(w http.ResponseWriter, r *http.Request) {
	if !wantsHTML(r) {
		writeProblem(w, problem("not_found", "there is nothing here; see /openapi.json"))
		return
	}
	found, err := s.sessions.authenticate(r)
	switch {
	case errors.Is(err, ErrUnauthenticated):
		http.Redirect(w, r, "/signin", http.StatusSeeOther)
	case err != nil:
		s.rejectSignIn(w, r, err)
	default:
		s.writePage(w, pageHome(found.Who))
	}
}

// signIn leads to the identity provider, or says how to sign in if there is none.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	p, query := s.sessions, r.URL.Query()
	back := localPath(query.Get("return"))
	if query.Has("bye") {
		s.writePage(w, pageSignedOut(p.idp != nil))
		return
	}
	if _, err := p.authenticate(r); err == nil {
		http.Redirect(w, r, back, http.StatusSeeOther)
		return
	}
	if p.idp == nil {
		s.writePage(w, pageNoIDP)
		return
	}
	at, err := p.idp.discover(r.Context())
	if err != nil {
		s.rejectSignIn(w, r, err)
		return
	}
	f := flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Return: back, Until: p.now().Add(flowTTL)}
	p.clearFlows(w, r)
	if err := p.setCookie(w, r, flowCookieName(f.State), flowLabel, f, flowTTL); err != nil {
		s.rejectSignIn(w, r, err)
		return
	}
	http.Redirect(w, r, at.signInURL(f), http.StatusSeeOther)
}

// forgetFlows clears the cookies of a browser that began too many.
func (p *sessionManager) clearFlows(w http.ResponseWriter, r *http.Request) {
	prefix := p.cookieName(r, flowCookieName(""))
	var names []string
	size := 0
	for _, c := range r.Cookies() {
		if name, ok := strings.CutPrefix(c.Name, prefix); ok {
			names = append(names, name)
			size += len(c.Name) + len(c.Value)
		}
	}
	if size < maxFlowBytes {
		return
	}
	for _, name := range names {
		p.dropCookie(w, r, flowCookieName("")+name)
	}
}

// flow finds what a browser kept for this answer of the identity provider. It can be used once.
func (p *sessionManager) takeFlow(w http.ResponseWriter, r *http.Request) (f flow, ok bool) {
	state := r.URL.Query().Get("state")
	if !isVisibleToken(state, 64) {
		return f, false
	}
	ok = p.readCookie(r, flowCookieName(state), flowLabel, &f)
	p.dropCookie(w, r, flowCookieName(state))
	return f, ok && subtle.ConstantTimeCompare([]byte(f.State), []byte(state)) == 1 && p.now().Before(f.Until)
}

// callback takes the answer of the identity provider.
func (s *Server) callback(w http.ResponseWriter, r *http.Request) {
	p := s.sessions
	if p.idp == nil {
		s.rejectSignIn(w, r, problem("not_found", "there is no identity provider"))
		return
	}
	f, ok := p.takeFlow(w, r)
	if !ok {
		s.rejectSignIn(w, r, problem("bad_request", "this sign-in did not begin in this browser, or it took too long"))
		return
	}
	who, err := p.idp.completeSignIn(r.Context(), r.URL.Query(), f)
	if err != nil {
		s.rejectSignIn(w, r, err)
		return
	}
	s.startSession(w, r, who, f.State, f.Return)
}

// letIn begins a session. One that the browser had before ends: nobody goes on with a session that somebody else may know.
func (s *Server) startSession(w http.ResponseWriter, r *http.Request, who Principal, proof, back string) {
	begun, err := s.sessions.createSession(r.Context(), who, proof)
	if err == nil {
		err = s.sessions.revokeSession(r)
	}
	if err == nil {
		err = s.sessions.writeSession(w, r, begun)
	}
	if err != nil {
		s.rejectSignIn(w, r, err)
		return
	}
	s.deleteEndedSessions(r)
	s.config.Log.Info("signed in", "account", who.Account, "principal", who.ID, "roles", who.Roles, "by", who.Auth.Method)
	http.Redirect(w, r, back, http.StatusSeeOther)
}

// signOut ends a session. As long as that is not sure the browser keeps it, to try again.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request) {
	p := s.sessions
	over, had := p.readSession(r)
	// Browsers leave the session out of what another site posts. To answer that by taking the cookie away would let any page sign people out.
	if had && p.crossOrigin(r) != nil || p.origins.Check(r) != nil {
		s.rejectSignIn(w, r, problem("forbidden", "this came from a page of another origin"))
		return
	}
	if err := p.revokeSession(r); err != nil {
		s.rejectSignIn(w, r, err)
		return
	}
	p.dropCookie(w, r, sessionCookie)
	s.deleteEndedSessions(r)
	if had {
		s.config.Log.Info("signed out", "account", over.Who.Account, "principal", over.Who.ID)
	}
	if !wantsHTML(r) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	http.Redirect(w, r, "/signin?bye", http.StatusSeeOther)
}

// maxReturn is how long the path may be that somebody comes back to, in bytes.
const maxReturn = 1024

// localPath is a path of this server, or "/": who signs in here is not sent elsewhere.
func localPath(path string) string {
	if !isVisibleToken(path, maxReturn) || !strings.HasPrefix(path, "/") || strings.Contains(path, `\`) { // browsers take a backslash for a slash, and leave tabs out
		return "/"
	}
	u, err := url.Parse(path)
	if err != nil || u.Host != "" || strings.HasPrefix(u.Path, "//") || strings.HasPrefix(u.Path, "/signin") || strings.HasPrefix(u.Path, "/signout") {
		return "/"
	}
	return path
}
