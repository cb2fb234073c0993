package authn

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

	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/server/problems"
)

// OIDC configures an OpenID Connect provider and how its claims map to roles and accounts. People
// sign in with the authorization code flow with PKCE, state and nonce; the endpoints come from the
// provider's discovery document.
type OIDC struct {
	// Issuer is the provider's URL, exactly as in its tokens.
	Issuer   string
	ClientID string
	// ClientSecret may be empty for a public client: PKCE protects the code.
	ClientSecret string `json:"-"`
	// RedirectURL is the callback URL registered at the provider: https://HOST/signin/callback.
	// With https, cookies are sent over TLS only; with http, the host must be the loopback
	// interface.
	RedirectURL string
	// Scopes are requested in addition to openid. Defaults to profile and email; some providers
	// send groups only if "groups" is requested.
	Scopes []string

	// GroupsClaim names the claim with the groups of a person, in the ID token or else in the
	// userinfo response. Defaults to "groups"; "a.b" is the member b of the claim a, unless a claim
	// has exactly that name.
	GroupsClaim string
	// Roles maps groups to roles. A person in several groups has the roles of all; a person in none
	// of them is rejected.
	Roles map[string][]Role
	// Account is the account of all people. If it differs per person, AccountClaim names the claim,
	// as for groups.
	Account, AccountClaim string
	// PrincipalClaim names the claim that identifies people in records. Defaults to "sub", which is
	// never reassigned; "email" counts only if the provider has verified it.
	PrincipalClaim string

	// ACR maps the provider's authentication classes (the claim acr) to a strength. The
	// authentication methods (amr) need no mapping: "mfa" is requirement.AuthMFA, "hwk" is
	// requirement.AuthHardware, and any sign-in is requirement.AuthSSO.
	ACR map[string]requirement.Auth

	// Audience, if set, lets the API accept JWTs of this issuer as bearer tokens if they were
	// issued for this audience. It must differ from ClientID: an ID token proves a sign-in and is
	// not an API credential.
	Audience string

	// Client sends requests to the provider. Defaults to a client with a timeout of 10 s.
	Client *http.Client `json:"-"`
}

// String omits the secret.
func (o OIDC) String() string { return "OpenID provider " + o.Issuer + ", client " + o.ClientID }

// GoString omits the secret.
func (o OIDC) GoString() string { return o.String() }

// Check validates the configuration without contacting the provider.
func (o *OIDC) Check() error {
	_, err := o.validate()
	return err
}

// validate checks a configuration and returns the server's own URL.
func (o *OIDC) validate() (home *url.URL, err error) {
	if o.Issuer == "" || o.ClientID == "" {
		return nil, errors.New("authn: OIDC needs an Issuer and a ClientID")
	}
	if _, err := safeURL("Issuer", o.Issuer); err != nil {
		return nil, err
	}
	if home, err = safeURL("RedirectURL", o.RedirectURL); err != nil {
		return nil, err
	}
	switch {
	case home.Path != "/signin/callback" || home.RawQuery != "":
		return nil, errors.New("authn: the path of OIDC.RedirectURL must be /signin/callback")
	case (o.Account == "") == (o.AccountClaim == ""):
		return nil, errors.New("authn: OIDC needs either an Account or an AccountClaim")
	case len(o.Roles) == 0:
		return nil, errors.New("authn: OIDC.Roles is empty, so no sign-in could succeed")
	case o.Audience == o.ClientID:
		return nil, errors.New("authn: OIDC.Audience must differ from OIDC.ClientID: an ID token is not an API credential")
	}
	for group, roles := range o.Roles {
		for _, role := range roles {
			if !slices.Contains(Roles, role) {
				return nil, fmt.Errorf("authn: group %q has unknown role %q; the roles are %v", group, role, Roles)
			}
		}
	}
	for acr, strength := range o.ACR {
		if !slices.Contains([]requirement.Auth{requirement.AuthSSO, requirement.AuthMFA, requirement.AuthHardware}, strength) {
			return nil, fmt.Errorf("authn: acr %q has unknown strength %q", acr, strength)
		}
	}
	return home, nil
}

// safeURL rejects a URL without TLS, unless it is a loopback URL.
func safeURL(what, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, fmt.Errorf("authn: OIDC.%s is not a valid URL", what)
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && isLoopbackHost(u.Hostname())) {
		return nil, fmt.Errorf("authn: OIDC.%s must use https; http is allowed for loopback hosts only", what)
	}
	return u, nil
}

// isLoopbackHost reports whether a host is the loopback interface. It does not resolve names,
// because DNS could return anything.
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

// signInURL returns the provider's authorization URL for a flow.
func (i *providerMetadata) signInURL(f flow) string {
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(f.Verifier), oidc.Nonce(f.Nonce)}
	if f.Again { // the provider must not use its own session
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"))
	}
	return i.oauth.AuthCodeURL(f.State, options...)
}

// completeSignIn converts the provider's callback to a principal.
func (p *idp) completeSignIn(ctx context.Context, query url.Values, f flow) (Principal, error) {
	at, err := p.discover(ctx)
	if err != nil {
		return Principal{}, err
	}
	if iss := query.Get("iss"); iss != "" && iss != p.Issuer { // RFC 9207
		return Principal{}, problems.New("bad_request", "the response is from another identity provider")
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
		return Principal{}, problems.New("bad_request", "the ID token belongs to another sign-in")
	}
	if verified.AccessTokenHash != "" && verified.VerifyAccessToken(token.AccessToken) != nil {
		return Principal{}, problems.New("forbidden", "the ID token belongs to another access token")
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

// exchange exchanges a code for tokens. If the endpoint has moved, it rediscovers the provider: the
// code has not been used.
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

// providerDenied converts the provider's error response.
func providerDenied(code string) error {
	switch {
	case code == "temporarily_unavailable" || code == "server_error":
		return providerUnavailable(errors.New("authn: identity provider returned " + code))
	case isVisibleToken(code, 64):
		return problems.New("forbidden", "the identity provider denied the sign-in (%s)", code)
	}
	return problems.New("forbidden", "the identity provider denied the sign-in")
}

// exchangeError converts a failed code exchange. The provider's response may contain secrets, so
// only its error code is kept.
func exchangeError(err error) error {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		cause := errors.New("authn: identity provider returned no token")
		if network, ok := errors.AsType[*url.Error](err); ok {
			cause = fmt.Errorf("%w: %w", cause, network.Err)
		}
		return providerUnavailable(cause)
	}
	if refused.Response != nil && refused.Response.StatusCode >= http.StatusInternalServerError {
		return providerUnavailable(fmt.Errorf("authn: code exchange failed: %d", refused.Response.StatusCode))
	}
	if refused.ErrorCode == "invalid_grant" {
		return problems.New("bad_request", "the code was already used or has expired")
	}
	why := "no reason given"
	// a longer text is not an error code and may contain anything
	if isVisibleToken(refused.ErrorCode, 64) {
		why = refused.ErrorCode
	}
	return errors.Join(problems.Overloaded("the identity provider does not recognize this server"), errors.New("authn: code exchange failed: "+why))
}
