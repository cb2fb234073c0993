package server_test

import (
	"strings"
	"testing"
	"time"
)

// A provider was upgraded and its endpoints have moved. The server used to keep the old ones for
// the life of its process.
func TestProvider_MovedEndpointsAreRediscovered(t *testing.T) {
	t.Run("by the callback of a server that knows the old endpoints", func(t *testing.T) {
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
	t.Run("by a token that is signed with an unknown key", func(t *testing.T) {
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
	t.Run("after the TTL", func(t *testing.T) {
		p := openSignInSite(t, signInOptions{})
		p.signedIn(claimsFor("acme", "agents"))
		p.idp.Move("/v2")
		p.advance(11 * time.Minute)
		begun := time.Now()
		// this one notices, and may still be redirected to the old endpoint
		p.browser().get("/signin")
		for !strings.HasPrefix(p.browser().get("/signin").header.Get("Location"), p.idp.URL+"/v2/") {
			if time.Since(begun) > time.Minute {
				t.Fatal("people are redirected to the old endpoint")
			}
		}
		p.signedIn(claimsFor("acme", "agents"))
	})
}

// Old metadata is used while the provider does not answer.
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

// Any client can send a token with an unknown key. That must not cause a discovery each time.
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
		t.Errorf("it was requested %d times", asked)
	}
}
