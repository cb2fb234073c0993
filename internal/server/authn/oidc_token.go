package authn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/fermata-go/fermata/internal/server/problems"
)

// clockSkew is the tolerated difference between the provider's clock and ours.
const clockSkew = time.Minute

// verify checks that a JWT is signed by the provider, issued for an audience, and valid now.
func (p *idp) verify(ctx context.Context, at *providerMetadata, raw, audience string) (*oidc.IDToken, error) {
	keys := &observedKeySet{KeySet: at.keys, refresh: func() oidc.KeySet { return p.refresh(ctx, at).keys }}
	now := p.now()
	verifier := oidc.NewVerifier(p.Issuer, keys, &oidc.Config{
		ClientID: audience, SupportedSigningAlgs: asymmetricAlgs, Now: func() time.Time { return now.Add(-clockSkew) },
	})
	token, err := verifier.Verify(ctx, raw)
	switch {
	case keys.fetchErr != nil:
		return nil, providerUnavailable(keys.fetchErr)
	case err != nil:
		return nil, verifyError(err)
	case token.IssuedAt.After(now.Add(clockSkew)):
		return nil, tokenNotYetValid()
	}
	var claims struct {
		Party string      `json:"azp"`
		From  json.Number `json:"nbf"`
	}
	if err := errors.Join(token.Claims(&claims), rejectAmbiguousClaims(token)); err != nil {
		return nil, verifyError(err)
	}
	// the library tolerates more
	if from, err := claims.From.Float64(); err == nil && from > float64(now.Add(clockSkew).Unix()) {
		return nil, tokenNotYetValid()
	}
	if audience == p.ClientID && (len(token.Audience) > 1 || claims.Party != "") && claims.Party != p.ClientID {
		return nil, problems.New("forbidden", "the token was issued for another audience")
	}
	return token, nil
}

// tokenNotYetValid is the problem of a token from the future.
func tokenNotYetValid() *problems.Problem {
	return problems.New("forbidden", "the token is not valid yet; check the clocks")
}

// securityClaims are the claims that decide whether a token is valid.
var securityClaims = []string{"iss", "sub", "aud", "azp", "exp", "iat", "nbf", "nonce", "at_hash"}

// rejectAmbiguousClaims rejects a token with a claim that differs from a security claim only in
// case. The library matches names case-insensitively: an "AUD" claim that a user can set at the
// provider would hide the provider's "aud".
func rejectAmbiguousClaims(token *oidc.IDToken) error {
	c, err := claimsOf(token)
	if err != nil {
		return err
	}
	for name := range c {
		if !slices.Contains(securityClaims, name) && slices.ContainsFunc(securityClaims, func(known string) bool { return strings.EqualFold(known, name) }) {
			return fmt.Errorf("authn: ambiguous claim %q", name)
		}
	}
	return nil
}

// verifyError converts a verification error without including token contents.
func verifyError(err error) error {
	if _, old := errors.AsType[*oidc.TokenExpiredError](err); old {
		return problems.New("forbidden", "the token has expired; check the clocks")
	}
	return problems.New("forbidden", "the token is not a token of the identity provider for this server")
}

// observedKeySet records whether keys could not be fetched. The verifier reports that as a bad
// signature; the server must distinguish them.
type observedKeySet struct {
	oidc.KeySet
	refresh  func() oidc.KeySet // returns the keys after rediscovery
	fetchErr error
}

// VerifySignature delegates to the key set.
func (w *observedKeySet) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := w.KeySet.VerifySignature(ctx, jwt)
	if err != nil {
		if now := w.refresh(); now != w.KeySet {
			payload, err = now.VerifySignature(ctx, jwt)
		}
	}
	if isFetchError(err) {
		w.fetchErr = err
	}
	return payload, err
}

// Authenticate accepts bearer tokens that the provider issued for the API. It does not use
// sessions.
func (p *idp) Authenticate(r *http.Request) (Principal, error) {
	raw := BearerToken(r)
	if strings.Count(raw, ".") != 2 { // not a JWT: no need to query the provider
		return Principal{}, ErrUnauthenticated
	}
	at, err := p.discover(r.Context())
	if err != nil {
		return Principal{}, err
	}
	token, err := p.verify(r.Context(), at, raw, p.Audience)
	if err != nil {
		return Principal{}, orUnauthenticated(err)
	}
	if slices.Contains(token.Audience, p.ClientID) || token.Nonce != "" { // an ID token
		return Principal{}, ErrUnauthenticated
	}
	c, err := claimsOf(token)
	if err != nil {
		return Principal{}, ErrUnauthenticated
	}
	who, err := p.principal(c, MethodToken)
	if err != nil {
		return Principal{}, orUnauthenticated(err)
	}
	who.Auth.Until = token.Expiry
	return who, nil
}

// orUnauthenticated distinguishes an invalid token from an unavailable provider.
func orUnauthenticated(err error) error {
	if problem, ok := errors.AsType[*problems.Problem](err); ok && problem.Status == http.StatusServiceUnavailable {
		return err
	}
	return ErrUnauthenticated
}
