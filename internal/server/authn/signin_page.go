package authn

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/server/problems"
)

//go:embed pages/style.css pages/layout.html
var pageFiles embed.FS

// pageContent is a page with a short text, forms and links.
type pageContent struct {
	Status      int
	Title, Body string
	Problem     string // why a form was not accepted
	Forms       []pageForm
	Links       []pageLink
}

// Script returns the path of the script of the page; "" without one.
func (c pageContent) Script() string {
	if slices.ContainsFunc(c.Forms, func(f pageForm) bool { return f.Passkey != "" }) {
		return PasskeyScript
	}
	return ""
}

// pageLink is a link to a path of this server.
type pageLink struct{ Text, Where string }

// pageForm is a form with one button. Its fields are posted to a path of this server.
type pageForm struct {
	Where, Button string
	Fields        []pageField
	// Passkey is create or get for a form that is sent with the response of an authenticator, and
	// Options the path of what the authenticator needs.
	Passkey, Options string
}

// pageField is a field of a form. A field without a label is hidden.
type pageField struct{ Label, Name, Type, Value, Complete string }

func hiddenField(name, value string) pageField { return pageField{Name: name, Value: value} }

// passkeyForm returns a form for a passkey; none if browsers cannot use passkeys at the address of
// the request.
func (p *Sessions) passkeyForm(r *http.Request, f pageForm) []pageForm {
	if !p.HasPasskeys(r.Host) {
		return nil
	}
	f.Fields = append(f.Fields, hiddenField("state", ""), hiddenField("response", ""))
	return []pageForm{f}
}

// pageSignIn is the sign-in page of a server without an identity provider.
func (p *Sessions) pageSignIn(r *http.Request, name, back, problem string) pageContent {
	return pageContent{
		Status: http.StatusOK, Title: "Sign in", Problem: problem,
		Body: "If you have not signed in before, open the link of your invitation. An administrator of this server can invite you.",
		Forms: append(p.passkeyForm(r, pageForm{
			Where: "/signin/passkey", Button: "Sign in with a passkey", Passkey: "get", Options: "/signin/passkey/options", Fields: []pageField{hiddenField("return", back)},
		}), pageForm{Where: "/signin/password", Button: "Sign in with a password", Fields: []pageField{
			{"Name", "name", "text", name, "username"}, {"Password", "password", "password", "", "current-password"}, hiddenField("return", back),
		}}),
	}
}

// pageInvitation lets an invited person create a passkey or choose a password.
func (p *Sessions) pageInvitation(r *http.Request, name, token, problem string) pageContent {
	forms := p.passkeyForm(r, pageForm{
		Where: "/signin/invitation", Button: "Create a passkey", Passkey: "create", Options: "/signin/invitation/options", Fields: []pageField{hiddenField("token", token)},
	})
	body := "Choose a password with at least " + strconv.Itoa(minPassword) + " characters. You sign in with it and your name, " + name + "."
	if len(forms) > 0 {
		body = "You sign in as " + name + ", with a passkey or with a password of at least " + strconv.Itoa(minPassword) + " characters. A passkey is kept by your device or password manager; rules that require a strong sign-in accept it."
	}
	return pageContent{
		Status: http.StatusOK, Title: "Welcome, " + name, Body: body, Problem: problem,
		Forms: append(forms, pageForm{Where: "/signin/invitation", Button: "Save the password and sign in", Fields: []pageField{
			{"", "username", "hidden", name, "username"}, {"Password", "password", "password", "", "new-password"}, hiddenField("token", token),
		}}),
	}
}

// pageHome is the page of a signed-in person on a server without the web inbox.
func pageHome(who Principal) pageContent {
	return pageContent{
		Status: http.StatusOK, Title: "You are signed in",
		Body: "You are " + cmp.Or(who.Name, who.ID) + " of " + who.Account + ". This server has no pages: fermata inbox in a terminal " +
			"shows the open requests. The same data as JSON:",
		Links: []pageLink{{"open requests", api.Prefix + "/requests"}, {"runs", api.Prefix + "/runs"}, {"the API description", "/openapi.json"}},
	}
}

func pageSignedOut(provider bool) pageContent {
	t := pageContent{Status: http.StatusOK, Title: "You are signed out", Links: []pageLink{{"Sign in again", "/signin"}}}
	if provider {
		t.Body = "Your identity provider may still have a session: the next user of this browser could sign in as you."
	}
	return t
}

var style = func() string {
	text, err := pageFiles.ReadFile("pages/style.css")
	if err != nil {
		panic(err) // embedded
	}
	return string(text)
}()

var layout = template.Must(template.New("layout.html").Funcs(template.FuncMap{"style": func() template.CSS { return template.CSS(style) }}).ParseFS(pageFiles, "pages/layout.html"))

var pagePolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
}()

func (p *Sessions) writePage(w http.ResponseWriter, t pageContent) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
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
	if p.idp != nil || why.Status != http.StatusNotFound {
		t.Links = []pageLink{{"Start again", "/signin"}}
	}
	p.writePage(w, t)
}

// logSignInFailure logs why a sign-in failed. Anonymous clients can cause it, so the message is
// rate-limited.
func (p *Sessions) logSignInFailure(why *problems.Problem, err error) {
	if why.Status < http.StatusInternalServerError {
		if left, ok := p.rejectionLog.Allow(); ok {
			attrs := []any{"reason", why.Detail, "suppressed", left}
			if why.Cause != nil {
				attrs = append(attrs, "cause", why.Cause)
			}
			p.hooks.Log.Info("sign-in rejected", attrs...)
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
