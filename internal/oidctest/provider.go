// Package oidctest is an OpenID provider for tests, on loopback. It is strict: it requires
// everything that the standards tell a client to send, and a code can be used once.
//
//	idp := oidctest.New(t, oidctest.Client{ID: "fermata", Secret: "s3cret", RedirectURL: url})
//	idp.SignIn(oidctest.Claims{"sub": "ann", "groups": []string{"approvers"}})   // the user of the browser
//
// The authorization endpoint redirects a browser back at once, as for an already signed-in
// user.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Claims are the claims of a token.
type Claims map[string]any

// Client is the only client of the provider.
type Client struct{ ID, Secret, RedirectURL string }

// Provider is an OpenID provider.
type Provider struct {
	// URL is the issuer.
	URL string

	t      testing.TB
	server *httptest.Server
	client Client

	mu                sync.Mutex
	now               func() time.Time
	key               *ecdsa.PrivateKey
	kid               string
	person            Claims
	refusal           string
	broken            bool
	changeClaims      func(Claims)
	changeToken       func(string) string
	reuseCodes        bool
	keyRequests       int
	path              string // the base path of the endpoints
	discoveryRequests int    // number of discovery requests
	codes             map[string]*grant
}

// grant holds the data of a code.
type grant struct {
	claims    Claims
	challenge string
	nonce     string
	until     time.Time
	used      bool
}

// codeLifetime is how long a code is valid.
const codeLifetime = time.Minute

// New starts a provider. It ends with the test.
func New(t testing.TB, client Client) *Provider {
	t.Helper()
	p := &Provider{t: t, client: client, now: time.Now, codes: make(map[string]*grant)}
	p.Rotate()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /jwks", p.jwks)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.isBroken() {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		p.moved(mux).ServeHTTP(w, r)
	}))
	p.URL = p.server.URL
	t.Cleanup(p.server.Close)
	return p
}

// SignIn sets the user of the browser.
func (p *Provider) SignIn(person Claims) { p.change(func() { p.person, p.refusal = person, "" }) }

// Refuse redirects every browser back with an error such as access_denied.
func (p *Provider) Refuse(code string) { p.change(func() { p.refusal = code }) }

// Break makes every response a server error, or ends that.
func (p *Provider) Break(broken bool) { p.change(func() { p.broken = broken }) }

// Move moves the endpoints to another path and creates new keys.
func (p *Provider) Move(below string) {
	p.Rotate()
	p.change(func() { p.path = below })
}

// moved serves the endpoints at their current path.
func (p *Provider) moved(endpoints http.Handler) http.Handler {
	p.mu.Lock()
	defer p.mu.Unlock()
	mux := http.NewServeMux()
	mux.Handle("/.well-known/", endpoints)
	mux.Handle(p.path+"/", http.StripPrefix(p.path, endpoints))
	return mux
}

// ChangeClaims sets a function that changes the claims of ID tokens before signing; nil removes it.
func (p *Provider) ChangeClaims(spoil func(Claims)) { p.change(func() { p.changeClaims = spoil }) }

// ChangeToken sets a function that changes ID tokens after signing; nil removes it.
func (p *Provider) ChangeToken(forge func(token string) string) {
	p.change(func() { p.changeToken = forge })
}

// AllowCodeReuse lets codes be used more than once, like an insecure provider.
func (p *Provider) AllowCodeReuse() { p.change(func() { p.reuseCodes = true }) }

// Clock sets the provider's clock.
func (p *Provider) Clock(now func() time.Time) { p.change(func() { p.now = now }) }

// KeyRequests returns the number of requests for the keys.
func (p *Provider) KeyRequests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keyRequests
}

// DiscoveryRequests returns the number of discovery requests.
func (p *Provider) DiscoveryRequests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.discoveryRequests
}

// Rotate creates a new key and discards the old one.
func (p *Provider) Rotate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	p.change(func() { p.key, p.kid = key, rand.Text() })
}

func (p *Provider) change(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *Provider) isBroken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}

// Token signs a token of the provider. It adds issuer and times if they are missing.
func (p *Provider) Token(claims Claims) string {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.signLocked(claims)
}

