package oidcinterop

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// tokens are the tokens of the provider.
type tokens struct {
	Access string `json:"access_token"`
	ID     string `json:"id_token"`
}

// tokenFor returns a token for a program by client credentials, with an optional audience.
func (p *providerProxy) tokenFor(client, audience string) string {
	p.Helper()
	form := url.Values{"grant_type": {"client_credentials"}}
	if audience != "" {
		form.Set("resource", audience)
	}
	return p.tokens(client, form).Access
}

// tokensOf returns the tokens for a user who signs in to a program.
func (p *providerProxy) tokensOf(b *browser, name string) tokens {
	p.Helper()
	verifier := rand.Text() + rand.Text()
	sum := sha256.Sum256([]byte(verifier))
	var code string
	b.hop = func(at *url.URL) {
		if at.Path == "/signin/callback" {
			code = at.Query().Get("code")
			at.Path = "/healthz" // the callback of the program
		}
	}
	defer func() { b.hop = func(*url.URL) {} }()
	b.fill(b.open(p.URL+"/auth?"+url.Values{
		"client_id": {"fermata"}, "redirect_uri": {callback}, "response_type": {"code"}, "scope": {"openid groups"}, "resource": {audience},
		"code_challenge_method": {"S256"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])},
	}.Encode()), name)
	return p.tokens("fermata", url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback}, "code_verifier": {verifier}, "resource": {audience},
	})
}

func (p *providerProxy) tokens(client string, form url.Values) (got tokens) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), "POST", p.URL+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		p.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(client, url.QueryEscape(clientSecret))
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil || got.Access == "" {
		p.Fatal(response.Status, err)
	}
	return got
}

// The API accepts access tokens (JWT) of the provider if their audience is our API.
func TestTokens_AccessTokensAuthenticateAtTheAPI(t *testing.T) {
	p := startProxy(t, providerConfig{Alg: "ES256"})
	b := serve(t, p.URL).browser(t)
	good := p.tokenFor("robot", audience)
	if who := b.me(good); who.Status != 200 || who.Principal != "robot" || who.Account != "acme" || who.Method != "token" || !slices.Equal(who.Roles, []string{"agent"}) {
		t.Errorf("%+v", who)
	}
	ann := p.tokensOf(b.newBrowser(), "ann")
	if who := b.me(ann.Access); who.Principal != "ann" || who.Method != "token" || !slices.Equal(who.Roles, []string{"approver"}) {
		t.Errorf("%+v", who)
	}
	for name, token := range map[string]string{
		"for another API":  p.tokenFor("robot", "https://elsewhere.example/api"),
		"for no API":       p.tokenFor("robot", ""),
		"without a group":  p.tokenFor("vagabond", audience),
		"of a user":        ann.ID,
		"that was changed": good[:len(good)-8] + "AAAAAAAA",
	} {
		if who := b.me(token); who.Status != 401 {
			t.Errorf("a token %s: %+v", name, who)
		}
	}

	p.stop()
	if who := b.me(good); who.Status != 200 {
		t.Errorf("with known keys: %+v", who)
	}
	p.start(providerConfig{Alg: "ES256"})
	if who := b.me(p.tokenFor("robot", audience)); who.Status != 200 {
		t.Errorf("a token with the new key: %+v", who)
	}
	if who := b.me(good); who.Status != 401 {
		t.Errorf("a token with a removed key: %+v", who)
	}
}
