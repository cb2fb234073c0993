package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/oidctest"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
)

func TestSignIn_RedirectsToProviderAndBack(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	b := p.browser()
	if got := b.get("/api/v1/me"); got.status != 401 {
		t.Fatalf("unauthenticated: %+v", got)
	}
	person := claimsFor("acme", "leads", "cooks")
	person["amr"], person["acr"], person["auth_time"] = []string{"pwd", "otp"}, "urn:gold", time.Now().Add(-time.Minute).Unix()
	if got := b.signIn(person); got.status != 303 || got.header.Get("Location") != "/inbox" {
		t.Fatalf("%+v", got)
	}
	me := b.get("/api/v1/me")
	for _, want := range []string{`"principal":"ann"`, `"name":"Ann"`, `"account":"acme"`, `"roles":["approver","auditor"]`, `"method":"oidc"`, `"amr":["pwd","otp"]`, `"acr":"urn:gold"`, `"at":"`, `"until":"`} {
		if !strings.Contains(me.body, want) {
			t.Errorf("%d %s lacks %s", me.status, me.body, want)
		}
	}
	if again := b.get("/signin?return=/runs"); again.status != 303 || again.header.Get("Location") != "/runs" {
		t.Errorf("a signed-in person is asked again: %+v", again)
	}
}

func TestSignOut_RevokesTheSession(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	b, thief := p.signedIn(claimsFor("acme", "approvers")), p.browser()
	stolen := b.session()
	thief.set(stolen.Name, stolen.Value)
	if got := thief.get("/api/v1/me"); got.status != 200 {
		t.Fatalf("the stolen cookie is not the session: %+v", got)
	}
	out := b.send("POST", "/signout", "")
	if out.status != 303 || out.header.Get("Location") != "/signin?bye" {
		t.Fatalf("%+v", out)
	}
	if len(b.cookies()) > 0 {
		t.Errorf("the browser keeps %v", b.cookies())
	}
	if got := thief.get("/api/v1/me"); got.status != 401 {
		t.Errorf("the thief is still signed in: %+v", got)
	}
	if bye := b.get("/signin?bye"); bye.status != 200 || !strings.Contains(bye.body, "signed out") || !strings.Contains(bye.body, `href="/signin"`) {
		t.Errorf("%+v", bye)
	}
	if got := p.browser().send("POST", "/signout", "", "Accept", "application/json"); got.status != 204 {
		t.Errorf("for a program without a session: %+v", got)
	}
}

// The audit log records each sign-in, and the session id leads to the actions of that person.
func TestSignIn_IsAudited(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	strong := claimsFor("acme", "approvers")
	strong["amr"] = []any{"mfa"}
	b := p.signedIn(strong)
	known, err := p.credentials().Credentials(t.Context(), "acme")
	if err != nil || len(known) != 1 {
		t.Fatalf("%v, %v", known, err)
	}
	b.send("POST", "/signout", "")
	b.send("POST", "/signout", "")
	lines, err := p.config.SignIn.Credentials.(store.AuditLog).AuditLines(t.Context(), "acme", 0, 0)
	if err != nil || len(lines) != 2 {
		t.Fatalf("%v, %v", lines, err)
	}
	session := known[0].ID
	for i, want := range []audit.Body{
		audit.SessionBegun{Session: session, Roles: []string{"approver"}, Until: audit.TimestampOf(known[0].Expires)},
		audit.SessionEnded{Session: session},
	} {
		got, err := audit.Parse(lines[i].Raw)
		by := audit.Actor{Principal: "ann", Kind: audit.ActorPerson, Via: "http/oidc id=" + session + " amr=mfa", Auth: "sso_mfa", MFA: true}
		if diff := cmp.Diff(want, got.Body); err != nil || diff != "" || got.Actor != by {
			t.Errorf("%s: %s, %v", lines[i].Raw, diff, err)
		}
	}
}

