package authn

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/language"
	"github.com/fermata-go/fermata/internal/server/problems"
)

//go:embed pages/style.css pages/layout.html
var pageFiles embed.FS

// pageContent is a page with a short text, forms and links.
type pageContent struct {
	Language    string
	Status      int
	Title, Body string
	Problem     string // why a form was not accepted
	Forms       []pageForm
	Links       []pageLink
}

// T returns a text in the language of the page.
func (c pageContent) T(text string, args ...any) string { return translated(c.Language, text, args...) }

// translated returns a text of the sign-in pages in a language, with its arguments. Texts without a
// translation stay English.
func translated(lang, text string, args ...any) string {
	if other, ok := german[text]; ok && lang == language.German {
		text = other
	}
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
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
	c := pageContent{Language: language.Of(r), Status: http.StatusOK}
	c.Title, c.Problem = c.T("Sign in"), c.T(problem)
	c.Body = c.T("If you have not signed in before, open the link of your invitation. An administrator of this server can invite you.")
	c.Forms = append(p.passkeyForm(r, pageForm{
		Where: "/signin/passkey", Button: c.T("Sign in with a passkey"), Passkey: "get", Options: "/signin/passkey/options", Fields: []pageField{hiddenField("return", back)},
	}), pageForm{Where: "/signin/password", Button: c.T("Sign in with a password"), Fields: []pageField{
		{c.T("Name"), "name", "text", name, "username"}, {c.T("Password"), "password", "password", "", "current-password"}, hiddenField("return", back),
	}})
	return c
}

// pageInvitation lets an invited person create a passkey or choose a password.
func (p *Sessions) pageInvitation(r *http.Request, name, token, problem string) pageContent {
	c := pageContent{Language: language.Of(r), Status: http.StatusOK}
	forms := p.passkeyForm(r, pageForm{
		Where: "/signin/invitation", Button: c.T("Create a passkey"), Passkey: "create", Options: "/signin/invitation/options", Fields: []pageField{hiddenField("token", token)},
	})
	c.Title, c.Problem = c.T("Welcome, %s", name), c.T(problem)
	c.Body = c.T("Choose a password with at least %d characters. You sign in with it and your name, %s.", minPassword, name)
	if len(forms) > 0 {
		c.Body = c.T("You sign in as %s, with a passkey or with a password of at least %d characters. A passkey is kept by your device or password manager; rules that require a strong sign-in accept it.", name, minPassword)
	}
	c.Forms = append(forms, pageForm{Where: "/signin/invitation", Button: c.T("Save the password and sign in"), Fields: []pageField{
		{"", "username", "hidden", name, "username"}, {c.T("Password"), "password", "password", "", "new-password"}, hiddenField("token", token),
	}})
	return c
}

// pageHome is the page of a signed-in person on a server without the web inbox.
func pageHome(r *http.Request, who Principal) pageContent {
	c := pageContent{Language: language.Of(r), Status: http.StatusOK}
	c.Title = c.T("You are signed in")
	c.Body = c.T("You are %s of %s. This server has no pages: fermata inbox in a terminal shows the open requests. The same data as JSON:", cmp.Or(who.Name, who.ID), who.Account)
	c.Links = []pageLink{{c.T("open requests"), api.Prefix + "/requests"}, {c.T("runs"), api.Prefix + "/runs"}, {c.T("the API description"), "/openapi.json"}}
	return c
}

func pageSignedOut(r *http.Request, provider bool) pageContent {
	c := pageContent{Language: language.Of(r), Status: http.StatusOK}
	c.Title, c.Links = c.T("You are signed out"), []pageLink{{c.T("Sign in again"), "/signin"}}
	if provider {
		c.Body = c.T("Your identity provider may still have a session: the next user of this browser could sign in as you.")
	}
	return c
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
	c := pageContent{Language: language.Of(r), Status: why.Status}
	c.Title, c.Body = c.T("Not signed in"), c.T(sentence(why.Detail))
	if p.idp != nil || why.Status != http.StatusNotFound {
		c.Links = []pageLink{{c.T("Start again"), "/signin"}}
	}
	p.writePage(w, c)
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
