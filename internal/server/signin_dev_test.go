package server_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
)

var devPrincipal = authn.Principal{Account: "demo", ID: "you", Roles: []authn.Role{authn.RoleAdmin}}

// openDevSite is a server as a developer starts it: without an identity provider.
func openDevSite(t *testing.T) *signInSite {
	t.Helper()
	return openSignInSite(t, signInOptions{change: func(c *server.Config) { c.SignIn.OIDC = nil }})
}

func (p *signInSite) devLink(path string) string {
	p.Helper()
	link, err := p.server.DevLink(p.listener.Listener.Addr(), devPrincipal, path)
	if err != nil {
		p.Fatal(err)
	}
	return link
}

func TestDevLink_WorksOnce(t *testing.T) {
	p := openDevSite(t)
	link := p.devLink("/inbox")
	b, late := p.browser(), p.browser()
	// link checkers do not use up links
	if got := late.send("HEAD", link, ""); got.status != 204 || len(late.cookies()) > 0 {
		t.Errorf("%+v", got)
	}
	if got := b.get(link); got.status != 303 || got.header.Get("Location") != "/inbox" {
		t.Fatalf("%+v", got)
	}
	if me := b.get("/api/v1/me"); !strings.Contains(me.body, `"principal":"you"`) || !strings.Contains(me.body, `"method":"dev"`) || !strings.Contains(me.body, `"admin"`) {
		t.Errorf("%+v", me)
	}
	if got := b.get(link); got.status != 303 {
		t.Errorf("the same browser again: %+v", got)
	}
	if got := late.get(link); got.status != 400 || late.get("/api/v1/me").status != 401 {
		t.Errorf("another browser with the link: %+v", got)
	}
	if got := b.send("POST", "/signout", ""); got.status != 303 || b.get("/api/v1/me").status != 401 {
		t.Errorf("%+v", got)
	}
	if got := b.get(link); got.status != 400 {
		t.Errorf("after signing out: %+v", got)
	}
}

// The link of the demo leads to "/". It used to lead to a 404 in JSON.
func TestDevLink_RedirectsToHomePage(t *testing.T) {
	p := openDevSite(t)
	b := p.browser()
	if got := b.get("/"); got.status != 303 || got.header.Get("Location") != "/signin" {
		t.Errorf("unauthenticated: %+v", got)
	}
	if got := b.get(p.devLink("/")); got.header.Get("Location") != "/" {
		t.Fatalf("%+v", got)
	}
	got := b.get("/")
	if got.status != 200 || !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") || !strings.Contains(got.body, "You are you of demo") {
		t.Errorf("%+v", got)
	}
	for _, there := range []string{"/api/v1/requests", "/api/v1/runs", "/openapi.json"} {
		if !strings.Contains(got.body, `href="`+there+`"`) || b.get(there).status != 200 {
			t.Errorf("it does not link to %s", there)
		}
	}
	if got := b.get("/", "Accept", "*/*"); got.status != 404 || got.field("code") != "not_found" {
		t.Errorf("a program: %+v", got)
	}
}

func TestDevLink_Expires(t *testing.T) {
	p := openDevSite(t)
	link := p.devLink("/")
	p.advance(time.Hour)
	if got := p.browser().get(link); got.status != 403 {
		t.Errorf("%+v", got)
	}
}

func TestDevLink_ForgedLinkIsRejected(t *testing.T) {
	p := openDevSite(t)
	link := p.devLink("/")
	for _, bad := range []string{"/s/x", "/s/" + strings.Repeat("a", 12), link[:len(link)-4] + "aaaa"} {
		if got := p.browser().get(bad); got.status != 403 {
			t.Errorf("%s: %+v", bad, got)
		}
	}
}

func TestDevLink_NeedsALoopbackListener(t *testing.T) {
	p := openDevSite(t)
	for _, addr := range []net.Addr{
		&net.TCPAddr{IP: net.IPv4zero, Port: 8080}, &net.TCPAddr{IP: net.IPv6zero, Port: 8080}, &net.TCPAddr{Port: 8080}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8080},
		&net.UnixAddr{Name: "socket", Net: "unix"}, nil,
	} {
		if link, err := p.server.DevLink(addr, devPrincipal, "/"); !errors.Is(err, authn.ErrNotLoopback) || link != "" {
			t.Errorf("%v: %q, %v", addr, link, err)
		}
	}
	if got := p.browser().get("/s/x"); got.status != 404 {
		t.Errorf("it works although no link was created: %+v", got)
	}
	for _, addr := range []net.Addr{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, &net.TCPAddr{IP: net.IPv6loopback, Port: 8080}} {
		if link, err := p.server.DevLink(addr, devPrincipal, "/"); err != nil || !strings.HasPrefix(link, "http://"+addr.String()+"/s/") {
			t.Errorf("%v: %q, %v", addr, link, err)
		}
	}
	public := openSignInSite(t, signInOptions{tls: true})
	if _, err := public.server.DevLink(public.listener.Listener.Addr(), devPrincipal, "/"); err == nil {
		t.Error("a server with a public URL allows development sign-in")
	}
	for _, who := range []authn.Principal{{}, {Account: "demo", ID: "you"}, {ID: "you", Roles: authn.Roles}, {Account: "demo", Roles: authn.Roles}} {
		if _, err := p.server.DevLink(p.listener.Listener.Addr(), who, "/"); err == nil {
			t.Errorf("%+v got a link", who)
		}
	}
}

