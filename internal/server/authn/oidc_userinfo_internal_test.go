package authn

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"golang.org/x/oauth2"
)

// Claims of the ID token take precedence. Only missing ones that are configured or displayed are
// added.
func TestUserinfo_AddsClaimsMissingFromIDToken(t *testing.T) {
	for name, c := range map[string]struct {
		settings          OIDC
		said, told, known claims // nil: it is not requested
	}{
		"nothing is missing": {
			OIDC{}, claims{"sub": "ann", "groups": []any{}}, nil, claims{"sub": "ann", "groups": []any{}},
		},
		"groups and a name": {
			OIDC{}, claims{"sub": "ann"}, claims{"sub": "ann", "groups": []any{"a"}, "name": "Ann", "amr": []any{"hwk"}, "acr": "gold", "auth_time": 1.0},
			claims{"sub": "ann", "groups": []any{"a"}, "name": "Ann"},
		},
		"groups further down": {
			OIDC{GroupsClaim: "realm.roles"}, claims{"sub": "ann"}, claims{"sub": "ann", "realm": map[string]any{"roles": "a"}},
			claims{"sub": "ann", "realm.roles": "a"},
		},
		"nested groups with a sibling": {
			OIDC{GroupsClaim: "realm.roles"}, claims{"sub": "ann", "realm": map[string]any{"name": "x"}}, claims{"sub": "ann", "realm": map[string]any{"roles": "a"}},
			claims{"sub": "ann", "realm": map[string]any{"name": "x"}, "realm.roles": "a"},
		},
		"an account, and not other groups by another spelling": {
			OIDC{GroupsClaim: "realm.roles", AccountClaim: "tenant"}, claims{"sub": "ann", "realm": map[string]any{"roles": "a"}},
			claims{"sub": "ann", "tenant": "acme", "realm.roles": "admins"}, claims{"sub": "ann", "realm": map[string]any{"roles": "a"}, "tenant": "acme"},
		},
		"groups of a name with a dot": {
			OIDC{GroupsClaim: "https://x.example/groups"}, claims{"sub": "ann"}, claims{"sub": "ann", "https://x.example/groups": "a"},
			claims{"sub": "ann", "https://x.example/groups": "a"},
		},
		"the account": {
			OIDC{AccountClaim: "tenant"}, claims{"sub": "ann", "groups": "a"}, claims{"sub": "ann", "groups": "b", "tenant": "acme"},
			claims{"sub": "ann", "groups": "a", "tenant": "acme"},
		},
		"their names": {
			OIDC{PrincipalClaim: "login"}, claims{"sub": "ann", "groups": "a"}, claims{"sub": "ann", "login": "annie"},
			claims{"sub": "ann", "groups": "a", "login": "annie"},
		},
		"an address that is verified": {
			OIDC{PrincipalClaim: "email"}, claims{"sub": "ann", "groups": "a"}, claims{"sub": "ann", "email": "a@x", "email_verified": true},
			claims{"sub": "ann", "groups": "a", "email": "a@x", "email_verified": true},
		},
		"whether another address is verified": {
			OIDC{PrincipalClaim: "email"}, claims{"sub": "ann", "email": "boss@x"}, claims{"sub": "ann", "groups": "a", "email": "a@x", "email_verified": true},
			claims{"sub": "ann", "groups": "a", "email": "boss@x"},
		},
		"an unverified address that the token calls verified": {
			OIDC{PrincipalClaim: "email"}, claims{"sub": "ann", "groups": "a", "email_verified": true}, claims{"sub": "ann", "email": "boss@x", "email_verified": false},
			claims{"sub": "ann", "groups": "a", "email": "boss@x", "email_verified": false},
		},
		"groups that are null": {
			OIDC{}, claims{"sub": "ann", "groups": nil}, claims{"sub": "ann", "groups": []any{"a"}}, claims{"sub": "ann", "groups": []any{"a"}},
		},
	} {
		asked := false
		there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = r.Header.Get("Authorization") == "Bearer secret"
			_ = json.NewEncoder(w).Encode(c.told)
		}))
		err := newIDP(c.settings, time.Now).addUserinfo(t.Context(), &providerMetadata{userinfo: there.URL}, &oauth2.Token{AccessToken: "secret"}, c.said)
		there.Close()
		if err != nil || asked != (c.told != nil) || !reflect.DeepEqual(c.said, c.known) {
			t.Errorf("%s: asked %t, %v, %v", name, asked, c.said, err)
		}
	}
}