func TestSession_IsSharedByReplicas(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	b := p.signedIn(claimsFor("acme", "approvers"))
	replica := openSignInSite(t, signInOptions{change: func(c *server.Config) { c.SignIn.Credentials = p.credentials() }})
	other := replica.browser()
	other.set(b.session().Name, b.session().Value)
	if got := other.get("/api/v1/me"); got.status != 200 {
		t.Fatalf("the replica returned %+v", got)
	}
	all, err := p.credentials().Credentials(t.Context(), "acme")
	if err != nil || len(all) != 1 || all[0].Name != "ann" || all[0].Role != "approver" || all[0].Expires.IsZero() {
		t.Fatalf("the store has %+v, %v", all, err)
	}
	if err := p.credentials().RevokeCredential(t.Context(), "acme", all[0].ID, store.Writes{}); err != nil {
		t.Fatal(err)
	}
	for name, browser := range map[string]*browser{"one": b, "the other": other} {
		if got := browser.get("/api/v1/me"); got.status != 401 {
			t.Errorf("%s replica: %+v", name, got)
		}
	}
}

// Possible claims of the identity provider, and their result.
func TestSignIn_UsesTokenClaims(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	for name, c := range map[string]struct {
		claims oidctest.Claims
		status int
		says   string
	}{
		"a group with a role":             {claimsFor("acme", "agents"), 303, ""},
		"groups as one string":            {oidctest.Claims{"sub": "ann", "tenant": "acme", "groups": "agents"}, 303, ""},
		"only unknown groups":             {claimsFor("acme", "cooks"), 403, "None of your groups has a role on this server"},
		"no groups":                       {oidctest.Claims{"sub": "ann", "tenant": "acme"}, 403, "(claim groups)"},
		"invalid groups":                  {oidctest.Claims{"sub": "ann", "tenant": "acme", "groups": map[string]any{"agents": true}}, 403, "(claim groups)"},
		"no account":                      {oidctest.Claims{"sub": "ann", "groups": []string{"agents"}}, 403, "(claim tenant)"},
		"an account that is not a string": {oidctest.Claims{"sub": "ann", "tenant": 7, "groups": []string{"agents"}}, 403, "(claim tenant)"},
		"nobody":                          {oidctest.Claims{"tenant": "acme", "groups": []string{"agents"}}, 403, "(claim sub)"},
		"a name that cannot be shown":     {oidctest.Claims{"sub": "ann\x1b[2J", "tenant": "acme", "groups": []string{"agents"}}, 403, "(claim sub)"},
		"more groups than a cookie":       {claimsFor("acme", append(strings.Fields(strings.Repeat("group ", 5000)), "agents")...), 303, ""},
		"a very long account":             {claimsFor(strings.Repeat("x", 9999), "agents"), 403, "(claim tenant)"},
	} {
		b := p.browser()
		got := b.signIn(c.claims)
		if got.status != c.status || !strings.Contains(got.body, c.says) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if me := b.get("/api/v1/me"); (me.status == 200) != (c.status == 303) {
			t.Errorf("%s is in: %+v", name, me)
		}
	}
}

func TestSignIn_WithoutRoleReturnsProblem(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	b := p.browser()
	p.idp.SignIn(claimsFor("acme", "cooks"))
	got := b.get(b.followToCallback("/"), "Accept", "application/json")
	if got.status != 403 || got.field("code") != "forbidden" || got.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%+v", got)
	}
}

func TestSignIn_ConfigurationIsApplied(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*authn.OIDC)
		claims oidctest.Claims
		want   string // in /me; "" if not signed in
	}{
		"one account for all": {func(o *authn.OIDC) { o.Account, o.AccountClaim = "home", "" }, oidctest.Claims{"sub": "ann", "tenant": "acme", "groups": "agents"}, `"account":"home"`},
		"groups elsewhere":    {func(o *authn.OIDC) { o.GroupsClaim = "realm_access.roles" }, oidctest.Claims{"sub": "ann", "tenant": "acme", "groups": "admins", "realm_access": map[string]any{"roles": []string{"agents"}}}, `"roles":["agent"]`},
		"a claim with a dot":  {func(o *authn.OIDC) { o.GroupsClaim = "https://acme.example/groups" }, oidctest.Claims{"sub": "ann", "tenant": "acme", "https://acme.example/groups": "agents"}, `"roles":["agent"]`},
		"a verified address":  {func(o *authn.OIDC) { o.PrincipalClaim = "email" }, oidctest.Claims{"sub": "1", "email": "ann@acme.example", "email_verified": true, "tenant": "acme", "groups": "agents"}, `"principal":"ann@acme.example"`},
		"any address":         {func(o *authn.OIDC) { o.PrincipalClaim = "email" }, oidctest.Claims{"sub": "1", "email": "ann@acme.example", "tenant": "acme", "groups": "agents"}, ""},
	} {
		p := openSignInSite(t, signInOptions{change: func(config *server.Config) { c.change(config.SignIn.OIDC) }})
		b := p.browser()
		b.signIn(c.claims)
		if me := b.get("/api/v1/me"); (me.status == 200) != (c.want != "") || !strings.Contains(me.body, c.want) {
			t.Errorf("%s: %d %s", name, me.status, me.body)
		}
	}
}

