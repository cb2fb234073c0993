package server_test

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// flowCookie is the cookie of a running sign-in.
func (b *browser) flowCookie() (name, value string) {
	b.Helper()
	for _, c := range b.cookies() {
		if strings.Contains(c.Name, "fermata-signin-") {
			return c.Name, c.Value
		}
	}
	b.Fatal("no sign-in is running")
	return "", ""
}

// refused checks that a callback was rejected, and that the browser is not signed in.
func (b *browser) refused(what string, got answer) {
	b.Helper()
	if got.status != 400 || b.get("/api/v1/me").status != 401 {
		b.Errorf("%s: %d %s", what, got.status, got.body)
	}
}

// A browser that completes another person's sign-in would work as that person (login CSRF).
func TestSignIn_IsBoundToTheBrowser(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	p.idp.SignIn(claimsFor("acme", "admins"))
	attacker, victim := p.browser(), p.browser()
	callback := attacker.followToCallback("/")
	victim.refused("a browser without a sign-in", victim.get(callback))
	victim.followToCallback("/")
	victim.refused("a browser with another sign-in", victim.get(callback))
	name, value := victim.flowCookie()
	other, _ := attacker.flowCookie()
	victim.set(other, value) // its own, under the name of the other one
	victim.refused("the cookie "+name+" of another sign-in", victim.get(callback))
	if got := attacker.get(callback); got.status != 303 {
		t.Errorf("it does not complete in its own browser: %d %s", got.status, got.body)
	}
}

func TestSignIn_CallbackWorksOnce(t *testing.T) {
	for name, careless := range map[string]bool{"a provider that accepts a code once": false, "one that accepts it again": true} {
		p := openSignInSite(t, signInOptions{})
		p.idp.SignIn(claimsFor("acme", "admins"))
		if careless {
			p.idp.AllowCodeReuse()
		}
		b, thief := p.browser(), p.browser()
		callback := b.followToCallback("/")
		cookie, value := b.flowCookie()
		if got := b.get(callback); got.status != 303 {
			t.Fatalf("%s: %d %s", name, got.status, got.body)
		}
		if got := b.get(callback); got.status != 400 {
			t.Errorf("%s, the same browser again: %d %s", name, got.status, got.body)
		}
		thief.set(cookie, value) // even with the browser's cookie
		thief.refused(name+", a thief", thief.get(callback))
		if got := b.get("/api/v1/me"); got.status != 200 {
			t.Errorf("%s: the signed-in person is signed out: %+v", name, got)
		}
	}
}

func TestSignIn_WrongStateIsRejected(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	p.idp.SignIn(claimsFor("acme", "admins"))
	for name, change := range map[string]func(url.Values){
		"without a state":            func(q url.Values) { q.Del("state") },
		"with another state":         func(q url.Values) { q.Set("state", strings.Repeat("A", 26)) },
		"with the state's beginning": func(q url.Values) { q.Set("state", q.Get("state")[:8]) },
		"with more than the state":   func(q url.Values) { q.Set("state", q.Get("state")+"A") },
		"with a malformed state":     func(q url.Values) { q.Set("state", strings.Repeat("\x00;=", 9999)) },
		"without a code":             func(q url.Values) { q.Del("code") },
		"with another code":          func(q url.Values) { q.Set("code", "another") },
		"of another provider":        func(q url.Values) { q.Set("iss", "https://elsewhere.example") },
	} {
		b := p.browser()
		callback, err := url.Parse(b.followToCallback("/"))
		if err != nil {
			t.Fatal(err)
		}
		query := callback.Query()
		change(query)
		callback.RawQuery = query.Encode()
		b.refused("an answer "+name, b.get(callback.String()))
	}
}

// The code of one sign-in, used in another one: PKCE and the nonce both prevent it.
func TestSignIn_CodeOfAnotherFlowIsRejected(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	p.idp.SignIn(claimsFor("acme", "admins"))
	one, other := p.browser(), p.browser()
	stolen, err := url.Parse(one.followToCallback("/"))
	if err != nil {
		t.Fatal(err)
	}
	mine, err := url.Parse(other.followToCallback("/"))
	if err != nil {
		t.Fatal(err)
	}
	query := mine.Query()
	query.Set("code", stolen.Query().Get("code"))
	mine.RawQuery = query.Encode()
	other.refused("a stolen code", other.get(mine.String()))
}

func TestSignIn_FlowExpiresAfterTenMinutes(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	p.idp.SignIn(claimsFor("acme", "admins"))
	b := p.browser()
	callback := b.followToCallback("/")
	p.advance(10 * time.Minute)
	p.idp.Clock(time.Now) // the provider would still accept its code
	b.refused("a late callback", b.get(callback))
}

func TestSignIn_ConcurrentTabs(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	p.idp.SignIn(claimsFor("acme", "agents"))
	b := p.browser()
	first, second := b.followToCallback("/one"), b.followToCallback("/two")
	for back, callback := range map[string]string{"/one": first, "/two": second} {
		if got := b.get(callback); got.status != 303 || got.header.Get("Location") != back {
			t.Errorf("%s: %d %s", back, got.status, got.body)
		}
	}
	fresh := p.browser()
	for range 30 { // a person who never completes it
		fresh.followToCallback("/" + strings.Repeat("x", 1000))
	}
	size := 0
	for _, c := range fresh.cookies() {
		size += len(c.String())
	}
	if size > 8<<10 {
		t.Errorf("the browser keeps %d bytes of cookies", size)
	}
}

func TestSignIn_ReturnPathIsLocal(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	p.idp.SignIn(claimsFor("acme", "agents"))
	here := p.signedIn(claimsFor("acme", "agents"))
	for back, want := range map[string]string{
		"":                                "/",
		"/requests/1?x=1#top":             "/requests/1?x=1#top",
		"/a//b":                           "/a/b",
		"https://elsewhere.example":       "/",
		"//elsewhere.example":             "/",
		"/\\elsewhere.example":            "/",
		"\\\\elsewhere.example":           "/",
		"/\t/elsewhere.example":           "/",
		"\n//elsewhere.example":           "/",
		"/%2f/elsewhere.example":          "/",
		"///elsewhere.example":            "/",
		"javascript:alert(1)":             "/",
		"data:text/html,x":                "/",
		"elsewhere":                       "/",
		"/\r\nSet-Cookie: x=1":            "/",
		"/signin?return=/":                "/",
		"/signout":                        "/",
		"/" + strings.Repeat("x", 2000):   "/",
		"http:elsewhere.example":          "/",
		"https:/elsewhere.example":        "/",
		"/\u2028/elsewhere.example":       "/",
		"@elsewhere.example":              "/",
		"?//elsewhere.example":            "/",
		"/..//elsewhere.example":          "/elsewhere.example",
		"/path:with@colon/and?a=http://b": "/path:with@colon/and?a=http://b",
	} {
		b := p.browser()
		if got := b.get(b.followToCallback(back)); got.status != 303 || got.header.Get("Location") != want {
			t.Errorf("%q after signing in: %d %q", back, got.status, got.header.Get("Location"))
		}
		if got := here.get("/signin?return=" + url.QueryEscape(back)); got.status != 303 || got.header.Get("Location") != want {
			t.Errorf("%q when signed in: %d %q", back, got.status, got.header.Get("Location"))
		}
	}
}
