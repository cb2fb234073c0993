package web

import (
	"bytes"
	"context"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

// visit is one request of a browser for a page.
type visit struct {
	*http.Request
	site *Site
	w    http.ResponseWriter
	// api calls the JSON API as the signed-in person.
	api *client.Client
	// Me is the signed-in person; empty on error pages without a session.
	Me   api.Me
	Now  time.Time
	Zone *time.Location
}

// maxForm is the maximum size of a form in bytes.
const maxForm = 4 << 20

func (s *Site) newVisit(w http.ResponseWriter, r *http.Request) *visit {
	v := &visit{Request: r, site: s, w: w, api: apiClient(s.config.API, w, r), Now: s.config.Now(), Zone: zoneOf(r)}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	return v
}

// ctx returns the context of the request.
func (v *visit) ctx() context.Context { return v.Request.Context() }

// t returns a text; see [translation.text].
func (v *visit) t(key string, args ...any) string { return v.site.texts.text(key, args...) }

// tn returns a text with a number; see [translation.count].
func (v *visit) tn(key string, n int, args ...any) string { return v.site.texts.count(key, n, args...) }

// A handler makes the response to a visit.
type handler func(s *Site, v *visit) (response, error)

// A response is a page, a fragment or a redirect.
type response interface {
	write(s *Site, v *visit) error
}

// page is a whole page.
type page struct {
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

// shell is the data of a page's templates.
type shell struct {
	page
	*visit
	Nav   []navGroup
	Notes []string
}

// Path returns the path with the query, for links back to this page.
func (d shell) Path() string { return d.visit.URL.RequestURI() }

// SignInURL returns the sign-in page that leads back to this page.
func (d shell) SignInURL() string {
	back := d.visit.URL.RequestURI()
	if d.Method != http.MethodGet {
		back = d.site.pageOfForm(d.Request)
	}
	return "/signin?return=" + url.QueryEscape(back)
}

// pageOfForm returns the page that a form was sent from: its own path if that is a page, otherwise
// the page above it.
func (s *Site) pageOfForm(r *http.Request) string {
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

func (p page) write(s *Site, v *visit) error {
	if p.Nav == "" {
		p.Nav = v.URL.Path
	}
	if p.Status == 0 {
		p.Status = http.StatusOK
	}
	data := shell{page: p, visit: v, Nav: s.navigation(v, p.Nav), Notes: v.takeNotes()}
	return s.render(v.w, p.Status, p.TrustedTypes, s.templates[p.Name], "shell", data)
}

// fragment is a part of a page, for live updates: a template of the page's file.
type fragment struct {
	Name, Part string
	Data       any
}

func (f fragment) write(s *Site, v *visit) error {
	return s.render(v.w, http.StatusOK, "", s.templates[f.Name], f.Part, shell{page: page{Name: f.Name, Data: f.Data}, visit: v})
}

// render writes the result of a template, or nothing if it fails.
func (s *Site) render(w http.ResponseWriter, status int, trustedTypes string, t *template.Template, name string, data any) error {
	var text bytes.Buffer
	if err := t.ExecuteTemplate(&text, name, data); err != nil {
		return err
	}
	setPageHeaders(w.Header(), trustedTypes)
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // a disconnected client does not read it
	return nil
}

// contentPolicy is the content security policy of all pages. On pages with a Trusted Types policy
// it ends with its name.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

func setPageHeaders(h http.Header, trustedTypes string) {
	h.Set("Content-Type", "text/html; charset=utf-8")
	policy := contentPolicy
	if trustedTypes != "" {
		policy = strings.TrimSuffix(policy, "'none'") + trustedTypes
	}
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}

// redirect leads to another page of this site with status 303.
type redirect struct {
	To string
	// Note is the key of a text that the next page shows once, such as note.approved.
	Note string
}

func (r redirect) write(_ *Site, v *visit) error {
	if r.Note != "" {
		v.leaveNote(r.Note)
	}
	v.w.Header().Set("Cache-Control", "no-store")
	http.Redirect(v.w, v.Request, r.To, http.StatusSeeOther)
	return nil
}
