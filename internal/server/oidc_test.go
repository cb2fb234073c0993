package server_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/oidctest"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
)

// forAPI are the claims of a bearer token for the API.
func forAPI(groups ...string) oidctest.Claims {
	return oidctest.Claims{"aud": "fermata-api", "sub": "bot", "tenant": "acme", "groups": groups}
}

func (p *signInSite) me(token string) answer {
	p.Helper()
	return p.call(token, "GET", "/api/v1/me", "")
}

func TestTokens_AudienceMustBeTheAPI(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	got := p.me(p.idp.Token(forAPI("approvers")))
	if got.status != 200 || got.field("principal") != "bot" || got.field("account") != "acme" || got.field("method") != "token" || got.field("until") == nil {
		t.Fatalf("%+v", got)
	}
	for name, change := range map[string]func(oidctest.Claims){
		"for another audience":      func(c oidctest.Claims) { c["aud"] = "elsewhere" },
		"for nobody":                func(c oidctest.Claims) { delete(c, "aud") },
		"an ID token":               func(c oidctest.Claims) { c["aud"] = "fermata" },
		"an ID token for us too":    func(c oidctest.Claims) { c["aud"] = []string{"fermata-api", "fermata"}; c["azp"] = "fermata" },
		"an ID token by its nonce":  func(c oidctest.Claims) { c["nonce"] = "n" },
		"of another issuer":         func(c oidctest.Claims) { c["iss"] = "https://elsewhere.example" },
		"too old":                   func(c oidctest.Claims) { c["exp"] = time.Now().Add(-2 * time.Minute).Unix() },
		"of the future":             func(c oidctest.Claims) { c["iat"] = time.Now().Add(time.Hour).Unix() },
		"not valid yet":             func(c oidctest.Claims) { c["nbf"] = time.Now().Add(2 * time.Minute).Unix() },
		"for us under another name": func(c oidctest.Claims) { delete(c, "aud"); c["Aud"] = "fermata-api" },
		"of two issuers":            func(c oidctest.Claims) { c["iss"] = "https://elsewhere.example"; c["i\u017fs"] = p.idp.URL },
		"without a role":            func(c oidctest.Claims) { c["groups"] = "cooks" },
		"without an account":        func(c oidctest.Claims) { delete(c, "tenant") },
	} {
		claims := forAPI("approvers")
		change(claims)
		if got := p.me(p.idp.Token(claims)); got.status != 401 {
			t.Errorf("a token %s: %+v", name, got)
		}
	}
	other := oidctest.New(t, oidctest.Client{ID: "fermata"})
	forged := forAPI("approvers")
	forged["iss"] = p.idp.URL
	if got := p.me(other.Token(forged)); got.status != 401 {
		t.Errorf("a forged token in his name: %+v", got)
	}
	off := openSignInSite(t, signInOptions{change: func(c *server.Config) { c.SignIn.OIDC.Audience = "" }})
	if got := off.me(off.idp.Token(forAPI("approvers"))); got.status != 401 {
		t.Errorf("tokens are not configured: %+v", got)
	}
}

func TestTokens_ProviderDownReturns503(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	token := p.idp.Token(forAPI("agents"))
	half := openSignInSite(t, signInOptions{})
	half.browser().followToCallback("/") // it has the metadata, but no keys yet
	other := half.idp.Token(forAPI("agents"))
	half.idp.Break(true)
	if got := half.me(other); got.status != 503 {
		t.Errorf("the keys are unknown, and yet: %+v", got)
	}
	p.idp.Break(true)
	if got := p.me(token); got.status != 503 {
		t.Errorf("its validity is unknown, and yet: %+v", got)
	}
	if got := p.me(p.key("acme", authn.RoleAgent)); got.status != 200 {
		t.Errorf("a key: %+v", got)
	}
	p.idp.Break(false)
	if got := p.me(token); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	p.idp.Break(true)
	if got := p.me(token); got.status != 200 {
		t.Errorf("its keys are known now: %+v", got)
	}
}

