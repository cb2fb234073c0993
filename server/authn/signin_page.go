package authn

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/server/internal/problems"
)

// pageContent is a page with a short text and links.
type pageContent struct {
	Status      int
	Title, Body string
	Links       []pageLink
	Form        *pageForm // nil: none
}

// pageLink is a link to a path of this server.
type pageLink struct{ Text, Where string }

// pageForm is a form with one button. Its fields are posted to a path of this server.
type pageForm struct {
	Where, Button, Problem string
	Fields                 []pageField
}

// pageField is a field of a form. A field without a label is hidden.
type pageField struct{ Label, Name, Type, Value, Complete string }

// pageSignIn is the sign-in page of a server without an identity provider.
func pageSignIn(name, back, problem string) pageContent {
	return pageContent{
		Status: http.StatusOK, Title: "Sign in",
		Body: "Open the link of your invitation if you have not signed in before. This server has no identity provider; its operator can invite you.",
		Form: &pageForm{Where: "/signin/password", Button: "Sign in", Problem: problem, Fields: []pageField{
			{"Name", "name", "text", name, "username"}, {"Password", "password", "password", "", "current-password"}, {"", "return", "hidden", back, ""},
		}},
	}
}

// pageInvitation lets an invited person choose a password.
func pageInvitation(name, token, problem string) pageContent {
	return pageContent{
		Status: http.StatusOK, Title: "Welcome, " + name,
		Body: "Choose a password with at least " + strconv.Itoa(minPassword) + " characters. You sign in with it and your name, " + name + ".",
		Form: &pageForm{Where: "/signin/invitation", Button: "Save and sign in", Problem: problem, Fields: []pageField{
			{"", "username", "hidden", name, "username"}, {"Password", "password", "password", "", "new-password"}, {"", "token", "hidden", token, ""},
		}},
	}
}

// pageHome is the page of a signed-in person. There is no web inbox yet, so it lists the
// alternatives.
func pageHome(who Principal) pageContent {
	return pageContent{
		Status: http.StatusOK, Title: "You are signed in",
		Body: "You are " + cmp.Or(who.Name, who.ID) + " of " + who.Account + ". There is no web inbox yet: fermata inbox in a terminal " +
			"shows the open requests. The same data as JSON:",
		Links: []pageLink{{"open requests", api.Prefix + "/requests"}, {"runs", api.Prefix + "/runs"}, {"the API description", "/openapi.json"}},
	}
}

func pageSignedOut(again bool) pageContent {
	t := pageContent{Status: http.StatusOK, Title: "You are signed out", Body: "Your identity provider may still have a session: the next user of this browser could sign in as you."}
	if again {
		t.Links = []pageLink{{"Sign in again", "/signin"}}
	}
	return t
}

const style = `:root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem}`

var layout = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.Title}} – Fermata</title><style>` + style + `</style></head>
<body><main><h1>{{.Title}}</h1><p>{{.Body}}</p>{{range .Links}}<p><a href="{{.Where}}">{{.Text}}</a></p>{{end}}{{with .Form}}<form method="post" action="{{.Where}}">{{with .Problem}}<p role="alert">{{.}}</p>{{end}}{{range .Fields}}{{if .Label}}<p><label>{{.Label}}<br><input name="{{.Name}}" type="{{.Type}}" value="{{.Value}}" autocomplete="{{.Complete}}" required></label></p>{{else}}<input name="{{.Name}}" type="hidden" value="{{.Value}}">{{end}}{{end}}<p><button>{{.Button}}</button></p></form>{{end}}</main></body>
</html>
`))

var pagePolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

func (p *Sessions) writePage(w http.ResponseWriter, t pageContent) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(t.Status)
	if err := layout.Execute(w, t); err != nil {
		p.hooks.Log.Debug("writing a page failed", "err", err)
	}
}

// wantsHTML reports whether the client is a browser.
func wantsHTML(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// rejectSignIn explains a failed sign-in: as a page to a browser, as a problem to a program. Only
// problems are shown; other errors may contain confidential details.
func (p *Sessions) rejectSignIn(w http.ResponseWriter, r *http.Request, err error) {
	why, ok := errors.AsType[*problems.Problem](err)
	switch {
	case ok:
	case errors.Is(err, errProofUsed):
		why = problems.New("bad_request", "this sign-in was already used")
	case errors.Is(err, errCookieTooLong):
		why = problems.New("forbidden", "%v", errCookieTooLong)
	default:
		why = problems.Overloaded("sign-in is temporarily unavailable")
	}
	p.logSignInFailure(why, err)
	p.hooks.Rejected(why.Code)
	if !wantsHTML(r) {
		problems.Write(w, why)
		return
	}
	for name, values := range why.GetHeaders() {
		w.Header()[name] = values
	}
	t := pageContent{Status: why.Status, Title: "Not signed in", Body: sentence(why.Detail)}
	if p.idp != nil {
		t.Links = []pageLink{{"Start again", "/signin"}}
	}
	p.writePage(w, t)
}

// logSignInFailure logs why a sign-in failed. Anonymous clients can cause it, so the message is
// rate-limited.
func (p *Sessions) logSignInFailure(why *problems.Problem, err error) {
	if why.Status < http.StatusInternalServerError {
		if left, ok := p.rejectionLog.Allow(); ok {
			p.hooks.Log.Info("sign-in rejected", "reason", why.Detail, "suppressed", left)
		}
		return
	}
	if errors.Is(err, ErrProviderRateLimited) {
		return
	}
	if left, ok := p.failureLog.Allow(); ok {
		p.hooks.Log.Error("sign-in failed", "err", err, "suppressed", left)
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
