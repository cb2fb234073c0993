package web_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/sample"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/web"
	"github.com/fermata-go/fermata/internal/web/page"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

// open starts a server with the sample graphs and the pages.
func open(t *testing.T, change ...func(*webtest.Config)) *webtest.Server {
	t.Helper()
	graphs, err := sample.Graphs()
	if err != nil {
		t.Fatal(err)
	}
	config := webtest.Config{Graphs: graphs, Site: func(api http.Handler) (http.Handler, error) { return web.New(web.Config{API: api}) }}
	for _, c := range change {
		c(&config)
	}
	return webtest.Open(t, config)
}

// want fails unless a page has a status and contains texts.
func want(t *testing.T, got webtest.Response, status int, texts ...string) {
	t.Helper()
	if got.Status != status {
		t.Fatalf("status %d, want %d\n%s", got.Status, status, got.Body)
	}
	for _, text := range texts {
		if !strings.Contains(got.Body, text) {
			t.Errorf("the page does not contain %q\n%s", text, got.Body)
		}
	}
}

func TestNew_NeedsAPI(t *testing.T) {
	if _, err := web.New(web.Config{}); err == nil {
		t.Error("no error")
	}
}

func TestPages_HaveSecurityHeaders(t *testing.T) {
	s := open(t)
	b := s.SignIn("ann")
	for _, path := range []string{"/inbox", "/nowhere"} {
		got := b.Get(path)
		if h := got.Header.Get("Content-Security-Policy"); h != web.Policy {
			t.Errorf("%s: %q", path, h)
		}
		if got.Header.Get("X-Content-Type-Options") != "nosniff" || got.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", path, got.Header)
		}
		for _, bad := range []string{" style=", "<style", " onclick", "javascript:"} {
			if strings.Contains(got.Body, bad) {
				t.Errorf("%s: contains %q, which the policy forbids", path, bad)
			}
		}
	}
}

func TestPages_WithoutSessionAskToSignIn(t *testing.T) {
	got := open(t).Visitor().Get("/inbox?tab=all")
	want(t, got, http.StatusUnauthorized, "/signin?return=%2Finbox%3Ftab%3Dall")
}

// A form that is sent without a session leads back to its page, which exists.
func TestPages_FormWithoutSessionLeadsToItsPage(t *testing.T) {
	b := open(t).Visitor()
	for form, page := range map[string]string{
		"/requests/int_1/approve": "/requests/int_1/approve", "/policies/explain": "/policies", "/me/passkeys/p1/rename": "/me", "/admin/members/m1/remove": "/admin", "/runs/tea/cancel": "/runs/tea",
	} {
		want(t, b.Post(form, "text", "typed"), http.StatusUnauthorized, `/signin?return=`+url.QueryEscape(page)+`"`, "typed")
	}
	want(t, b.Post("/batch", "like", "int_1"), http.StatusUnauthorized, `/signin?return=%2Fbatch%3Flike%3Dint_1"`)
}

// countedBody counts the bytes that a page has read.
type countedBody struct {
	io.Reader
	read int
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += n
	return n, err
}

// The form of a visitor without a session is read only if it is small, so that it can be sent again
// after signing in.
func TestPages_LargeFormWithoutSessionIsNotRead(t *testing.T) {
	var site http.Handler
	open(t, func(c *webtest.Config) {
		c.Site = func(api http.Handler) (_ http.Handler, err error) {
			site, err = web.New(web.Config{API: api})
			return site, err
		}
	})
	for _, size := range []int{100, 1 << 20, -1} {
		for _, path := range []string{"/inbox/views", "/requests/int_1/approve", "/chat/messages", "/me/notifications"} {
			body := &countedBody{Reader: strings.NewReader("text=typed" + strings.Repeat("x", max(size, 1<<10)))}
			r := httptest.NewRequest(http.MethodPost, path, body)
			r.ContentLength = int64(size)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			site.ServeHTTP(w, r)
			if w.Code < 400 || size != 100 && body.read > 0 {
				t.Errorf("%s with %d bytes: %d bytes read, status %d", path, size, body.read, w.Code)
			}
		}
	}
}

// lateWriter is a connection whose deadline for writing was set by the previous response.
type lateWriter struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (w *lateWriter) SetWriteDeadline(at time.Time) error {
	w.deadline = at
	return nil
}

func (w *lateWriter) Write(data []byte) (int, error) {
	if !w.deadline.IsZero() && time.Now().After(w.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	return w.ResponseRecorder.Write(data)
}

// A response arrives although the deadline of the previous one on the connection has passed.
func TestPages_DeadlineIsThatOfTheResponse(t *testing.T) {
	var site http.Handler
	b := open(t, func(c *webtest.Config) {
		c.Site = func(api http.Handler) (_ http.Handler, err error) {
			site, err = web.New(web.Config{API: api})
			return site, err
		}
	}).Visitor()
	asset := regexp.MustCompile(`/static/[^"]+\.css`).FindString(b.Get("/inbox").Body)
	for _, path := range []string{asset, "/inbox", "/openapi.json", "/manifest.webmanifest"} {
		w := &lateWriter{ResponseRecorder: httptest.NewRecorder(), deadline: time.Now().Add(-time.Minute)}
		if site.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil)); w.Body.Len() == 0 {
			t.Errorf("%s: nothing is written", path)
		}
	}
}

