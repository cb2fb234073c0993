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
		t.Errorf("%+v, and not %+v", who, want)
	}
	s.wantRejected(t, "eve", 403, "None of your groups has a role here")
	s.wantRejected(t, "nil", 403, "does not say which groups you are in (the claim groups)")

	for name, c := range map[string]struct {
		answer string
		status int
		why    string
	}{
		"about somebody else": {`{"sub": "bob", "groups": ["platform"]}`, 403, "tells about somebody else"},
		"about nobody":        {`{"groups": ["platform"]}`, 403, "tells about somebody else"},
		"how they signed in":  {`{"sub": "ann", "groups": ["robots"], "amr": ["hwk"], "acr": "gold"}`, 200, `"strength":"sso"`},
		"no JSON":             {`<html>`, 503, "The identity provider does not answer"},
		"an error":            {"", 503, "The identity provider does not answer"},
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
	s.waitForOutput(t, "userinfo: the identity provider answers 500")
}
