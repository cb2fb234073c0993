package server_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/oidctest"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
)

const clientSecret = "the-secret-of-the-client"

// signInSite is a server with browser sign-in, and its identity provider.
type signInSite struct {
	*site
	listener *httptest.Server
	idp      *oidctest.Provider
	config   server.Config

	mu     sync.Mutex
	offset time.Duration
}

// now is the server's clock.
func (p *signInSite) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Add(p.offset)
}

// advance advances the clocks of the server and its provider.
func (p *signInSite) advance(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.offset += d
}

// signInOptions configures a signInSite.
type signInOptions struct {
	tls    bool
	change func(*server.Config)
	store  func(store.Store) store.Store // of the executor
}

func openSignInSite(t *testing.T, how signInOptions) *signInSite {
	t.Helper()
	b, err := seal.New(seal.Key{1})
	if err != nil {
		t.Fatal(err)
	}
	runs := memory.NewStore(nil)
	of := store.Store(runs)
	if how.store != nil {
		of = how.store(runs)
	}
	e, err := executor.New(executor.Config{Store: of, Sealer: b, Providers: []provider.Provider{reviewProvider(t)}, Poll: 5 * time.Millisecond, Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewUnstartedServer(nil)
	here := "http://" + h.Listener.Addr().String()
	if how.tls {
		here = "https://" + h.Listener.Addr().String()
	}
	p := &signInSite{site: &site{T: t, url: here, e: e, log: new(logBuffer)}, listener: h}
	redirect := here + "/signin/callback"
	p.idp = oidctest.New(t, oidctest.Client{ID: "fermata", Secret: clientSecret, RedirectURL: redirect})
	p.idp.Clock(p.now)
	p.config = server.Config{
		Executor: e, Auth: authn.Keys(runs), Limits: server.Limits{Rate: 1e6, Burst: 1e6}, Log: slog.New(slog.NewTextHandler(p.log, nil)),
		SignIn: &authn.SignIn{Credentials: runs, Sealer: b, Now: p.now, OIDC: &authn.OIDC{
			Issuer: p.idp.URL, ClientID: "fermata", ClientSecret: clientSecret, RedirectURL: redirect, AccountClaim: "tenant", Audience: "fermata-api",
			Roles: map[string][]authn.Role{
				"agents": {authn.RoleAgent}, "approvers": {authn.RoleApprover}, "auditors": {authn.RoleAuditor}, "users": {authn.RoleUser}, "admins": {authn.RoleAdmin}, "leads": {authn.RoleAuditor, authn.RoleApprover},
			},
		}},
	}
	if how.change != nil {
		how.change(&p.config)
	}
	if p.server, err = server.New(p.config); err != nil {
		t.Fatal(err)
	}
	p.api = p.server.OpenAPI()
	h.Config.Handler = checked(t, p.server, p.api)
	if how.tls {
		h.StartTLS()
	} else {
		h.Start()
	}
	t.Cleanup(func() {
		h.Close()
		if err := e.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// credentials returns the credential store.
func (p *signInSite) credentials() store.Credentials { return p.config.SignIn.Credentials }

// key creates an API key of a role in an account.
func (p *signInSite) key(account string, role authn.Role) string {
	p.Helper()
	key, kept, err := authn.NewKey(account, string(role), role, time.Time{})
	if err == nil {
		err = p.credentials().AddCredential(p.Context(), kept, store.Writes{})
	}
	if err != nil {
		p.Fatal(err)
	}
	return key
}

// claimsFor returns the claims of a member of some groups.
func claimsFor(account string, groups ...string) oidctest.Claims {
	return oidctest.Claims{"sub": "ann", "name": "Ann", "tenant": account, "groups": groups}
}

// browser keeps cookies, and does not follow redirects.
type browser struct {
	*signInSite
	client *http.Client
}

func (p *signInSite) browser() *browser {
	p.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.Fatal(err)
	}
	client := *http.DefaultClient
	if p.listener.TLS != nil {
		client = *p.listener.Client()
	}
	client.Jar = jar
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &browser{p, &client}
}

// send sends a request as a page of the server would.
func (b *browser) send(method, path, body string, headers ...string) answer {
	b.Helper()
	if !strings.Contains(path, "://") {
		path = b.url + path
	}
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(b.Context(), method, path, content)
	if err != nil {
		b.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "text/html")
	if strings.Contains(path, "/api/") {
		r.Header.Set("Accept", "application/json")
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i+1 < len(headers); i += 2 {
		switch {
		case headers[i+1] == "":
			r.Header.Del(headers[i])
		case headers[i] == "Host":
			r.Host = headers[i+1]
		default:
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := b.client.Do(r)
	return answerOf(b, response, err)
}

func (b *browser) get(path string, headers ...string) answer {
	b.Helper()
	return b.send("GET", path, "", headers...)
}

// followToCallback starts a sign-in, and returns the callback URL.
func (b *browser) followToCallback(back string) string {
	b.Helper()
	begun := b.get("/signin?return=" + url.QueryEscape(back))
	if begun.status != 303 || !strings.HasPrefix(begun.header.Get("Location"), b.idp.URL+"/") || !strings.Contains(begun.header.Get("Location"), "/authorize?") {
		b.Fatalf("a sign-in begins with %d %s", begun.status, begun.body)
	}
	there := b.get(begun.header.Get("Location"))
	if there.status != 302 {
		b.Fatalf("the identity provider returned %d %s", there.status, there.body)
	}
	return there.header.Get("Location")
}

// signIn signs a person in, and returns the response of the callback.
func (b *browser) signIn(person oidctest.Claims) answer {
	b.Helper()
	b.idp.SignIn(person)
	return b.get(b.followToCallback("/inbox"))
}

// signedIn returns the browser of a signed-in person.
func (p *signInSite) signedIn(person oidctest.Claims) *browser {
	p.Helper()
	b := p.browser()
	if got := b.signIn(person); got.status != 303 || got.header.Get("Location") != "/inbox" {
		p.Fatalf("signing in returned %d %s %s", got.status, got.header.Get("Location"), got.body)
	}
	return b
}

// cookies returns the cookies that the browser would send.
func (b *browser) cookies() []*http.Cookie {
	here, err := url.Parse(b.url)
	if err != nil {
		b.Fatal(err)
	}
	return b.client.Jar.Cookies(here)
}

// session returns the session cookie.
func (b *browser) session() *http.Cookie {
	b.Helper()
	for _, c := range b.cookies() {
		if strings.TrimPrefix(c.Name, "__Host-") == "fermata" {
			return c
		}
	}
	b.Fatal("there is no session")
	return nil
}

// set sets a cookie in the browser.
func (b *browser) set(name, value string) {
	here, err := url.Parse(b.url)
	if err != nil {
		b.Fatal(err)
	}
	b.client.Jar.SetCookies(here, []*http.Cookie{{Name: name, Value: value, Path: "/", Secure: b.listener.TLS != nil}})
}
