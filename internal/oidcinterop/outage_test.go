package oidcinterop

import (
	"net/url"
	"strings"
	"testing"
)

// The server starts without its provider and says what is missing to whoever comes, and to the operator. Nobody has to restart it: neither when the provider
// is there, nor when it comes back with new keys, of another kind too, and has forgotten the old ones.
func TestProvider_OutagesAndNewKeysAreHandled(t *testing.T) {
	p := newProxy(t)
	s := serve(t, p.URL)
	ann := s.browser(t)
	isDown := func(when string, got page) {
		t.Helper()
		if got.status != 503 || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, "The identity provider does not answer") {
			t.Errorf("%s: %d %v\n%s", when, got.status, got.header, got.body)
		}
	}
	isIn := func(b *browser, name string, keysAsked int) {
		t.Helper()
		if got := b.signIn(name); b.me("").Principal != name || p.hitCount("/jwks") != keysAsked {
			t.Errorf("%s: %d, keys asked for %d times\n%s", name, got.status, p.hitCount("/jwks"), got.body)
		}
	}

	if ready := ann.open(home + "/readyz"); ready.status != 200 {
		t.Errorf("API keys count, and yet: %d %s", ready.status, ready.body)
	}
	isDown("before its provider ever was there", ann.open(home+"/signin"))
	s.waitForOutput(t, p.URL+"/.well-known/openid-configuration")

	p.start(usualSettings)
	isIn(ann, "ann", 1)
	isIn(ann.newBrowser(), "bob", 1) // it has the keys

	bob := ann.newBrowser()
	bob.hop = func(at *url.URL) {
		if at.Path == "/signin/callback" {
			p.stop()
			bob.hop = func(*url.URL) {}
		}
	}
	isDown("when the code should become a token", bob.signIn("bob"))
	if who := ann.me(""); who.Principal != "ann" {
		t.Errorf("who is in is out: %+v", who)
	}

	p.start(providerConfig{Alg: "RS256", ClaimsInIDToken: true})
	isIn(bob, "bob", 2)
	if who := ann.me(""); who.Principal != "ann" {
		t.Errorf("who is in is out after the keys changed: %+v", who)
	}
}
