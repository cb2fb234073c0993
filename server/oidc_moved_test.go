package server_test

import (
	"strings"
	"testing"
	"time"
)

// A provider was upgraded, and its endpoints are elsewhere since. The server knew the old ones for as long as its process lived.
func TestProvider_MovedEndpointsAreRediscovered(t *testing.T) {
	t.Run("by who comes back to a server that knows the old place", func(t *testing.T) {
		p := openSignInSite(t, signInOptions{})
		p.signedIn(claimsFor("acme", "agents"))
		p.advance(2 * time.Minute)
		b := p.browser()
		p.idp.SignIn(claimsFor("acme", "agents"))
		callback := b.followToCallback("/")
		p.idp.Move("/v2")
		if got := b.get(callback); got.status != 303 {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
	t.Run("by a token that is signed with a key nobody knows here", func(t *testing.T) {
		p := openSignInSite(t, signInOptions{})
		if got := p.me(p.idp.Token(forAPI("agents"))); got.status != 200 {
			t.Fatalf("%+v", got)
		}
		p.advance(2 * time.Minute)
		p.idp.Move("/v2")
		if got := p.me(p.idp.Token(forAPI("agents"))); got.status != 200 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("after a while, if nothing else tells", func(t *testing.T) {
		p := openSignInSite(t, signInOptions{})
		p.signedIn(claimsFor("acme", "agents"))
		p.idp.Move("/v2")
		p.advance(11 * time.Minute)
		begun := time.Now()
		p.browser().get("/signin") // this one finds out, and may still be led to the old place
		for !strings.HasPrefix(p.browser().get("/signin").header.Get("Location"), p.idp.URL+"/v2/") {
			if time.Since(begun) > time.Minute {
				t.Fatal("people are led to where it was")
			}
		}
		p.signedIn(claimsFor("acme", "agents"))
	})
}

// What a provider said once counts while it cannot say it again.
func TestProvider_FailedRediscoveryKeepsOldMetadata(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	token := forAPI("agents")
	if got := p.me(p.idp.Token(token)); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	p.advance(11 * time.Minute)
	p.idp.Break(true)
	for range 3 {
		if got := p.me(p.idp.Token(token)); got.status != 200 {
			t.Errorf("its keys are known: %+v", got)
		}
	}
}

// Anybody can make a token with a key that nobody knows. That is no reason to ask the provider each time where it is.
func TestProvider_BadTokensDoNotTriggerDiscovery(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	p.me(p.idp.Token(forAPI("agents")))
	p.advance(2 * time.Minute)
	for range 20 {
		forged := p.idp.Token(forAPI("agents"))
		p.idp.Rotate()
		p.me(forged)
	}
	if asked := p.idp.DiscoveryRequests(); asked > 2 {
		t.Errorf("it was asked %d times", asked)
	}
}
