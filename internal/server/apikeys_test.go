package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

func withKey(t *testing.T, key string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	return r
}

func addKey(t *testing.T, s store.Credentials, role authn.Role, expires time.Time) (key string, kept store.Credential) {
	t.Helper()
	key, kept, err := authn.NewKey("acme", "robot", role, expires)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddCredential(t.Context(), kept, store.Writes{}); err != nil {
		t.Fatal(err)
	}
	return key, kept
}

func TestKeys_AuthenticateUntilRevoked(t *testing.T) {
	s := memory.NewStore(nil)
	auth := authn.Keys(s)
	key, kept := addKey(t, s, authn.RoleApprover, time.Time{})
	if p, err := auth.Authenticate(withKey(t, key)); err != nil || p.Account != "acme" || p.ID != "robot" || !p.Has(authn.RoleApprover) || p.Has(authn.RoleAgent) {
		t.Fatalf("%+v, %v", p, err)
	}
	if strings.Contains(string(kept.Hash), key) {
		t.Error("the key itself is stored")
	}
	if err := s.RevokeCredential(t.Context(), "acme", kept.ID, store.Writes{}); err != nil {
		t.Fatal(err)
	}
	if p, err := auth.Authenticate(withKey(t, key)); err != authn.ErrUnauthenticated {
		t.Errorf("after it was revoked: %+v, %v", p, err)
	}
	old, _ := addKey(t, s, authn.RoleAgent, time.Now().Add(-time.Second))
	if p, err := auth.Authenticate(withKey(t, old)); err != authn.ErrUnauthenticated {
		t.Errorf("after it expired: %+v, %v", p, err)
	}
}

func TestKeys_AnyChangedCharacterIsRejected(t *testing.T) {
	s := memory.NewStore(nil)
	auth := authn.Keys(s)
	key, _ := addKey(t, s, authn.RoleAgent, time.Time{})
	for i := range key {
		for _, c := range "0z~" {
			changed := key[:i] + string(c) + key[i+1:]
			if changed == key {
				continue
			}
			if p, err := auth.Authenticate(withKey(t, changed)); err != authn.ErrUnauthenticated {
				t.Errorf("with another character at %d: %+v, %v", i, p, err)
			}
		}
	}
	for _, bad := range []string{"", "fermata_", key[:len(key)-1], key + "0", strings.ToUpper(key)} {
		if _, err := auth.Authenticate(withKey(t, bad)); err != authn.ErrUnauthenticated {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestNewKey_InvalidInputIsAnError(t *testing.T) {
	for _, c := range []struct{ account, name, role string }{{"", "n", "agent"}, {"a", "", "agent"}, {"a", "n", "king"}} {
		if _, _, err := authn.NewKey(c.account, c.name, authn.Role(c.role), time.Time{}); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

// Only its id distinguishes a session from a key: its name and role are those of the person.
func TestKeys_SessionIDIsNotAKey(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	p.key("acme", authn.RoleApprover)
	p.signedIn(claimsFor("acme", "approvers"))
	list, err := p.credentials().Credentials(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	sessions := 0
	for _, c := range list {
		if authn.IsSession(c.ID) {
			sessions++
		}
	}
	if len(list) != 2 || sessions != 1 {
		t.Errorf("%d sessions among %+v", sessions, list)
	}
}
