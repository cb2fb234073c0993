package page

import (
	"bytes"
	"cmp"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/language"
	"github.com/fermata-go/fermata/internal/safehtml"
	"github.com/fermata-go/fermata/internal/web/texts"
)

// Visit is one request of a browser for a page.
type Visit struct {
	*http.Request
	Shell *Shell
	// W is for responses other than pages, and for cookies.
	W http.ResponseWriter
	// API calls the JSON API as the signed-in person.
	API *client.Client
	// Me is the signed-in person; empty on error pages without a session.
	Me   api.Me
	Now  time.Time
	Zone *time.Location
	// Language is that of the viewer, and Texts are its texts.
	Language string
	Texts    texts.Translation
}

const (
	// maxForm is the maximum size of a form in bytes.
	maxForm = 4 << 20
	// maxKept is the maximum size in bytes of a form without a session that can be sent again.
	maxKept = 16 << 10
)

// cookie returns a cookie with a value that is not confidential. Browsers send it to this host
// only.
func (v *Visit) cookie(name, value string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: v.cookieName(name), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: v.Secure(), SameSite: http.SameSiteLaxMode}
}

// Secure reports whether browsers use TLS, to this server or to a proxy in front of it.
func (v *Visit) Secure() bool { return v.Shell.Config.TLS || v.TLS != nil }

// cookieName returns the name of a cookie in the browser, which ties it to this host with TLS.
func (v *Visit) cookieName(name string) string {
	if v.Secure() {
		return "__Host-" + name
	}
	return name
}

func (s *Shell) newVisit(w http.ResponseWriter, r *http.Request) *Visit {
	v := &Visit{Request: r, Shell: s, W: w, API: apiClient(s.Config.API, w, r), Now: s.Config.Now(), Zone: zoneOf(r), Language: language.Of(r)}
	v.Texts = s.Config.Languages[v.Language]
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	return v
}

// T returns a text; see [texts.Translation.Text].
func (v *Visit) T(key string, args ...any) string { return v.Texts.Text(key, args...) }

// TN returns a text with a number; see [texts.Translation.Count].
func (v *Visit) TN(key string, n int, args ...any) string {
	return v.Texts.Count(key, n, args...)
}

// A Handler makes the response to a visit.
type Handler func(v *Visit) (Response, error)

// A Response answers a visit: a page, a fragment, a redirect, JSON or a download.
type Response interface {
	// Write writes the whole response, or nothing if it returns an error.
	Write(v *Visit) error
}

// Page is a response: a whole page.
type Page struct {
	// Name is the name of the template file without its extension.
	Name string
	// Title is the title of the window, already translated.
	Title string
	// Nav is the path of the current entry of the navigation. Defaults to that of the request.
	Nav string
	// Status defaults to 200.
	Status int
	// Scripts are modules in static/ that the page needs in addition to app.js.
	Scripts []string
	// TrustedTypes is the Trusted Types policy that the page's scripts may create; "" for none.
	TrustedTypes string
	Data         any
}

// layout is the data of a page's templates.
type layout struct {
	Page
	*Visit
	Nav   []navGroup
	Notes []note
}

// Path returns the path with the query, for links back to this page.
func (d layout) Path() string { return d.Visit.URL.RequestURI() }

// SignInURL returns the sign-in page that leads back to this page.
func (d layout) SignInURL() string {
	back := d.Visit.URL.RequestURI()
	if d.Method != http.MethodGet {
		back = d.Shell.pageOfForm(d.Request)
	}
	return "/signin?return=" + url.QueryEscape(back)
}

// pageOfForm returns the page that a form was sent from: its own path if that is a page, otherwise
// the page above it.
func (s *Shell) pageOfForm(r *http.Request) string {
	for at := r.URL.Path; len(at) > 1; at = path.Dir(at) {
		_, pattern := s.mux.Handler(&http.Request{Method: http.MethodGet, Host: r.Host, URL: &url.URL{Path: at}})
		if !strings.HasPrefix(pattern, "GET ") {
			continue
		}
		if like := r.PostForm.Get("like"); like != "" { // of a batch
			at += "?like=" + url.QueryEscape(like)
		}
		return at
	}
	return "/inbox"
}

func (p Page) Write(v *Visit) error {
	s := v.Shell
	if p.Nav == "" {
		p.Nav = v.URL.Path
	}
	if p.Status == 0 {
		p.Status = http.StatusOK
	}
	p.Title = safehtml.Plain(p.Title) // it may be a name that an agent chose
	data := layout{Page: p, Visit: v, Nav: s.navigation(v, p.Nav), Notes: v.takeNotes()}
	return s.render(v.W, p.Status, p.TrustedTypes, s.templates[v.Language][p.Name], "shell", data)
}

// Fragment is a part of a page, for live updates: a template of the page's file.
type Fragment struct {
	Name, Part string
	// Status defaults to 200.
	Status int
	Data   any
}

func (f Fragment) Write(v *Visit) error {
	return v.Shell.render(v.W, cmp.Or(f.Status, http.StatusOK), "", v.Shell.templates[v.Language][f.Name], f.Part, layout{Page: Page{Name: f.Name, Data: f.Data}, Visit: v})
}

// render writes the result of a template, or nothing if it fails.
func (s *Shell) render(w http.ResponseWriter, status int, trustedTypes string, t *template.Template, name string, data any) error {
	var text bytes.Buffer
	if err := t.ExecuteTemplate(&text, name, data); err != nil {
		return err
	}
	setPageHeaders(w.Header(), trustedTypes)
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // a disconnected client does not read it
	return nil
}

// ContentPolicy is the content security policy of all pages. On pages with a Trusted Types policy
// it ends with its name.
const ContentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

func setPageHeaders(h http.Header, trustedTypes string) {
	h.Set("Content-Type", "text/html; charset=utf-8")
	policy := ContentPolicy
	if trustedTypes != "" {
		policy = strings.TrimSuffix(policy, "'none'") + trustedTypes
	}
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}

// Redirect leads to another page of this site with status 303.
type Redirect struct {
	To string
	// Note is the key of a text that the next page shows once, such as note.approved.
	Note string
}

func (r Redirect) Write(v *Visit) error {
	if r.Note != "" {
		v.leaveNote(r.Note)
	}
	v.W.Header().Set("Cache-Control", "no-store")
	http.Redirect(v.W, v.Request, r.To, http.StatusSeeOther)
	return nil
}

// JSON is a response for a script.
type JSON struct {
	Status int
	Body   any
}

func (a JSON) Write(v *Visit) error {
	text, err := json.Marshal(a.Body)
	if err != nil {
		return err
	}
	v.W.Header().Set("Content-Type", "application/json")
	v.W.Header().Set("Cache-Control", "no-store")
	v.W.WriteHeader(a.Status)
	_, _ = v.W.Write(text) // a disconnected client does not read it
	return nil
}

// NoContent is a response without a body, for a script.
type NoContent struct{}

func (NoContent) Write(v *Visit) error {
	v.W.WriteHeader(http.StatusNoContent)
	return nil
}