// The provider withdraws a stolen key. The thief uses no unknown key, so nothing else triggers a
// refresh.
func TestTokens_WithdrawnKeyIsRejected(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	claims := forAPI("agents")
	claims["exp"] = time.Now().Add(24 * time.Hour).Unix()
	stolen := p.idp.Token(claims)
	if got := p.me(stolen); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	p.idp.Rotate()
	p.advance(11 * time.Minute)
	if got := p.me(stolen); got.status != 401 {
		t.Errorf("the key is still valid: %+v", got)
	}
	if got := p.me(p.idp.Token(claims)); got.status != 200 {
		t.Errorf("the new key: %+v", got)
	}
}

// Any client can send a token with an unknown key. That must flood neither the provider nor the
// log.
func TestTokens_UnknownKeysDoNotFloodTheProvider(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	good := p.idp.Token(forAPI("agents"))
	if got := p.me(good); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	other := oidctest.New(t, oidctest.Client{})
	forged := forAPI("agents")
	forged["iss"] = p.idp.URL
	begin := time.Now()
	for range 30 {
		if got := p.me(other.Token(forged)); got.status != 401 && got.status != 503 {
			t.Fatalf("%+v", got)
		}
	}
	if most := 6 + int(time.Since(begin).Seconds()); p.idp.KeyRequests() > most {
		t.Errorf("the keys were requested %d times, and not at most %d times", p.idp.KeyRequests(), most)
	}
	if got := p.me(good); got.status != 200 {
		t.Errorf("a valid one is rejected during that: %+v", got)
	}
	if log := p.log.String(); strings.Contains(log, "authentication failed") {
		t.Errorf("anonymous clients write to the log:\n%s", log)
	}
}

