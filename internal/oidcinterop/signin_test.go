package oidcinterop

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// usualSettings is a provider that puts the claims into the ID token.
var usualSettings = providerConfig{Alg: "ES256", ClaimsInIDToken: true}

// Starting a provider and a server takes longer than a sign-in, so tests that do not change them
// share them.
func TestSignIn(t *testing.T) {
	p := startProxy(t, usualSettings)
	s := serve(t, p.URL)
	for name, story := range map[string]func(*testing.T, *site){
		"TheWholeWay":              signInWorks,
		"WhoHasNoRoleIsToldSo":     noRoleIsRejected,
		"WhoDoesNotConsent":        missingConsentIsRejected,
		"AgainAfterSigningOut":     signInAfterSignOut,
		"WhatIsChangedOnTheWay":    tamperedParametersAreRejected,
		"AnAnswerTwiceOrElsewhere": replayedCallbackIsRejected,
	} {
		t.Run(name, func(t *testing.T) { story(t, s) })
	}
	for name, story := range map[string]func(*testing.T, *providerProxy){
		"AsAPublicClient":      publicClientWorks,
		"ByAddress":            unverifiedAddressIsNotUsed,
		"WithAnotherName":      issuerMismatchIsRejected,
		"WithASecretThatIsOld": oldClientSecretIsRejected,
	} {
		t.Run(name, func(t *testing.T) { story(t, p) })
	}
}

func signInWorks(t *testing.T, s *site) {
	b := s.browser(t)
	var asked url.Values
	b.hop = func(at *url.URL) {
		if at.Path == "/auth" {
			asked = at.Query()
		}
	}
	got := b.signIn("ann")
	if got.status != http.StatusOK || got.url.String() != where || !slices.Equal(b.forms, []string{"login", "consent"}) {
		t.Fatalf("%d %s %v\n%s", got.status, got.url, b.forms, got.body)
	}
	if asked.Get("code_challenge_method") != "S256" || len(asked.Get("code_challenge")) != 43 {
		t.Errorf("authorization request without PKCE: %v", asked)
	}
	want := me{Status: 200, Principal: "ann", Name: "Ann Archer", Account: "acme", Method: "oidc", Roles: []string{"approver"}}
	if who := b.me(""); !who.equal(want) {
		t.Errorf("%+v, want %+v", who, want)
	}
}

// A client without a secret is authenticated by PKCE only.
func publicClientWorks(t *testing.T, p *providerProxy) {
	b := serve(t, p.URL, "clientID: fermata", "clientID: fermata-public", "clientSecretFile:", "# clientSecretFile:").browser(t)
	if got := b.signIn("bob"); got.url.String() != where || !slices.Equal(b.me("").Roles, []string{"admin"}) {
		t.Errorf("%d %s\n%s", got.status, got.url, got.body)
	}
}

// wantRejected tries to sign in with a new browser and checks the error page.
func (s *site) wantRejected(t *testing.T, name string, status int, why string) {
	t.Helper()
	b := s.browser(t)
	if got := b.signIn(name); got.status != status || !strings.Contains(got.body, why) || b.me("").Status != 401 {
		t.Errorf("%s: %d\n%s", name, got.status, got.body)
	}
}

func noRoleIsRejected(t *testing.T, s *site) {
	s.wantRejected(t, "eve", 403, "one of your groups has a role on this server")
	s.wantRejected(t, "nil", 403, "did not send your groups (claim groups)")
	b := s.browser(t)
	if got := b.send("GET", where, nil); got.status != 401 {
		t.Errorf("user without a role: %d %s", got.status, got.body)
	}
}

// An e-mail address is used as the name only if the provider has verified it.
func unverifiedAddressIsNotUsed(t *testing.T, p *providerProxy) {
	s := serve(t, p.URL, "account: acme", "account: acme\n    principalClaim: email")
	b := s.browser(t)
	b.signIn("ann")
	if who := b.me(""); who.Principal != "ann@example.org" {
		t.Errorf("%+v", who)
	}
	s.wantRejected(t, "bob", 403, "has not verified your e-mail address")
}

// After the sign-out the session is gone, but the provider still knows the user and asks nothing
// the next time, as the page says.
func signInAfterSignOut(t *testing.T, s *site) {
	b := s.browser(t)
	b.signIn("ann")
	before := b.cookies()
	bye := b.follow(b.send("POST", home+"/signout", nil))
	if bye.status != 200 || !strings.Contains(bye.body, "identity provider may still have a session") || b.me("").Status != 401 {
		t.Errorf("%d %+v\n%s", bye.status, b.me(""), bye.body)
	}
	thief := b.newBrowser()
	thief.steal(before)
	if who := thief.me(""); who.Status != 401 {
		t.Errorf("the session is still valid with its old cookie: %+v", who)
	}
	b.forms = nil
	if b.signIn("ann"); b.me("").Principal != "ann" || len(b.forms) > 0 {
		t.Errorf("%+v, forms %v", b.me(""), b.forms)
	}
}

func missingConsentIsRejected(t *testing.T, s *site) {
	b := s.browser(t)
	form := b.open(home + "/signin")
	got := b.open(form.url.String() + "/abort")
	if got.status != 403 || !strings.Contains(got.body, "denied the sign-in (access_denied)") {
		t.Errorf("%d %s\n%s", got.status, got.url, got.body)
	}
}

