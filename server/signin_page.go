package server

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"html/template"
	"net/http"
	"strings"

	"github.com/fermata-go/fermata/api"
)

// pageContent is a page: a few words, and links.
type pageContent struct {
	Status      int
	Title, Body string
	Links       []pageLink
}

// pageLink leads from a page to a path of this server.
type pageLink struct{ Text, Where string }

var pageNoIDP = pageContent{
	Status: http.StatusOK, Title: "Sign in",
	Body: "This server has no identity provider. Open the link that it printed when it started; if it printed none, ask whoever runs it.",
}

// pageHome is for somebody who signed in. There is nothing to decide on with here yet, so it says what there is instead.
func pageHome(who Principal) pageContent {
	return pageContent{
		Status: http.StatusOK, Title: "You are signed in",
		Body: "You are " + cmp.Or(who.Name, who.ID) + " of " + who.Account + " here. There are no pages to decide on yet: fermata inbox in a terminal " +
			"shows what people are asked. As JSON, there is:",
		Links: []pageLink{{"what people are asked", api.Prefix + "/requests"}, {"what runs", api.Prefix + "/runs"}, {"all that programs can call", "/openapi.json"}},
	}
}

func pageSignedOut(again bool) pageContent {
	t := pageContent{Status: http.StatusOK, Title: "You are signed out", Body: "Your identity provider may still know you: whoever uses this browser next could sign in as you there."}
	if again {
		t.Links = []pageLink{{"Sign in again", "/signin"}}
	}
	return t
}

const style = `:root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem}`

var layout = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.Title}} – Fermata</title><style>` + style + `</style></head>
<body><main><h1>{{.Title}}</h1><p>{{.Body}}</p>{{range .Links}}<p><a href="{{.Where}}">{{.Text}}</a></p>{{end}}</main></body>
</html>
`))

var pagePolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
}()

func (s *Server) writePage(w http.ResponseWriter, t pageContent) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(t.Status)
	if err := layout.Execute(w, t); err != nil {
		s.config.Log.Debug("a page could not be written", "err", err)
	}
}

// wantsHTML reports whether a person looks at the answer.
func wantsHTML(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// refuseSignIn says why somebody is not let in: as a page to a person, as a problem to a program. What went wrong in detail may hold what others
// should not see, so only problems of ours are told.
func (s *Server) rejectSignIn(w http.ResponseWriter, r *http.Request, err error) {
	p, ok := errors.AsType[*Problem](err)
	switch {
	case ok:
	case errors.Is(err, errProofUsed):
		p = problem("bad_request", "this sign-in was used before")
	case errors.Is(err, errCookieTooLong):
		p = problem("forbidden", "%v", errCookieTooLong)
	default:
		p = overloaded("signing in is not possible at the moment")
	}
	s.logSignInFailure(p, err)
	s.metrics.countRejected(p.Code)
	if !wantsHTML(r) {
		writeProblem(w, p)
		return
	}
	for name, values := range p.GetHeaders() {
		w.Header()[name] = values
	}
	t := pageContent{Status: p.Status, Title: "Not signed in", Body: sentence(p.Detail)}
	if s.sessions.idp != nil {
		t.Links = []pageLink{{"Start again", "/signin"}}
	}
	s.writePage(w, t)
}

// noteSignIn has it in the log why somebody was not let in. Anybody can have it said as often as they like, so it is not said each time.
func (s *Server) logSignInFailure(p *Problem, err error) {
	if p.Status < http.StatusInternalServerError {
		if left, ok := s.rejectionLog.Allow(); ok {
			s.config.Log.Info("a sign-in was refused", "why", p.Detail, "leftOut", left)
		}
		return
	}
	if errors.Is(err, errProviderRateLimited) {
		return
	}
	if left, ok := s.failureLog.Allow(); ok {
		s.config.Log.Error("a sign-in could not be finished", "err", err, "leftOut", left)
	}
}

func sentence(text string) string {
	if text == "" {
		return text
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}
