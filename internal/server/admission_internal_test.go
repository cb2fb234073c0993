package server

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fermata-go/fermata/internal/server/admission"
	"github.com/fermata-go/fermata/internal/server/authn"
)

// The credential of a request is its token, or else its session; a request without one is
// anonymous.
func TestCredentialOf_UsesTokenOrSession(t *testing.T) {
	with := func(header, value string) *http.Request {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Add(header, value)
		return r
	}
	keysOnly, both := new(Server), &Server{sessions: new(authn.Sessions)}
	token, cookie := with("Authorization", "Bearer a"), with("Cookie", "fermata=a")
	two := with("Authorization", "Bearer a")
	two.Header.Add("Cookie", "fermata=a")
	if a := both.credentialOf(token); a == (admission.CredentialHash{}) || a != both.credentialOf(two) || a == both.credentialOf(with("Authorization", "Bearer b")) {
		t.Error("two tokens are not distinguished")
	}
	if a := both.credentialOf(cookie); a == (admission.CredentialHash{}) || a == both.credentialOf(with("Cookie", "fermata=b")) {
		t.Error("two sessions are not distinguished")
	}
	if keysOnly.credentialOf(cookie) != (admission.CredentialHash{}) || both.credentialOf(with("Cookie", "other=a")) != (admission.CredentialHash{}) {
		t.Error("another cookie counts as a session")
	}
}

func TestCredentialOf_TokenSpellingIsNormalized(t *testing.T) {
	s, seen := new(Server), make(map[admission.CredentialHash]bool)
	for _, header := range []string{"Bearer k", "bearer k", "BEARER   k ", "Bearer \tk"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", header)
		seen[s.credentialOf(r)] = true
	}
	if len(seen) != 1 {
		t.Errorf("it belongs to %d", len(seen))
	}
}