// Pages have the limits of the server.
func TestPages_HaveTheLimitsOfTheServer(t *testing.T) {
	called := 0
	site, err := web.New(web.Config{API: &limited{Handler: failing{http.StatusNotFound}, called: &called}})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/inbox", "/me"} {
		w := httptest.NewRecorder()
		if site.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil)); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "<html") {
			t.Errorf("%s: %d, %s", path, w.Code, w.Body)
		}
	}
	if called != 2 {
		t.Errorf("the limits were applied %d times", called)
	}
}

// limited is a server that is overloaded.
type limited struct {
	http.Handler
	called *int
}

var _ page.Limiter = (*limited)(nil)
var _ page.Limiter = (*server.Server)(nil)

func (l *limited) Admit(_ http.Handler, rejected func(http.ResponseWriter, *http.Request, *api.Problem)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*l.called++
		rejected(w, r, &api.Problem{Status: http.StatusServiceUnavailable, Code: "unavailable"})
	})
}

func TestPages_HomeLeadsToInbox(t *testing.T) {
	b := open(t).SignIn("ann")
	want(t, b.Follow(b.Get("/")), http.StatusOK, `aria-current="page"`)
}

func TestPages_ForbiddenByRole(t *testing.T) {
	want(t, open(t).SignIn("bot", authn.RoleAgent).Get("/inbox"), http.StatusForbidden, "You may not see this page")
}

func TestPages_UnknownPath(t *testing.T) {
	s := open(t)
	want(t, s.SignIn("ann").Get("/nowhere"), http.StatusNotFound, "There is no such page", `href="/inbox"`)
	want(t, s.Visitor().Get("/nowhere"), http.StatusNotFound, "There is no such page")
	response, err := http.Get(s.URL + "/nowhere") // a program
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); kind != "application/problem+json" {
		t.Errorf("a program gets %s", kind)
	}
}

func TestPages_APIOnTheSameAddress(t *testing.T) {
	b := open(t).SignIn("ann")
	want(t, b.Get("/api/v1/me"), http.StatusOK, `"principal":"ann"`)
	want(t, b.Get("/openapi.json"), http.StatusOK, `"openapi"`)
}

func TestPages_CrossOriginFormIsRejected(t *testing.T) {
	s := open(t)
	b := s.SignIn("ann")
	r := httptest.NewRequest(http.MethodPost, s.URL+"/signout", nil)
	r.RequestURI = ""
	r.Header.Set("Origin", "https://evil.example")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if got := b.Do(r); got.Status != http.StatusForbidden {
		t.Errorf("%d", got.Status)
	}
	want(t, b.Get("/inbox"), http.StatusOK)
}

// failing is an API that answers everything with one status.
type failing struct{ status int }

func (f failing) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(f.status)
	io.WriteString(w, fmt.Sprintf(`{"code":"x","status":%d,"detail":"the disk is full"}`, f.status))
}

func TestPages_ServerCannotWrite(t *testing.T) {
	site, err := web.New(web.Config{API: failing{http.StatusServiceUnavailable}})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	site.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/inbox", nil))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "The server cannot write now") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// broken is an API that panics.
type broken struct{}

func (broken) ServeHTTP(http.ResponseWriter, *http.Request) { panic(errors.New("secret run data")) }

func TestPages_PanicIsAnErrorPage(t *testing.T) {
	site, err := web.New(web.Config{API: broken{}})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	site.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/inbox", nil))
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestStatic_IsCompressedAndImmutable(t *testing.T) {
	site, err := web.New(web.Config{API: failing{http.StatusNotFound}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"app.css", "app.js", "icon.svg"} {
		r := httptest.NewRequest(http.MethodGet, site.StaticPath(name), nil)
		r.Header.Set("Accept-Encoding", "gzip, br")
		w := httptest.NewRecorder()
		site.ServeHTTP(w, r)
		if w.Code != http.StatusOK || w.Header().Get("Content-Encoding") != "gzip" || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
	w := httptest.NewRecorder()
	site.ServeHTTP(w, httptest.NewRequest(http.MethodGet, site.StaticPath("app.js")+"x", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("unknown file: %d", w.Code)
	}
}

// Browsers install the pages with the icons of the manifest.
func TestManifest_IconsExistWithTheirSizes(t *testing.T) {
	site, err := web.New(web.Config{API: failing{http.StatusNotFound}})
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		site.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d", path, w.Code)
		}
		return w
	}
	var manifest struct {
		Name    string
		Start   string `json:"start_url"`
		Display string
		Icons   []struct{ Src, Sizes, Type, Purpose string }
	}
	if err := json.Unmarshal(get("/manifest.webmanifest").Body.Bytes(), &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Name == "" || manifest.Start != "/inbox" || manifest.Display != "standalone" {
		t.Errorf("%+v", manifest)
	}
	purposes := make(map[string]bool)
	for _, icon := range manifest.Icons {
		w := get(icon.Src)
		if kind := w.Header().Get("Content-Type"); kind != icon.Type {
			t.Errorf("%s: %s, want %s", icon.Src, kind, icon.Type)
		}
		if icon.Type == "image/png" {
			c, err := png.DecodeConfig(w.Body)
			if got := fmt.Sprintf("%dx%d", c.Width, c.Height); err != nil || got != icon.Sizes {
				t.Errorf("%s: %s, want %s (%v)", icon.Src, got, icon.Sizes, err)
			}
		}
		purposes[icon.Purpose+" "+icon.Sizes] = true
	}
	for _, needed := range []string{"any 192x192", "any 512x512", "maskable 512x512"} {
		if !purposes[needed] {
			t.Errorf("no icon %s", needed)
		}
	}
}
