package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/time/rate"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/internal/safely"
)

// OIDC is an identity provider that speaks OpenID Connect, and what its word counts for here. People sign in with the authorization code
// flow, with PKCE, state and nonce; the endpoints come from the provider's discovery document.
type OIDC struct {
	// Issuer is the provider's URL, exactly as it stands in its tokens.
	Issuer   string
	ClientID string
	// ClientSecret may be empty for a public client: PKCE protects the code.
	ClientSecret string `json:"-"`
	// RedirectURL is where people come back to, as the provider knows it: https://HOST/signin/callback. With https, cookies are for TLS
	// only; without, the host must be this machine.
	RedirectURL string
	// Scopes are asked for beside openid. The default is profile and email; some providers give groups only if they are asked for "groups".
	Scopes []string

	// GroupsClaim is where the ID token, or else the provider's userinfo endpoint, says which groups somebody is in. The default is "groups"; "a.b" is
	// the member b of the claim a, unless there is a claim of that very name.
	GroupsClaim string
	// Roles says which roles the members of a group have. Who is in several groups has the roles of all; who is in none of them does not get in.
	Roles map[string][]Role
	// Account is whose runs people see. If it differs from person to person, AccountClaim is where it is said, as with groups.
	Account, AccountClaim string
	// PrincipalClaim is what people are called in records. The default is "sub", which never changes hands; "email" counts only if the
	// provider says that it is verified.
	PrincipalClaim string

	// ACR says how strong the provider's classes of authentication (the claim acr) are, for a provider that has some. The methods that it names (amr)
	// count without that: "mfa" is desk.AuthMFA, "hwk" is desk.AuthHardware, and signing in at all is desk.AuthSSO.
	ACR map[string]desk.Auth

	// Audience, if set, lets the API take JWTs of this issuer as bearer tokens if they were made for this audience. It must differ from ClientID:
	// an ID token says who signed in, and is no key.
	Audience string

	// Client speaks to the provider. The default gives up after 10 s.
	Client *http.Client `json:"-"`
}

// String keeps the secret out of logs.
func (o OIDC) String() string { return "OpenID provider " + o.Issuer + ", client " + o.ClientID }

// GoString keeps the secret out of logs.
func (o OIDC) GoString() string { return o.String() }

// Check says what is wrong with what is said. Whether the provider agrees shows when somebody signs in.
func (o *OIDC) Check() error {
	_, err := o.check()
	return err
}

// check says what is wrong with a configuration, and where the server lives.
func (o *OIDC) check() (home *url.URL, err error) {
	if o.Issuer == "" || o.ClientID == "" {
		return nil, errors.New("server: OIDC needs an Issuer and a ClientID")
	}
	if _, err := safeURL("Issuer", o.Issuer); err != nil {
		return nil, err
	}
	if home, err = safeURL("RedirectURL", o.RedirectURL); err != nil {
		return nil, err
	}
	switch {
	case home.Path != "/signin/callback" || home.RawQuery != "":
		return nil, errors.New("server: the path of OIDC.RedirectURL is /signin/callback")
	case (o.Account == "") == (o.AccountClaim == ""):
		return nil, errors.New("server: OIDC needs either an Account or an AccountClaim")
	case len(o.Roles) == 0:
		return nil, errors.New("server: OIDC.Roles is empty: nobody could sign in")
	case o.Audience == o.ClientID:
		return nil, errors.New("server: OIDC.Audience must differ from OIDC.ClientID: an ID token is no key to the API")
	}
	for group, roles := range o.Roles {
		for _, role := range roles {
			if !slices.Contains(Roles, role) {
				return nil, fmt.Errorf("server: the group %q has the role %q; there are %v", group, role, Roles)
			}
		}
	}
	for acr, strength := range o.ACR {
		if !slices.Contains([]desk.Auth{desk.AuthSSO, desk.AuthMFA, desk.AuthHardware}, strength) {
			return nil, fmt.Errorf("server: the acr %q cannot be worth %q", acr, strength)
		}
	}
	return home, nil
}

