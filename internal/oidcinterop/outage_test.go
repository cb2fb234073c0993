package oidcinterop

import (
	"net/url"
	"strings"
	"testing"
)

// The server starts without its provider and reports the problem to users and to the operator. It
// needs no restart when the provider becomes available, or when it returns with new keys of another
// type and without the old ones.
func TestProvider_OutagesAndNewKeysAreHandled(t *testing.T) {
	p := newProxy(t)
	s := serve(t, p.URL)
	ann := s.browser(t)
	isDown := func(when string, got page) {
		t.Helper()
		if got.status != 503 || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, "identity provider is unavailable") {
			t.Errorf("%s: %d %v\n%s", when, got.status, got.header, got.body)
		}
	}
	isIn := func(b *browser, name string, keysAsked int) {
		t.Helper()
		if got := b.signIn(name); b.me("").Principal != name || p.hitCount("/jwks") != keysAsked {
			t.Errorf("%s: %d, %d key requests\n%s", name, got.status, p.hitCount("/jwks"), got.body)
		}
	}

	if ready := ann.open(home + "/readyz"); ready.status != 200 {
		t.Errorf("readyz without the provider: %d %s", ready.status, ready.body)
	}
	isDown("before the provider was available", ann.open(home+"/signin"))
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
	isDown("during the token request", bob.signIn("bob"))
	if who := ann.me(""); who.Principal != "ann" {
		t.Errorf("the session ended: %+v", who)
	}

	p.start(providerConfig{Alg: "RS256", ClaimsInIDToken: true})
	isIn(bob, "bob", 2)
	if who := ann.me(""); who.Principal != "ann" {
		t.Errorf("the session ended after the keys changed: %+v", who)
	}
}