// An ID token with one error.
func TestSignIn_InvalidTokensAreRejected(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	for name, spoil := range map[string]func(oidctest.Claims){
		"of another issuer":         func(c oidctest.Claims) { c["iss"] = "https://elsewhere.example" },
		"for another client":        func(c oidctest.Claims) { c["aud"] = "elsewhere" },
		"for our API":               func(c oidctest.Claims) { c["aud"] = "fermata-api" },
		"for two, and not for us":   func(c oidctest.Claims) { c["aud"] = []string{"fermata", "elsewhere"} },
		"issued to another party":   func(c oidctest.Claims) { c["azp"] = "elsewhere" },
		"too old":                   func(c oidctest.Claims) { c["exp"] = time.Now().Add(-2 * time.Minute).Unix() },
		"without an expiry":         func(c oidctest.Claims) { c["exp"] = nil },
		"of the future":             func(c oidctest.Claims) { c["iat"] = time.Now().Add(10 * time.Minute).Unix() },
		"not valid yet":             func(c oidctest.Claims) { c["nbf"] = time.Now().Add(10 * time.Minute).Unix() },
		"without a nonce":           func(c oidctest.Claims) { delete(c, "nonce") },
		"with another nonce":        func(c oidctest.Claims) { c["nonce"] = "another" },
		"of another access token":   func(c oidctest.Claims) { c["at_hash"] = "another" },
		"with a list for a subject": func(c oidctest.Claims) { c["sub"] = []string{"ann"} },
	} {
		p.idp.ChangeClaims(spoil)
		expectSignedOut(t, p, name)
	}
	p.idp.ChangeClaims(nil)
	var claims jwt.MapClaims
	resign := func(method jwt.SigningMethod, key any) func(string) string {
		return func(token string) string {
			if _, _, err := jwt.NewParser().ParseUnverified(token, &claims); err != nil {
				t.Fatal(err)
			}
			forged, err := jwt.NewWithClaims(method, claims).SignedString(key)
			if err != nil {
				t.Fatal(err)
			}
			return forged
		}
	}
	for name, forge := range map[string]func(string) string{
		"missing":                         func(string) string { return "" },
		"without a signature":             func(token string) string { return token[:strings.LastIndex(token, ".")+1] },
		"with another signature":          func(token string) string { return token[:len(token)-8] + "AAAAAAAA" },
		"with algorithm none":             resign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType),
		"signed with the client's secret": resign(jwt.SigningMethodHS256, []byte(clientSecret)),
	} {
		p.idp.ChangeToken(forge)
		expectSignedOut(t, p, name)
	}
	p.idp.ChangeToken(nil)
	p.signedIn(claimsFor("acme", "agents")) // without an error it works
}

func expectSignedOut(t *testing.T, p *signInSite, name string) {
	t.Helper()
	b := p.browser()
	got := b.signIn(claimsFor("acme", "agents"))
	if got.status != 403 && got.status != 400 || b.get("/api/v1/me").status != 401 {
		t.Errorf("a token %s: %d %s", name, got.status, got.body)
	}
}

func TestSignIn_ToleratesClockSkew(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	for _, c := range []struct {
		ahead time.Duration
		good  bool
	}{{50 * time.Second, true}, {-50 * time.Second, true}, {3 * time.Minute, false}, {-7 * time.Minute, false}} {
		p.idp.Clock(func() time.Time { return time.Now().Add(c.ahead) })
		if got := p.browser().signIn(claimsFor("acme", "agents")); (got.status == 303) != c.good {
			t.Errorf("a provider that is %v ahead: %d %s", c.ahead, got.status, got.body)
		} else if !c.good && !strings.Contains(got.body, "check the clocks") {
			t.Errorf("it does not mention the clock: %s", got.body)
		}
	}
	p.idp.Clock(p.now)
	p.idp.ChangeClaims(func(c oidctest.Claims) { c["exp"] = time.Now().Add(-30 * time.Second).Unix() })
	if got := p.browser().signIn(claimsFor("acme", "agents")); got.status != 303 {
		t.Errorf("a token that expired half a minute ago by our clock: %d %s", got.status, got.body)
	}
}