// safeURL refuses a URL at which others could listen.
func safeURL(what, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, fmt.Errorf("server: OIDC.%s is no URL", what)
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())) {
		return nil, fmt.Errorf("server: OIDC.%s must be https; http is for this machine only", what)
	}
	return u, nil
}

// isLoopback reports whether a host is this machine. Names are not looked up: whoever answers could say anything.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}

// idp is an identity provider, as far as we know it.
type idp struct {
	OIDC
	now    func() time.Time
	keys   *http.Client // for the provider's public keys
	places *http.Client // for its endpoints

	mu      sync.Mutex
	found   *issuer
	looking *search // nil if nobody asks at the moment
}

// search is a question to the provider where its endpoints are. Those who come meanwhile wait for it, too.
type search struct {
	done  chan struct{}
	found *issuer
	err   error
}

// lookPatience is how long a provider may take to say where its endpoints are.
const lookPatience = 15 * time.Second

// issuer is what a provider says of itself.
type issuer struct {
	oauth    oauth2.Config
	keys     oidc.KeySet
	userinfo string // "" if it has none
}

func newIDP(config OIDC, now func() time.Time) *idp {
	config.Scopes = append([]string{oidc.ScopeOpenID}, config.Scopes...)
	if len(config.Scopes) == 1 {
		config.Scopes = append(config.Scopes, "profile", "email")
	}
	config.GroupsClaim, config.PrincipalClaim = cmp.Or(config.GroupsClaim, "groups"), cmp.Or(config.PrincipalClaim, "sub")
	config.Client = cmp.Or(config.Client, &http.Client{Timeout: 10 * time.Second})
	return &idp{OIDC: config, now: now, keys: seldomly(*config.Client), places: seldomly(*config.Client)}
}

// seldomly makes a client that asks seldom.
func seldomly(client http.Client) *http.Client {
	client.Transport = &seldom{next: cmp.Or[http.RoundTripper](client.Transport, http.DefaultTransport), limit: rate.NewLimiter(1, 5)}
	return &client
}

// seldom does not let tokens, which anybody can make, become a flood of requests to the provider: with unknown keys, or while it is down.
type seldom struct {
	next  http.RoundTripper
	limit *rate.Limiter
}

// errTooOften is why the provider was not asked. That is the doing of strangers: what else is wrong is said by those who did ask.
var errTooOften = errors.New("server: the identity provider was asked for its keys, or its endpoints, too often")

// RoundTrip sends a request, unless there were too many.
func (s *seldom) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.limit.Allow() {
		return nil, errTooOften
	}
	return s.next.RoundTrip(r)
}

// discover asks the provider for its endpoints, once. Whoever comes while it is down asks again.
func (p *idp) discover(ctx context.Context) (*issuer, error) {
	p.mu.Lock()
	if p.found != nil {
		defer p.mu.Unlock()
		return p.found, nil
	}
	if p.looking == nil {
		p.looking = &search{done: make(chan struct{})}
		go p.look(context.WithoutCancel(ctx), p.looking) // whoever asked first may go: others wait for it
	}
	l := p.looking
	p.mu.Unlock()
	select {
	case <-l.done:
		return l.found, l.err
	case <-ctx.Done():
		return nil, down(ctx.Err())
	}
}

// look asks the provider, for all who wait.
func (p *idp) look(ctx context.Context, l *search) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	l.found, l.err = p.ask(ctx)
	p.mu.Lock()
	p.found, p.looking = l.found, nil
	p.mu.Unlock()
	close(l.done)
}