func (p *Provider) signLocked(claims Claims) string {
	now := p.now()
	full := jwt.MapClaims{"iss": p.URL, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()}
	maps.Copy(full, claims)
	token := jwt.NewWithClaims(jwt.SigningMethodES256, full)
	token.Header["kid"] = p.kid
	text, err := token.SignedString(p.key)
	if err != nil {
		p.t.Error(err)
	}
	return text
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	p.discoveryRequests++
	at := p.URL + p.path
	p.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{
		"issuer": p.URL, "authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token", "jwks_uri": at + "/jwks",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic"},
	})
}

func (p *Provider) jwks(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keyRequests++
	point, err := p.key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		p.t.Error(err)
		return
	}
	encode := base64.RawURLEncoding.EncodeToString
	answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{
		"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": p.kid, "x": encode(point[1:33]), "y": encode(point[33:]),
	}}})
}

// authorize handles the browser. Errors of the client fail the test.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	for name, good := range map[string]bool{
		"response_type=code":           query.Get("response_type") == "code",
		"its client_id":                query.Get("client_id") == p.client.ID,
		"its redirect_uri":             query.Get("redirect_uri") == p.client.RedirectURL,
		"the scope openid":             slices.Contains(strings.Fields(query.Get("scope")), "openid"),
		"a state of 128 bits":          len(query.Get("state")) >= 22,
		"a nonce of 128 bits":          len(query.Get("nonce")) >= 22,
		"a nonce other than the state": query.Get("nonce") != query.Get("state"),
		"code_challenge_method=S256":   query.Get("code_challenge_method") == "S256",
		"a code_challenge of 256 bits": len(query.Get("code_challenge")) == 43,
		"everything once":              !slices.ContainsFunc(slices.Collect(maps.Values(query)), func(v []string) bool { return len(v) != 1 }),
		"no secret in the URL":         p.client.Secret == "" || !strings.Contains(r.URL.String(), p.client.Secret),
	} {
		if !good {
			p.t.Errorf("authorization request without %s: %s", name, r.URL)
			http.Error(w, "invalid_request", http.StatusBadRequest)
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	back := url.Values{"state": {query.Get("state")}, "iss": {p.URL}}
	if p.refusal != "" {
		back.Set("error", p.refusal)
	} else {
		code := rand.Text()
		p.codes[code] = &grant{claims: p.person, challenge: query.Get("code_challenge"), nonce: query.Get("nonce"), until: p.now().Add(codeLifetime)}
		back.Set("code", code)
	}
	http.Redirect(w, r, p.client.RedirectURL+"?"+back.Encode(), http.StatusFound)
}

// token exchanges a code for tokens, once.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, secret, ok := r.BasicAuth()
	if !ok || id != url.QueryEscape(p.client.ID) || secret != url.QueryEscape(p.client.Secret) {
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	if r.ParseForm() != nil || r.PostForm.Get("grant_type") != "authorization_code" || r.PostForm.Get("redirect_uri") != p.client.RedirectURL || r.URL.RawQuery != "" {
		refuse(w, http.StatusBadRequest, "invalid_request")
		return
	}
	g := p.codes[r.PostForm.Get("code")]
	sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	verified := g != nil && subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(g.challenge)) == 1
	if !verified || g.used && !p.reuseCodes || p.now().After(g.until) {
		refuse(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	g.used = true
	access := rand.Text()
	half := sha256.Sum256([]byte(access))
	claims := Claims{"aud": p.client.ID, "nonce": g.nonce, "at_hash": base64.RawURLEncoding.EncodeToString(half[:16])}
	maps.Copy(claims, g.claims)
	if p.changeClaims != nil {
		p.changeClaims(claims)
	}
	token := p.signLocked(claims)
	if p.changeToken != nil {
		token = p.changeToken(token)
	}
	answer(w, http.StatusOK, map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 300, "id_token": token})
}

func refuse(w http.ResponseWriter, status int, code string) {
	answer(w, status, map[string]any{"error": code, "error_description": fmt.Sprintf("request rejected: %s", code)})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
