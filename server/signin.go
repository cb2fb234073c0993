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
	Box executor.Box
	// OIDC is the identity provider. Without one people get in by [Server.DevLink] only.
	OIDC *OIDC
	// Life is how long a session lasts, however much it is used. The default is 8 h.
	Life time.Duration
	// Idle is how long a session lasts unused. The default is 30 min.
	Idle time.Duration
	// Now is the clock. The default is time.Now.
	Now func() time.Time
}

// people lets people in.
type people struct {
	SignIn
	idp     *idp // nil: none
	tls     bool // browsers know us by an https URL
	origins *http.CrossOriginProtection
	dev     atomic.Bool // somebody made a link for development
	tidied  sometimes
}

func newPeople(config SignIn) (*people, error) {
	switch {
	case config.Credentials == nil || config.Box == nil:
		return nil, errors.New("server: SignIn needs Credentials and a Box")
	case config.Life < 0 || config.Idle < 0:
		return nil, errors.New("server: SignIn.Life and SignIn.Idle cannot be negative")
	}
	config.Life, config.Idle = cmp.Or(config.Life, 8*time.Hour), cmp.Or(config.Idle, 30*time.Minute)
	p := &people{SignIn: config, origins: http.NewCrossOriginProtection()}
	if config.OIDC == nil {
		return p, nil
	}
	home, err := config.OIDC.check()
	if err != nil {
		return nil, err
	}
	p.tls = home.Scheme == "https"
	p.idp = newIDP(*config.OIDC, p.now)
	return p, p.origins.AddTrustedOrigin(home.Scheme + "://" + home.Host) // what stands before us may change the header Host
}

func (p *people) now() time.Time {
	if p.Now != nil {
		return p.Now()
	}
	return time.Now()
}

// openSignIn gets ready to let people in.
func (s *Server) openSignIn() error {
	if s.config.SignIn == nil {
		return nil
	}
	p, err := newPeople(*s.config.SignIn)
	if err != nil {
		return err
	}
	s.people = p
	if p.idp != nil && p.idp.Audience != "" {
		s.config.Auth = anyOf(s.config.Auth, p.idp)
	}
	return nil
}

// registerSignIn adds the pages. They are no part of the API.
func (s *Server) registerSignIn(mux *table) {
	s.registerMe()
	if s.people == nil {
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
	flowLife  = 10 * time.Minute
)

// flowName is the cookie of one flow: somebody who opens three links at once signs in three times at once.
func flowName(state string) string { return sessionName + "-signin-" + state[:min(len(state), 8)] }

// maxFlows is how many bytes of flows a browser may have before those it began are forgotten, so that its requests do not grow beyond what servers take.
const maxFlows = 6000

// home is where signing in leads to, if nobody says elsewhere. Programs have no business there.
func (s *Server) home(w http.ResponseWriter, r *http.Request) {
	if !wantsPage(r) {
		writeProblem(w, problem("not_found", "there is nothing here; see /openapi.json"))
		return
	}
	found, err := s.people.authenticate(r)
	switch {
	case errors.Is(err, ErrUnauthenticated):
		http.Redirect(w, r, "/signin", http.StatusSeeOther)
	case err != nil:
		s.refuseSignIn(w, r, err)
	default:
		s.page(w, pageHome(found.Who))
	}
}

// signIn leads to the identity provider, or says how to sign in if there is none.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	p, query := s.people, r.URL.Query()
	back := localPath(query.Get("return"))
	if query.Has("bye") {
		s.page(w, pageBye(p.idp != nil))
		return
	}
	if _, err := p.authenticate(r); err == nil {
		http.Redirect(w, r, back, http.StatusSeeOther)
		return
	}
	if p.idp == nil {
		s.page(w, pageNoIDP)
		return
	}
	at, err := p.idp.discover(r.Context())
	if err != nil {
		s.refuseSignIn(w, r, err)
		return
	}
	f := flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Return: back, Until: p.now().Add(flowLife)}
	p.forgetFlows(w, r)
	if err := p.setCookie(w, r, flowName(f.State), flowLabel, f, flowLife); err != nil {
		s.refuseSignIn(w, r, err)
		return
	}
	http.Redirect(w, r, at.signInURL(f), http.StatusSeeOther)
}