// ask asks the provider for its endpoints.
func (p *idp) ask(ctx context.Context) (found *issuer, err error) {
	defer safely.Recover(&err) // it is called in the background, where a panic would end the program
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, p.places), p.Issuer)
	if err != nil {
		return nil, down(err)
	}
	var says struct {
		Keys    string   `json:"jwks_uri"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := provider.Claims(&says); err != nil {
		return nil, down(err)
	}
	endpoint := provider.Endpoint()
	endpoints := map[string]string{"authorization_endpoint": endpoint.AuthURL, "token_endpoint": endpoint.TokenURL, "jwks_uri": says.Keys}
	if provider.UserInfoEndpoint() != "" {
		endpoints["userinfo_endpoint"] = provider.UserInfoEndpoint()
	}
	for what, at := range endpoints {
		if _, err := safeURL(what, at); err != nil {
			return nil, down(err)
		}
	}
	endpoint.AuthStyle = authStyle(p.ClientSecret, says.Methods)
	return &issuer{
		oauth: oauth2.Config{ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: endpoint, RedirectURL: p.RedirectURL, Scopes: p.Scopes},
		keys:  oidc.NewRemoteKeySet(oidc.ClientContext(context.WithoutCancel(ctx), p.keys), says.Keys), userinfo: endpoints["userinfo_endpoint"],
	}, nil
}

// asymmetric are the signatures that only the provider can make. A client secret is no key to sign with, and "none" is no signature. All of them count,
// whatever the provider said that it uses when we asked: its next key may be of another kind.
var asymmetric = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// authStyle is how we prove to the provider who we are. It is not tried out: a code is good for one try.
func authStyle(secret string, methods []string) oauth2.AuthStyle {
	if secret == "" || len(methods) > 0 && !slices.Contains(methods, "client_secret_basic") {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// down says that the provider does not answer, or not as it should. Sessions go on.
func down(err error) error {
	p := busy("the identity provider does not answer; whoever is signed in stays signed in")
	p.retryAfter = 5 * time.Second
	return errors.Join(p, err)
}

// signInURL is where somebody signs in.
func (i *issuer) signInURL(f flow) string {
	return i.oauth.AuthCodeURL(f.State, oauth2.S256ChallengeOption(f.Verifier), oidc.Nonce(f.Nonce))
}

// redeem makes a principal of what the provider sent back with the browser.
func (p *idp) redeem(ctx context.Context, query url.Values, f flow) (Principal, error) {
	at, err := p.discover(ctx)
	if err != nil {
		return Principal{}, err
	}
	if iss := query.Get("iss"); iss != "" && iss != p.Issuer { // RFC 9207
		return Principal{}, problem("bad_request", "this is the answer of another identity provider")
	}
	if code := query.Get("error"); code != "" {
		return Principal{}, refusedThere(code)
	}
	token, err := at.oauth.Exchange(oidc.ClientContext(ctx, p.Client), query.Get("code"), oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return Principal{}, notExchanged(err)
	}
	raw, _ := token.Extra("id_token").(string)
	verified, err := p.verify(ctx, at, raw, p.ClientID)
	if err != nil {
		return Principal{}, err
	}
	if verified.Nonce != f.Nonce {
		return Principal{}, problem("bad_request", "the ID token is the answer to another sign-in")
	}
	if verified.AccessTokenHash != "" && verified.VerifyAccessToken(token.AccessToken) != nil {
		return Principal{}, problem("forbidden", "the ID token belongs to another access token")
	}
	c, err := claimsOf(verified)
	if err == nil {
		err = p.complete(ctx, at, token, c)
	}
	if err != nil {
		return Principal{}, err
	}
	return p.principal(c, ByOIDC)
}

// refusedThere says what the provider said in place of a code.
func refusedThere(code string) error {
	switch {
	case code == "temporarily_unavailable" || code == "server_error":
		return down(errors.New("server: the identity provider says " + code))
	case isWord(code, 64):
		return problem("forbidden", "the identity provider did not let you in (%s)", code)
	}
	return problem("forbidden", "the identity provider did not let you in")
}

// notExchanged says why there is no token for a code. What the provider answered may hold secrets, so only its code is kept.
func notExchanged(err error) error {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		cause := errors.New("server: the identity provider gave no token")
		if network, ok := errors.AsType[*url.Error](err); ok {
			cause = fmt.Errorf("%w: %w", cause, network.Err)
		}
		return down(cause)
	}
	if refused.Response != nil && refused.Response.StatusCode >= http.StatusInternalServerError {
		return down(fmt.Errorf("server: no token for a code: %d", refused.Response.StatusCode))
	}
	if refused.ErrorCode == "invalid_grant" {
		return problem("bad_request", "the code was used before, or is too old")
	}
	return errors.Join(busy("the identity provider does not know this server"), fmt.Errorf("server: no token for a code: %q", refused.ErrorCode))
}
