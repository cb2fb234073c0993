package authn

import (
	"cmp"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/logsample"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/store"
)

// SignIn configures browser sign-in. A signed-in person has a session in a sealed cookie; programs
// use API keys. Without an identity provider, members sign in with a password or a passkey.
//
//	POST /signin/password       signs in a member
//	POST /signin/passkey        signs in a member
//	     /signin/invitation     lets an invited person choose a password or create a passkey
//	GET  /                      shows the signed-in person
//	GET  /signin?return=/path   redirects to the identity provider, and back to the path; with
//	                            again=1 also if a session exists, so that a person signs in anew
//	GET  /signin/callback       receives the identity provider's redirect
//	POST /signout               ends the session on all replicas
//	GET  /api/v1/me             returns the principal and the session's expiry
type SignIn struct {
	// Credentials stores sessions along with API keys, so that they can be revoked.
	Credentials store.Credentials
	// Sealer encrypts cookies. All replicas need the same keys.
	Sealer executor.Sealer
	// OIDC is the identity provider. Without one, people sign in with [Sessions.DevLink] only.
	OIDC *OIDC
	// Passkeys stores the passkeys of members. Defaults to the executor of the server.
	Passkeys PasskeyStore
	// PublicURL is the address of the server in browsers, such as https://fermata.example. Passkeys
	// are bound to its host. Defaults to the host of each request.
	PublicURL string
	// Lifetime is the maximum duration of a session. Defaults to 8 h.
	Lifetime time.Duration
	// IdleTimeout is how long an unused session lasts. Defaults to 30 min.
	IdleTimeout time.Duration
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

// Sessions signs people in and manages their sessions. Create it with New.
type Sessions struct {
	members
	origins     *http.CrossOriginProtection
	devLinks    devLinks
	lastCleanup Interval
	hooks       Hooks
	guesses     *guessLimiter
	// Rate limits for log lines that anonymous clients can cause.
	rejectionLog, failureLog logsample.Sampler
}

// core is what all parts of sign-in use: the configuration, the credentials and sealed cookies.
type core struct {
	SignIn
	idp *idp // nil: none
	tls bool // the server's public URL is https, also if a proxy has the certificate
}

// Hooks connect the sign-in pages to the log and the metrics of a server.
type Hooks struct {
	Log *slog.Logger
	// Rejected is called with the problem code of each rejected sign-in.
	Rejected func(code string)
	// Failed is called with the component for each internal error.
	Failed func(component string)
	// Source returns the source of a request, for limits.
	Source func(r *http.Request) string
}

// New returns the sessions of a configuration. It returns an error if the configuration is invalid.
func New(config SignIn, hooks Hooks) (*Sessions, error) {
	switch {
	case config.Credentials == nil || config.Sealer == nil:
		return nil, errors.New("authn: SignIn needs Credentials and a Sealer")
	case config.Lifetime < 0 || config.IdleTimeout < 0:
		return nil, errors.New("authn: SignIn.Lifetime and SignIn.IdleTimeout cannot be negative")
	}
	config.Lifetime, config.IdleTimeout = cmp.Or(config.Lifetime, 8*time.Hour), cmp.Or(config.IdleTimeout, 30*time.Minute)
	p := &Sessions{members: members{passkeys{core{SignIn: config}}}, hooks: hooks, guesses: newGuessLimiter(), origins: http.NewCrossOriginProtection()}
	if config.OIDC == nil {
		return p, p.trustPublicURL()
	}
	home, err := config.OIDC.validate()
	if err != nil {
		return nil, err
	}
	p.tls = home.Scheme == "https"
	p.idp = newIDP(*config.OIDC, p.now)
	// a proxy in front of the server may change the Host header
	return p, p.origins.AddTrustedOrigin(home.Scheme + "://" + home.Host)
}

// trustPublicURL accepts forms of pages at the public URL: a proxy in front of the server may
// change the Host header. With https, cookies are for TLS only.
func (p *Sessions) trustPublicURL() error {
	if p.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(p.PublicURL)
	if err != nil || u.Host == "" {
		return errors.New("authn: SignIn.PublicURL is not the address of a server")
	}
	p.tls = u.Scheme == "https"
	return p.origins.AddTrustedOrigin(u.Scheme + "://" + u.Host)
}

func (p *core) now() time.Time {
	if p.Now != nil {
		return p.Now()
	}
	return time.Now()
}

// Identifier returns an authenticator that accepts sessions and what programs accepts: usually API
// keys, and tokens of the identity provider if OIDC.Audience is set. A token that is sent must be
// valid, whatever else the request carries. It returns ErrCrossOrigin for a session that a page of
// another origin uses to change something.
func (p *Sessions) Identifier(programs Authenticator) Authenticator {
	if p.idp != nil && p.idp.Audience != "" {
		programs = firstOf(programs, p.idp)
	}
	return AuthenticatorFunc(func(r *http.Request) (Principal, error) { return p.identify(r, programs) })
}

// Register adds the sign-in pages. They are not part of the API.
func (p *Sessions) Register(handle func(pattern string, handler func(http.ResponseWriter, *http.Request))) {
	handle("GET /{$}", p.home)
	handle("GET /signin", p.signIn)
	handle("GET /signin/callback", p.callback)
	handle("GET /s/{code}", p.devSignIn)
	handle("POST /signout", p.signOut)
	if p.idp == nil {
		handle("POST /signin/password", p.form(p.passwordSignIn))
		handle("GET /signin/invitation", p.showInvitation)
		handle("POST /signin/invitation", p.form(p.acceptInvitation))
		p.registerPasskeys(handle)
	}
}

// maxForm is the maximum size of a form in bytes. The longest one has the state and the response of
// an authenticator.
const maxForm = 16 << 10

// form reads the form of a request, which anybody can send, before it calls next.
func (p *Sessions) form(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			why := problems.New("bad_request", "the form cannot be read")
			if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
				why = problems.New("too_large", "the form is limited to %d bytes", maxForm)
			}
			p.rejectSignIn(w, r, why)
			return
		}
		next(w, r)
	}
}