func TestNew_InvalidSignInIsAnError(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	for want, change := range map[string]func(*authn.SignIn){
		"Credentials and a Sealer":                     func(s *authn.SignIn) { s.Sealer = nil },
		"needs Credentials":                            func(s *authn.SignIn) { s.Credentials = nil },
		"cannot be negative":                           func(s *authn.SignIn) { s.Lifetime = -1 },
		"SignIn.Idle":                                  func(s *authn.SignIn) { s.IdleTimeout = -1 },
		"an Issuer and a ClientID":                     func(s *authn.SignIn) { s.OIDC.Issuer = "" },
		"and a ClientID":                               func(s *authn.SignIn) { s.OIDC.ClientID = "" },
		"OIDC.Issuer must use https":                   func(s *authn.SignIn) { s.OIDC.Issuer = "http://idp.example" },
		"OIDC.Issuer is not a valid URL":               func(s *authn.SignIn) { s.OIDC.Issuer = "idp" },
		"OIDC.RedirectURL must use https":              func(s *authn.SignIn) { s.OIDC.RedirectURL = "http://fermata.example/signin/callback" },
		"OIDC.RedirectURL is not a valid URL":          func(s *authn.SignIn) { s.OIDC.RedirectURL = "" },
		"must be /signin/callback":                     func(s *authn.SignIn) { s.OIDC.RedirectURL = "https://fermata.example/callback" },
		"either an Account or an AccountClaim":         func(s *authn.SignIn) { s.OIDC.AccountClaim = "" },
		"needs either":                                 func(s *authn.SignIn) { s.OIDC.Account = "acme" },
		"no sign-in could succeed":                     func(s *authn.SignIn) { s.OIDC.Roles = nil },
		`group "cooks" has unknown role "king"`:        func(s *authn.SignIn) { s.OIDC.Roles = map[string][]authn.Role{"cooks": {"king"}} },
		`acr "gold" has unknown strength "token"`:      func(s *authn.SignIn) { s.OIDC.ACR = map[string]requirement.Auth{"gold": requirement.AuthToken} },
		"OIDC.Audience must differ from OIDC.ClientID": func(s *authn.SignIn) { s.OIDC.Audience = s.OIDC.ClientID },
	} {
		config, signIn, oidc := p.config, *p.config.SignIn, *p.config.SignIn.OIDC
		signIn.OIDC = &oidc
		config.SignIn = &signIn
		change(&signIn)
		if _, err := server.New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// I7: sign-in secrets are in no log, metric or error.
func TestI7_SignInSecretsDoNotLeak(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	secrets := map[string]string{"the client's secret": clientSecret}
	p.idp.SignIn(claimsFor("acme", "admins"))
	b := p.browser()
	callback := b.followToCallback("/inbox")
	_, secrets["the cookie of a sign-in"] = b.flowCookie()
	var said strings.Builder
	tell := func(got answer) { fmt.Fprintln(&said, got.status, got.body, got.header.Get("Location")) }
	tell(b.get(callback))
	tell(b.get(callback))
	_, code, _ := strings.Cut(callback, "code=")
	secrets["the code"], _, _ = strings.Cut(code, "&")
	secrets["the session"] = b.session().Value
	key := p.key("acme", authn.RoleAdmin)
	secrets["a key"], secrets["a token"] = key, p.idp.Token(forAPI("agents"))
	link, err := p.server.DevLink(p.listener.Listener.Addr(), devPrincipal, "/")
	if err != nil {
		t.Fatal(err)
	}
	_, secrets["the link's token"], _ = strings.Cut(link, "/s/")
	p.idp.ChangeToken(func(token string) string {
		secrets["a bad ID token"] = token[:len(token)-9] + "AAAAAAAAA"
		return secrets["a bad ID token"]
	})
	tell(p.browser().signIn(claimsFor("acme", "admins")))
	for _, token := range []string{key, key + "x", secrets["a token"], secrets["a token"] + "x"} {
		tell(p.me(token))
	}
	one, two := p.browser(), p.browser()
	tell(one.get(link))
	tell(two.get(link))
	tell(two.get(link, "X-Forwarded-For", "1.2.3.4"))
	late := p.browser()
	callback = late.followToCallback("/")
	p.idp.Break(true)
	tell(late.get(callback))
	tell(b.send("POST", "/signout", ""))
	fmt.Fprintf(&said, "%v %+v %#v", p.config.SignIn.OIDC, *p.config.SignIn.OIDC, *p.config.SignIn.OIDC)
	w := httptest.NewRecorder()
	p.server.Metrics().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if !strings.Contains(p.log.String(), "signed in") {
		t.Error("the log is empty, so the test proves nothing")
	}
	for what, secret := range secrets {
		for where, text := range map[string]string{"the log": p.log.String(), "the metrics": w.Body.String(), "responses": said.String()} {
			if len(secret) < 8 || strings.Contains(text, secret) {
				t.Errorf("%s is in %s, or not known (%q)", what, where, secret)
			}
		}
	}
}

func TestStrength_FollowsProviderClaims(t *testing.T) {
	p := openSignInSite(t, signInOptions{change: func(c *server.Config) {
		c.SignIn.OIDC.ACR = map[string]requirement.Auth{"gold": requirement.AuthMFA, "plain": requirement.AuthSSO}
	}})
	for name, c := range map[string]struct {
		amr  any
		acr  string
		want requirement.Auth
	}{
		"nothing":                  {nil, "", requirement.AuthSSO},
		"a password":               {[]string{"pwd"}, "", requirement.AuthSSO},
		"two methods, one factor":  {[]string{"pwd", "kba"}, "", requirement.AuthSSO},
		"two factors":              {[]string{"pwd", "otp", "mfa"}, "", requirement.AuthMFA},
		"one method as a text":     {"mfa", "", requirement.AuthMFA},
		"a key in hardware":        {[]string{"hwk"}, "", requirement.AuthHardware},
		"a smart card and more":    {[]string{"mfa", "sc"}, "", requirement.AuthHardware},
		"a class":                  {[]string{"pwd"}, "gold", requirement.AuthMFA},
		"a class that is unknown":  {nil, "platinum", requirement.AuthSSO},
		"a class below the method": {[]string{"hwk"}, "plain", requirement.AuthHardware},
	} {
		person := claimsFor("acme", "agents")
		person["acr"] = c.acr
		if c.amr != nil {
			person["amr"] = c.amr
		}
		if got := p.signedIn(person).get("/api/v1/me").field("strength"); got != string(c.want) {
			t.Errorf("%s has strength %v, and not %s", name, got, c.want)
		}
	}
	weak := forAPI("agents")
	weak["amr"] = "hwk" // sent as a bearer token now
	for name, got := range map[string]answer{"a key": p.me(p.key("acme", authn.RoleAgent)), "a token": p.me(p.idp.Token(weak))} {
		if got.field("strength") != string(requirement.AuthToken) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