// A server whose issuer URL does not match exactly is rejected; the log has both URLs.
func issuerMismatchIsRejected(t *testing.T, p *providerProxy) {
	s := serve(t, p.URL+"/")
	if got := s.browser(t).open(home + "/signin"); got.status != 503 {
		t.Errorf("%d\n%s", got.status, got.body)
	}
	s.waitForOutput(t, "did not match the issuer URL returned by provider")
}

// A wrong client secret is a problem of the operator, not of the user.
func oldClientSecretIsRejected(t *testing.T, p *providerProxy) {
	s := serve(t, p.URL, "clientSecretFile:", "clientSecret: wrong #")
	b := s.browser(t)
	got := b.signIn("ann")
	if got.status != 503 || !strings.Contains(got.body, "does not recognize this server") || b.me("").Status != 401 {
		t.Errorf("%d\n%s", got.status, got.body)
	}
	s.waitForOutput(t, "invalid_client")
}

// change changes one parameter of one redirect.
func change(path, name string, value func(string) string) func(*url.URL) {
	return func(at *url.URL) {
		if at.Path != path {
			return
		}
		query := at.Query()
		if text := value(query.Get(name)); text != "" {
			query.Set(name, text)
		} else {
			query.Del(name)
		}
		at.RawQuery = query.Encode()
	}
}

func to(value string) func(string) string { return func(string) string { return value } }

// other returns a text of the same length with a different start.
func other(text string) string {
	if strings.HasPrefix(text, "A") {
		return "B" + text[1:]
	}
	return "A" + text[1:]
}

// An attacker in between, or the sender of a link, changes parameters. The sign-in must fail, in
// the server or at the provider.
func tamperedParametersAreRejected(t *testing.T, s *site) {
	const there, back = "/auth", "/signin/callback"
	for name, c := range map[string]struct {
		hop    func(*url.URL)
		status int
		why    string
	}{
		"no PKCE":              {change(there, "code_challenge", to("")), 403, "denied the sign-in (invalid_request)"},
		"PKCE in plain":        {change(there, "code_challenge_method", to("plain")), 403, "denied the sign-in (invalid_request)"},
		"another challenge":    {change(there, "code_challenge", other), 400, "code was already used or has expired"},
		"another nonce":        {change(there, "nonce", other), 400, "ID token belongs to another sign-in"},
		"no nonce":             {change(there, "nonce", to("")), 400, "ID token belongs to another sign-in"},
		"another state there":  {change(there, "state", other), 400, "sign-in was not started in this browser"},
		"another state":        {change(back, "state", other), 400, "sign-in was not started in this browser"},
		"no state":             {change(back, "state", to("")), 400, "sign-in was not started in this browser"},
		"another code":         {change(back, "code", other), 400, "code was already used or has expired"},
		"another issuer":       {change(back, "iss", to("https://elsewhere.example")), 400, "response is from another identity provider"},
		"another place":        {change(there, "redirect_uri", to(home+"/elsewhere")), 400, "redirect_uri did not match"},
		"another client":       {change(there, "client_id", to("fermata-public")), 400, "code was already used or has expired"},
		"an answer in the URL": {change(there, "response_type", to("id_token")), 0, ""},
	} {
		b := s.browser(t)
		b.hop = c.hop
		got := b.signIn("ann")
		if b.me("").Status != 401 || c.status != 0 && (got.status != c.status || !strings.Contains(got.body, c.why)) {
			t.Errorf("%s: %d %s\n%s", name, got.status, got.url, got.body)
		}
	}
}

// A callback is valid once, in the browser where the sign-in began.
func replayedCallbackIsRejected(t *testing.T, s *site) {
	b := s.browser(t)
	victim := b.newBrowser()
	var answer string
	b.hop = func(at *url.URL) {
		if at.Path == "/signin/callback" {
			answer = at.String()
			at.Path = "/healthz" // keeps the callback from the server
		}
	}
	b.signIn("ann")
	if got := victim.open(answer); got.status != 400 || victim.me("").Status != 401 {
		t.Errorf("a browser without a pending sign-in: %d\n%s", got.status, got.body)
	}
	// The code of one sign-in in the callback of another is redeemed with the wrong verifier.
	query := b.url(answer).Query()
	victim.hop = change("/signin/callback", "code", to(query.Get("code")))
	if got := victim.signIn("bob"); got.status != 400 || victim.me("").Status != 401 {
		t.Errorf("the code of another sign-in: %d\n%s", got.status, got.body)
	}

	b.signIn("ann")
	thief, kept := b.newBrowser(), b.cookies()
	if got := b.open(answer); b.me("").Principal != "ann" {
		t.Fatalf("%d %s\n%s", got.status, got.url, got.body)
	}
	if got := b.open(answer); got.status != 400 {
		t.Errorf("the same browser again: %d\n%s", got.status, got.body)
	}
	thief.steal(kept)
	if got := thief.open(answer); got.status != 400 || thief.me("").Status != 401 {
		t.Errorf("with the old cookies: %d\n%s", got.status, got.body)
	}
}