// remoteRequests are ways in which a request shows that it does not come directly from this
// machine.
var remoteRequests = map[string]func(*http.Request){
	"another machine":     func(r *http.Request) { r.RemoteAddr = "192.0.2.1:4711" },
	"another machine, v6": func(r *http.Request) { r.RemoteAddr = "[2001:db8::1]:4711" },
	"nowhere":             func(r *http.Request) { r.RemoteAddr = "@" },
	"a proxy":             func(r *http.Request) { r.Header.Set("X-Forwarded-For", "127.0.0.1") },
	"a modern proxy":      func(r *http.Request) { r.Header.Set("Forwarded", "for=127.0.0.1") },
	"a TLS proxy":         func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") },
	"a proxy with a host": func(r *http.Request) { r.Header.Set("X-Forwarded-Host", "localhost") },
	"nginx":               func(r *http.Request) { r.Header.Set("X-Real-IP", "127.0.0.1") },
	"a content network":   func(r *http.Request) { r.Header.Set("CF-Connecting-IP", "127.0.0.1") },
	"an old proxy":        func(r *http.Request) { r.Header.Set("Via", "1.1 proxy") },
	"a rebound name":      func(r *http.Request) { r.Host = "elsewhere.example:8080" },
	"a similar name":      func(r *http.Request) { r.Host = "127.0.0.1.elsewhere.example" },
	"a foreign localhost": func(r *http.Request) { r.Host = "localhost.elsewhere.example" },
	"no host":             func(r *http.Request) { r.Host = "" },
	"a public address":    func(r *http.Request) { r.Host = "192.0.2.1:8080" },
}

func (p *signInSite) direct(path, cookie string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	r.RemoteAddr, r.Host = "127.0.0.1:4711", "127.0.0.1:8080"
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	p.server.ServeHTTP(w, r)
	return w
}

func TestDevLink_RemoteRequestsAreRejected(t *testing.T) {
	p := openDevSite(t)
	path := strings.TrimPrefix(p.devLink("/"), p.url)
	for name, change := range remoteRequests {
		if w := p.direct(path, "", change); w.Code != 403 || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("from %s: %d %s", name, w.Code, w.Body)
		}
	}
	here := p.direct(path, "", nil)
	cookie, _, _ := strings.Cut(here.Header().Get("Set-Cookie"), ";")
	if here.Code != 303 || cookie == "" {
		t.Fatalf("from here: %d %s", here.Code, here.Body)
	}
	for name, change := range remoteRequests { // the resulting session, too
		if w := p.direct("/api/v1/me", cookie, change); w.Code != 401 {
			t.Errorf("a session from %s: %d %s", name, w.Code, w.Body)
		}
	}
	for name, change := range map[string]func(*http.Request){
		"itself":     nil,
		"localhost":  func(r *http.Request) { r.Host = "LOCALHOST" },
		"v6":         func(r *http.Request) { r.RemoteAddr, r.Host = "[::1]:4711", "[::1]:8080" },
		"v6 port 80": func(r *http.Request) { r.RemoteAddr, r.Host = "[::1]:4711", "[::1]" },
		"v4 in v6":   func(r *http.Request) { r.RemoteAddr = "[::ffff:127.0.0.1]:4711" },
	} {
		if w := p.direct("/api/v1/me", cookie, change); w.Code != 200 {
			t.Errorf("a session from %s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestSignIn_WithoutProviderShowsInstructions(t *testing.T) {
	p := openDevSite(t)
	b := p.browser()
	if got := b.get("/signin"); got.status != 200 || !strings.Contains(got.body, "open the link of your invitation") {
		t.Errorf("%+v", got)
	}
	if got := b.get("/signin/callback?state=x&code=y"); got.status != 404 {
		t.Errorf("%+v", got)
	}
}

func TestSignIn_NotConfiguredIsNotFound(t *testing.T) {
	s := open(t, nil)
	for _, path := range []string{"/signin", "/signin/callback", "/signin/dev"} {
		if got := s.call("", "GET", path, ""); got.status != 404 {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if _, err := s.server.DevLink(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, devPrincipal, "/"); err == nil {
		t.Error("a link to a missing page")
	}
	if got := s.call("agent@acme", "GET", "/api/v1/me", ""); got.status != 200 || got.field("principal") != "agent" {
		t.Errorf("%+v", got)
	}
}
