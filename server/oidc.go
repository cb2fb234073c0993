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
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/fermata-go/fermata/desk"
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
	_, err := o.validate()
	return err
}

// check says what is wrong with a configuration, and where the server lives.
func (o *OIDC) validate() (home *url.URL, err error) {
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
	if u.Scheme != "https" && !(u.Scheme == "http" && isLoopbackHost(u.Hostname())) {
		return nil, fmt.Errorf("server: OIDC.%s must be https; http is for this machine only", what)
	}
	return u, nil
}

// isLoopbackHost reports whether a host is this machine. Names are not looked up: whoever answers could say anything.
func isLoopbackHost(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}

func newIDP(config OIDC, now func() time.Time) *idp {
	config.Scopes = append([]string{oidc.ScopeOpenID}, config.Scopes...)
	if len(config.Scopes) == 1 {
		config.Scopes = append(config.Scopes, "profile", "email")
	}
	config.GroupsClaim, config.PrincipalClaim = cmp.Or(config.GroupsClaim, "groups"), cmp.Or(config.PrincipalClaim, "sub")
	client := *cmp.Or(config.Client, &http.Client{Timeout: 10 * time.Second})
	client.CheckRedirect = requireTLSRedirect(client.CheckRedirect)
	config.Client = &client
	return &idp{OIDC: config, now: now, keysClient: rateLimitedClient(client), discoveryClient: rateLimitedClient(client)}
}

// signInURL is where somebody signs in.
func (i *providerMetadata) signInURL(f flow) string {
	return i.oauth.AuthCodeURL(f.State, oauth2.S256ChallengeOption(f.Verifier), oidc.Nonce(f.Nonce))
}

// redeem makes a principal of what the provider sent back with the browser.
func (p *idp) completeSignIn(ctx context.Context, query url.Values, f flow) (Principal, error) {
	at, err := p.discover(ctx)
	if err != nil {
		return Principal{}, err
	}
	if iss := query.Get("iss"); iss != "" && iss != p.Issuer { // RFC 9207
		return Principal{}, problem("bad_request", "this is the answer of another identity provider")
	}
	if code := query.Get("error"); code != "" {
		return Principal{}, providerDenied(code)
	}
	token, err := p.exchange(ctx, at, query.Get("code"), f.Verifier)
	if err != nil {
		return Principal{}, err
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
		err = p.addUserinfo(ctx, at, token, c)
	}
	if err != nil {
		return Principal{}, err
	}
	return p.principal(c, MethodOIDC)
}

// exchange gets tokens for a code. A provider that has moved is asked where it is now: the code has not been used.
func (p *idp) exchange(ctx context.Context, at *providerMetadata, code, verifier string) (*oauth2.Token, error) {
	get := func(at *providerMetadata) (*oauth2.Token, error) {
		return at.oauth.Exchange(oidc.ClientContext(ctx, p.Client), code, oauth2.VerifierOption(verifier))
	}
	token, err := get(at)
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); err != nil && (!ok || refused.ErrorCode != "invalid_grant") {
		if now := p.refresh(ctx, at); now.oauth.Endpoint != at.oauth.Endpoint {
			token, err = get(now)
		}
	}
	if err != nil {
		return nil, exchangeError(err)
	}
	return token, nil
}

// providerDenied says what the provider said in place of a code.
func providerDenied(code string) error {
	switch {
	case code == "temporarily_unavailable" || code == "server_error":
		return providerUnavailable(errors.New("server: the identity provider says " + code))
	case isVisibleToken(code, 64):
		return problem("forbidden", "the identity provider did not let you in (%s)", code)
	}
	return problem("forbidden", "the identity provider did not let you in")
}

// exchangeError says why there is no token for a code. What the provider answered may hold secrets, so only its code is kept.
func exchangeError(err error) error {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		cause := errors.New("server: the identity provider gave no token")
		if network, ok := errors.AsType[*url.Error](err); ok {
			cause = fmt.Errorf("%w: %w", cause, network.Err)
		}
		return providerUnavailable(cause)
	}
	if refused.Response != nil && refused.Response.StatusCode >= http.StatusInternalServerError {
		return providerUnavailable(fmt.Errorf("server: no token for a code: %d", refused.Response.StatusCode))
	}
	if refused.ErrorCode == "invalid_grant" {
		return problem("bad_request", "the code was used before, or is too old")
	}
	why := "it does not say why"
	if isVisibleToken(refused.ErrorCode, 64) { // what is longer is no code, and may be anything
		why = refused.ErrorCode
	}
	return errors.Join(overloaded("the identity provider does not know this server"), errors.New("server: no token for a code: "+why))
}