// flow is the state that a browser keeps during a sign-in at the identity provider. It binds the
// callback to the browser that started the sign-in.
type flow struct {
	State, Nonce, Verifier string
	Return                 string
	Again                  bool // the person signs in although a session exists
	Until                  time.Time
}

const (
	flowLabel = "sign-in cookie"
	flowTTL   = 10 * time.Minute
)

// flowCookieName returns the cookie of one flow: several sign-ins may run in parallel tabs.
func flowCookieName(state string) string {
	return sessionCookie + "-signin-" + state[:min(len(state), 8)]
}

// maxFlowBytes is the maximum size of flow cookies before they are cleared, so that requests do not
// exceed header limits.
const maxFlowBytes = 6000

// home is the default page after sign-in. It is not for programs.
func (p *Sessions) home(w http.ResponseWriter, r *http.Request) {
	if !wantsHTML(r) {
		problems.Write(w, problems.New("not_found", "no such path; see /openapi.json"))
		return
	}
	found, err := p.authenticate(r)
	switch {
	case errors.Is(err, ErrUnauthenticated):
		http.Redirect(w, r, "/signin", http.StatusSeeOther)
	case err != nil:
		p.rejectSignIn(w, r, err)
	default:
		p.writePage(w, pageHome(r, found.Who))
	}
}

// signIn redirects to the identity provider, or explains how to sign in if there is none.
func (p *Sessions) signIn(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	back := localPath(query.Get("return"))
	if query.Has("bye") {
		p.writePage(w, pageSignedOut(r, p.idp != nil))
		return
	}
	if _, err := p.authenticate(r); err == nil && !query.Has("again") {
		http.Redirect(w, r, back, http.StatusSeeOther)
		return
	}
	if p.idp == nil {
		p.writePage(w, p.pageSignIn(r, "", back, ""))
		return
	}
	at, err := p.idp.discover(r.Context())
	if err != nil {
		p.rejectSignIn(w, r, err)
		return
	}
	f := flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Again: query.Has("again"), Return: back, Until: p.now().Add(flowTTL)}
	p.clearFlows(w, r)
	if err := p.setCookie(w, r, flowCookieName(f.State), flowLabel, f, flowTTL); err != nil {
		p.rejectSignIn(w, r, err)
		return
	}
	http.Redirect(w, r, at.signInURL(f), http.StatusSeeOther)
}