// forgetFlows clears the cookies of a browser that began too many.
func (p *people) forgetFlows(w http.ResponseWriter, r *http.Request) {
	prefix := p.cookieName(r, flowName(""))
	var names []string
	size := 0
	for _, c := range r.Cookies() {
		if name, ok := strings.CutPrefix(c.Name, prefix); ok {
			names = append(names, name)
			size += len(c.Name) + len(c.Value)
		}
	}
	if size < maxFlows {
		return
	}
	for _, name := range names {
		p.dropCookie(w, r, flowName("")+name)
	}
}

// flow finds what a browser kept for this answer of the identity provider. It can be used once.
func (p *people) flow(w http.ResponseWriter, r *http.Request) (f flow, ok bool) {
	state := r.URL.Query().Get("state")
	if !isWord(state, 64) {
		return f, false
	}
	ok = p.readCookie(r, flowName(state), flowLabel, &f)
	p.dropCookie(w, r, flowName(state))
	return f, ok && subtle.ConstantTimeCompare([]byte(f.State), []byte(state)) == 1 && p.now().Before(f.Until)
}

// callback takes the answer of the identity provider.
func (s *Server) callback(w http.ResponseWriter, r *http.Request) {
	p := s.people
	if p.idp == nil {
		s.refuseSignIn(w, r, problem("not_found", "there is no identity provider"))
		return
	}
	f, ok := p.flow(w, r)
	if !ok {
		s.refuseSignIn(w, r, problem("bad_request", "this sign-in did not begin in this browser, or it took too long"))
		return
	}
	who, err := p.idp.redeem(r.Context(), r.URL.Query(), f)
	if err != nil {
		s.refuseSignIn(w, r, err)
		return
	}
	s.letIn(w, r, who, f.State, f.Return)
}

// letIn begins a session. One that the browser had before ends: nobody goes on with a session that somebody else may know.
func (s *Server) letIn(w http.ResponseWriter, r *http.Request, who Principal, proof, back string) {
	begun, err := s.people.begin(r.Context(), who, proof)
	if err == nil {
		err = s.people.end(r)
	}
	if err == nil {
		err = s.people.give(w, r, begun)
	}
	if err != nil {
		s.refuseSignIn(w, r, err)
		return
	}
	s.tidy(r)
	s.config.Log.Info("signed in", "account", who.Account, "principal", who.ID, "roles", who.Roles, "by", who.Auth.Method)
	http.Redirect(w, r, back, http.StatusSeeOther)
}

// signOut ends a session. As long as that is not sure the browser keeps it, to try again.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request) {
	p := s.people
	over, had := p.session(r)
	// Browsers leave the session out of what another site posts. To answer that by taking the cookie away would let any page sign people out.
	if had && p.crossOrigin(r) != nil || p.origins.Check(r) != nil {
		s.refuseSignIn(w, r, problem("forbidden", "this came from a page of another origin"))
		return
	}
	if err := p.end(r); err != nil {
		s.refuseSignIn(w, r, err)
		return
	}
	p.dropCookie(w, r, sessionName)
	s.tidy(r)
	if had {
		s.config.Log.Info("signed out", "account", over.Who.Account, "principal", over.Who.ID)
	}
	if !wantsPage(r) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	http.Redirect(w, r, "/signin?bye", http.StatusSeeOther)
}

// maxReturn is how long the path may be that somebody comes back to, in bytes.
const maxReturn = 1024

// localPath is a path of this server, or "/": who signs in here is not sent elsewhere.
func localPath(path string) string {
	if !isWord(path, maxReturn) || !strings.HasPrefix(path, "/") || strings.Contains(path, `\`) { // browsers take a backslash for a slash, and leave tabs out
		return "/"
	}
	u, err := url.Parse(path)
	if err != nil || u.Host != "" || strings.HasPrefix(u.Path, "//") || strings.HasPrefix(u.Path, "/signin") || strings.HasPrefix(u.Path, "/signout") {
		return "/"
	}
	return path
}
