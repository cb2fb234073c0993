package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
)

// sessionIDs returns the credential ids of an account, newest first.
func (p *signInSite) sessionIDs(account string) (ids []string) {
	p.Helper()
	list, err := p.credentials().Credentials(p.Context(), account)
	if err != nil {
		p.Fatal(err)
	}
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return ids
}

// Ended sessions are deleted from the store. Keys are kept for later reference.
func TestSession_EndedSessionsAreDeleted(t *testing.T) {
	p := openSignInSite(t, signInOptions{change: func(c *server.Config) { c.SignIn.Lifetime = time.Hour }})
	addKey(t, p.credentials(), authn.RoleAgent, time.Now().Add(-24*time.Hour))
	key := p.sessionIDs("acme")
	p.signedIn(claimsFor("acme", "agents")).send("POST", "/signout", "")
	p.signedIn(claimsFor("acme", "agents"))
	p.advance(2*time.Hour - time.Minute)
	p.signedIn(claimsFor("other", "agents"))
	if got := p.sessionIDs("acme"); len(got) != 3 {
		t.Errorf("too early %v are left", got)
	}
	p.advance(2 * time.Hour)
	p.signedIn(claimsFor("other", "agents"))
	if got := p.sessionIDs("acme"); len(got) != 1 || got[0] != key[0] {
		t.Errorf("left are %v, want the key %v", got, key)
	}
	if got := p.sessionIDs("other"); len(got) != 2 {
		t.Errorf("of the active or recently ended ones %v are left", got)
	}
}

// A link, or a provider callback, works once, also after its session was ended and deleted.
func TestSession_ProofCannotBeReused(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	link, err := p.server.DevLink(p.listener.Listener.Addr(), authn.Principal{Account: "acme", ID: "you", Roles: []authn.Role{authn.RoleAdmin}}, "/")
	if err != nil {
		t.Fatal(err)
	}
	b := p.browser()
	b.get(link)
	if got := b.send("POST", "/signout", ""); got.status != 303 {
		t.Fatalf("%+v", got)
	}
	for range 6 {
		p.advance(15 * time.Minute)
		p.signedIn(claimsFor("acme", "agents")) // which deletes ended sessions
		thief := p.browser()
		thief.get(link)
		if got := thief.get("/api/v1/me"); got.status != 401 {
			t.Fatalf("a used link: %+v", got)
		}
	}
}

// failingCleanup is a store that cannot delete.
type failingCleanup struct{ credentials }

func (failingCleanup) PurgeCredentials(context.Context, string, time.Time, int) (int, error) {
	return 0, errors.New("the store does not answer")
}

// A failing cleanup does not affect a sign-in.
func TestSession_StartsIfCleanupFails(t *testing.T) {
	p := openSignInSite(t, signInOptions{change: func(c *server.Config) { c.SignIn.Credentials = failingCleanup{c.SignIn.Credentials} }})
	b := p.signedIn(claimsFor("acme", "agents"))
	if got := b.get("/api/v1/me"); got.status != 200 {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(p.metrics(), `fermata_errors_total{where="sessions"} 1`) {
		t.Error("it is not logged")
	}
}

// countingCleanup is a store that always has more to delete, and counts the calls.
type countingCleanup struct {
	credentials
	asked *int
	most  bool
}

func (c countingCleanup) PurgeCredentials(_ context.Context, _ string, _ time.Time, limit int) (int, error) {
	*c.asked++
	if c.most {
		return limit, nil
	}
	return 0, nil
}

// A sign-in does not run the cleanup each time, except if a batch was full.
func TestSession_CleanupRunsAtIntervals(t *testing.T) {
	for most, want := range map[bool]int{false: 2, true: 6} {
		asked := 0
		p := openSignInSite(t, signInOptions{change: func(c *server.Config) { c.SignIn.Credentials = countingCleanup{c.SignIn.Credentials, &asked, most} }})
		for n := range 6 {
			if n == 3 {
				p.advance(10 * time.Minute)
			}
			p.signedIn(claimsFor("acme", "agents"))
		}
		if asked != want {
			t.Errorf("called %d times, want %d; there is more: %t", asked, want, most)
		}
	}
}

var _ store.Credentials = failingCleanup{}
