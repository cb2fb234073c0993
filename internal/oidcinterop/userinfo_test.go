package oidcinterop

import (
	"net/http"
	"strings"
	"testing"
)

// By the standard (OpenID Connect Core 5.4), a provider that issues an access token may leave
// everything but the subject out of the ID token and return it from the userinfo endpoint. This is
// the default of this provider.
func TestUserinfo_GroupsFromUserinfoAreUsed(t *testing.T) {
	p := startProxy(t, providerConfig{Alg: "ES256"})
	s := serve(t, p.URL)
	b := s.browser(t)
	b.signIn("ann")
	want := me{Status: 200, Principal: "ann", Name: "Ann Archer", Account: "acme", Method: "oidc", Roles: []string{"approver"}}
	if who := b.me(""); !who.equal(want) {
		t.Errorf("%+v, want %+v", who, want)
	}
	s.wantRejected(t, "eve", 403, "one of your groups has a role on this server")
	s.wantRejected(t, "nil", 403, "did not send your groups (claim groups)")

	for name, c := range map[string]struct {
		answer string
		status int
		why    string
	}{
		"about another person": {`{"sub": "bob", "groups": ["platform"]}`, 403, "userinfo response is about another person"},
		"without a subject":    {`{"groups": ["platform"]}`, 403, "userinfo response is about another person"},
		"how they signed in":   {`{"sub": "ann", "groups": ["robots"], "amr": ["hwk"], "acr": "gold"}`, 200, `"strength":"sso"`},
		"no JSON":              {`<html>`, 503, "identity provider is unavailable"},
		"an error":             {"", 503, "identity provider is unavailable"},
	} {
		p.override("/me", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if c.answer == "" {
				w.WriteHeader(http.StatusInternalServerError)
			}
			_, _ = w.Write([]byte(c.answer))
		})
		b := b.newBrowser()
		if got := b.signIn("ann"); got.status != c.status || !strings.Contains(got.body, c.why) {
			t.Errorf("%s: %d\n%s", name, got.status, got.body)
		}
	}
	s.waitForOutput(t, "userinfo: identity provider returned 500")
}