// clearFlows clears the flow cookies of a browser that started too many.
func (p *Sessions) clearFlows(w http.ResponseWriter, r *http.Request) {
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

// takeFlow returns the flow of this callback. It can be used once.
func (p *Sessions) takeFlow(w http.ResponseWriter, r *http.Request) (f flow, ok bool) {
	state := r.URL.Query().Get("state")
	if !isVisibleToken(state, 64) {
		return f, false
	}
	ok = p.readCookie(r, flowCookieName(state), flowLabel, &f)
	p.dropCookie(w, r, flowCookieName(state))
	return f, ok && subtle.ConstantTimeCompare([]byte(f.State), []byte(state)) == 1 && p.now().Before(f.Until)
}

// callback handles the identity provider's redirect.
func (p *Sessions) callback(w http.ResponseWriter, r *http.Request) {
	if p.idp == nil {
		p.rejectSignIn(w, r, problems.New("not_found", "no identity provider is configured"))
		return
	}
	f, ok := p.takeFlow(w, r)
	if !ok {
		p.rejectSignIn(w, r, problems.New("bad_request", "this sign-in was not started in this browser, or it took too long"))
		return
	}
	who, err := p.idp.completeSignIn(r.Context(), r.URL.Query(), f)
	if err != nil {
		p.rejectSignIn(w, r, err)
		return
	}
	p.startSession(w, r, who, f.State, f.Return)
}

// startSession starts a session. A previous session of the browser ends, because another person may
// know it.
func (p *Sessions) startSession(w http.ResponseWriter, r *http.Request, who Principal, proof, back string) {
	begun, err := p.createSession(r.Context(), who, proof)
	if err == nil {
		err = p.revokeSession(r)
	}
	if err == nil {
		err = p.writeSession(w, r, begun)
	}
	if err != nil {
		p.rejectSignIn(w, r, err)
		return
	}
	p.deleteEndedSessions(r)
	p.hooks.Log.Info("signed in", "account", who.Account, "principal", who.ID, "roles", who.Roles, "by", who.Auth.Method)
	http.Redirect(w, r, back, http.StatusSeeOther)
}

// signOut ends a session. If that fails, the browser keeps the cookie and can try again.
func (p *Sessions) signOut(w http.ResponseWriter, r *http.Request) {
	over, had := p.readSession(r)
	// Browsers omit the session from cross-site posts. Deleting the cookie in response would let
	// any page sign people out.
	if had && p.crossOrigin(r) != nil || p.origins.Check(r) != nil {
		p.rejectSignIn(w, r, problems.New("forbidden", "cross-origin request"))
		return
	}
	if err := p.revokeSession(r); err != nil {
		p.rejectSignIn(w, r, err)
		return
	}
	p.dropCookie(w, r, sessionCookie)
	p.deleteEndedSessions(r)
	if had {
		p.hooks.Log.Info("signed out", "account", over.Who.Account, "principal", over.Who.ID)
	}
	if !wantsHTML(r) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	http.Redirect(w, r, "/signin?bye", http.StatusSeeOther)
}

// maxReturn is the maximum length of the return path, in bytes.
const maxReturn = 1024

// localPath returns a path of this server, or "/": sign-in never redirects to another site.
func localPath(path string) string {
	// browsers treat a backslash as a slash, and ignore tabs
	if !isVisibleToken(path, maxReturn) || !strings.HasPrefix(path, "/") || strings.Contains(path, `\`) {
		return "/"
	}
	u, err := url.Parse(path)
	if err != nil || u.Host != "" || strings.HasPrefix(u.Path, "//") || strings.HasPrefix(u.Path, "/signin") || strings.HasPrefix(u.Path, "/signout") {
		return "/"
	}
	return path
}