func TestSignIn_ProviderKeyRotation(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	p.signedIn(claimsFor("acme", "agents"))
	p.idp.Rotate()
	p.signedIn(claimsFor("acme", "agents"))
}

func TestSignIn_ProviderDown(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	before := p.signedIn(claimsFor("acme", "approvers"))
	late := p.browser()
	callback := late.followToCallback("/inbox")
	fresh := openSignInSite(t, signInOptions{}) // without metadata of its provider
	p.idp.Break(true)
	fresh.idp.Break(true)
	for name, got := range map[string]answer{"at the beginning": fresh.browser().get("/signin"), "in the middle": late.get(callback)} {
		if got.status != 503 || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, "identity provider is unavailable") {
			t.Errorf("%s: %d %v %s", name, got.status, got.header, got.body)
		}
	}
	if got := fresh.browser().get("/signin", "Accept", "*/*"); got.status != 503 || got.field("code") != "unavailable" {
		t.Errorf("for a program: %+v", got)
	}
	if got := before.get("/api/v1/requests"); got.status != 200 {
		t.Errorf("a signed-in person is signed out: %+v", got)
	}
	p.idp.Refuse("temporarily_unavailable")
	p.idp.Break(false)
	fresh.idp.Break(false)
	if got := p.browser().signInAsIs(); got.status != 503 {
		t.Errorf("a provider with an error response: %+v", got)
	}
	fresh.signedIn(claimsFor("acme", "approvers"))
}

func TestSignIn_DeniedByProvider(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	p.idp.Refuse("access_denied")
	if got := p.browser().signInAsIs(); got.status != 403 || !strings.Contains(got.body, "access_denied") {
		t.Errorf("%+v", got)
	}
	p.idp.Refuse("<script> alert(1) </script>")
	if got := p.browser().signInAsIs(); got.status != 403 || strings.Contains(got.body, "alert") {
		t.Errorf("%+v", got)
	}
}

// signInAsIs completes a sign-in with whatever the provider sends.
func (b *browser) signInAsIs() answer {
	b.Helper()
	return b.get(b.followToCallback("/"))
}

func TestPages_HaveStrictSecurityHeaders(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	b := p.browser()
	for _, got := range []answer{b.get("/signin?bye"), b.get("/signin/callback?state=x")} {
		for _, want := range []string{`<html lang="en">`, "<title>", "<main>", "<h1>"} {
			if !strings.Contains(got.body, want) {
				t.Errorf("%s lacks %s", got.body, want)
			}
		}
		policy := got.header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || got.header.Get("Referrer-Policy") != "no-referrer" ||
			got.header.Get("Cache-Control") != "no-store" || strings.Contains(got.body, "<script") {
			t.Errorf("%v %s", got.header, got.body)
		}
	}
}

func TestCookies_AttributesAreStrict(t *testing.T) {
	for _, tls := range []bool{true, false} {
		p := openSignInSite(t, signInOptions{tls: tls})
		b := p.browser()
		p.idp.SignIn(claimsFor("acme", "agents"))
		begun := b.get("/signin")
		done := b.get(b.followToCallback("/"))
		var seen []*http.Cookie
		for _, got := range []answer{begun, done} {
			for _, line := range got.header.Values("Set-Cookie") {
				c, err := http.ParseSetCookie(line)
				if err != nil {
					t.Fatal(err)
				}
				seen = append(seen, c)
			}
		}
		if len(seen) != 3 { // one for the flow; then that is deleted, and the session is set
			t.Fatalf("%v", seen)
		}
		for _, c := range seen {
			if strings.HasPrefix(c.Name, "__Host-fermata") != tls || c.Secure != tls || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
				t.Errorf("tls %v: %+v", tls, c)
			}
		}
		if tls { // a neighbouring host could have set it
			plain := p.browser()
			plain.set("fermata", b.session().Value)
			if got := plain.get("/api/v1/me"); got.status != 401 {
				t.Errorf("a cookie without the prefix is accepted: %+v", got)
			}
		}
	}
}
