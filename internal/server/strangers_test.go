package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
)

// countedBody counts the bytes that a server has read.
type countedBody struct {
	io.Reader
	read int
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += n
	return n, err
}

// A sign-in form is read up to its maximum size.
func TestSignIn_FormIsLimited(t *testing.T) {
	p := openMemberSite(t)
	for _, path := range []string{"/signin/password", "/signin/invitation", "/signin/invitation/options", "/signin/passkey", "/signin/passkey/options"} {
		for kind, status := range map[string]int{"application/x-www-form-urlencoded": http.StatusRequestEntityTooLarge, "multipart/form-data; boundary=x": 0} {
			body := &countedBody{Reader: strings.NewReader("name=ann&password=" + strings.Repeat("x", 1<<20))}
			r := httptest.NewRequest(http.MethodPost, path, body)
			r.Header.Set("Content-Type", kind)
			w := httptest.NewRecorder()
			p.server.ServeHTTP(w, r)
			if body.read > 32<<10 || status != 0 && w.Code != status {
				t.Errorf("%s as %s: status %d, %d bytes read", path, kind, w.Code, body.read)
			}
		}
	}
}

// With a public address that has TLS, session cookies are for TLS and this host only, also if a
// proxy in front of the server has the certificate.
func TestSignIn_CookiesAreSecureBehindAProxy(t *testing.T) {
	for _, public := range []string{"https://fermata.example", "http://fermata.example"} {
		p := openSignInSite(t, signInOptions{change: func(c *server.Config) { c.SignIn.OIDC, c.SignIn.PublicURL = nil, public }})
		b := p.browser()
		done := b.accept(p.invite(p.key("acme", authn.RoleAdmin), "bob"), goodPassword)
		c, err := http.ParseSetCookie(done.header.Get("Set-Cookie"))
		if err != nil {
			t.Fatal(err, done)
		}
		if tls := strings.HasPrefix(public, "https:"); c.Secure != tls || strings.HasPrefix(c.Name, "__Host-") != tls {
			t.Errorf("%s: %+v", public, c)
		}
	}
}

// The limits of the server apply to handlers in front of it. Their calls of the API use the same
// permits.
func TestAdmit_SharesPermitsWithCallsInProcess(t *testing.T) {
	s := open(t, func(c *server.Config) { c.Limits.InFlight = 1 })
	page := s.server.Admit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := s.request("approver@acme", "GET", "/api/v1/requests", "").WithContext(r.Context())
		call.RequestURI = call.URL.Path
		got := httptest.NewRecorder()
		s.server.ServeHTTP(got, call)
		w.WriteHeader(got.Code)
	}), nil)
	for n := range 3 { // the permits are released
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/inbox", nil)
		r.Header.Set("Authorization", "Bearer approver@acme")
		if page.ServeHTTP(w, r); w.Code != http.StatusOK {
			t.Errorf("request %d: %d", n, w.Code)
		}
	}
}

// Without permits a handler in front of the server is not called.
func TestAdmit_RejectsWithoutPermits(t *testing.T) {
	s := open(t, func(c *server.Config) { c.Limits.InFlight = 1 })
	release, in, served := make(chan struct{}), make(chan struct{}), make(chan struct{})
	rejected := func(w http.ResponseWriter, _ *http.Request, p *api.Problem) { w.WriteHeader(p.Status) }
	busy := s.server.Admit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		in <- struct{}{}
		<-release
	}), rejected)
	status := func() int {
		w := httptest.NewRecorder()
		busy.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/inbox/views", strings.NewReader("q=x")))
		return w.Code
	}
	go func() {
		status()
		close(served)
	}()
	<-in
	if got := status(); got != http.StatusServiceUnavailable {
		t.Errorf("%d", got)
	}
	close(release)
	<-served
}

// readingChannel reads the bodies of all requests, as a channel that verifies their signature.
type readingChannel struct {
	channel.Channel
	read    chan error
	release chan struct{}
}

func (c *readingChannel) Kind() string { return "reading" }

func (c *readingChannel) Handler(channel.Desk) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		c.read <- err
		<-c.release
	})
}

// The bodies of channels that are read at the same time have a maximum size in total and for each
// source, which is free again when their requests end.
func TestChannelHandler_UnverifiedBodiesAreLimited(t *testing.T) {
	s := open(t, nil)
	c := &readingChannel{read: make(chan error), release: make(chan struct{})}
	h := s.server.ChannelHandler(http.NotFoundHandler(), []channel.Channel{c}, nil)
	send := func(source string) error {
		r := httptest.NewRequest(http.MethodPost, "/channels/reading/x", strings.NewReader(strings.Repeat("x", 1<<20)))
		r.RemoteAddr = source + ":1"
		go h.ServeHTTP(httptest.NewRecorder(), r)
		return <-c.read
	}
	if err := send("203.0.113.1"); err != nil {
		t.Fatal(err)
	}
	if err := send("203.0.113.1"); err == nil {
		t.Error("one source uses more than its share")
	}
	for _, source := range []string{"203.0.113.2", "203.0.113.3"} {
		if err := send(source); err != nil {
			t.Fatalf("a stalled source blocks %s: %v", source, err)
		}
	}
	if err := send("203.0.113.4"); err == nil {
		t.Error("more than the maximum is read")
	}
	close(c.release)
	for send("203.0.113.1") != nil { // the requests are ending
	}
}
