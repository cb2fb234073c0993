package server

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
)

// clockSkew is how far the clocks of the provider and ours may be apart.
const clockSkew = time.Minute

// verify checks that a JWT is the provider's, made for an audience, and good now.
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
	if from, err := claims.From.Float64(); err == nil && from > float64(now.Add(clockSkew).Unix()) { // the library is more generous
		return nil, tokenNotYetValid()
	}
	if audience == p.ClientID && (len(token.Audience) > 1 || claims.Party != "") && claims.Party != p.ClientID {
		return nil, problem("forbidden", "the token was made for somebody else")
	}
	return token, nil
}

// tokenNotYetValid says that a token will be good, and is not yet.
func tokenNotYetValid() *Problem {
	return problem("forbidden", "the token is of the future: is a clock wrong?")
}

// securityClaims are the claims that decide whether a token counts.
var securityClaims = []string{"iss", "sub", "aud", "azp", "exp", "iat", "nbf", "nonce", "at_hash"}

// rejectAmbiguousClaims refuses a token with a claim that differs from one of these by upper and lower case alone. The library reads names in any case, so that with an "AUD" that somebody has the
// provider put into their tokens it would not look at the "aud" that is the provider's.
func rejectAmbiguousClaims(token *oidc.IDToken) error {
	c, err := claimsOf(token)
	if err != nil {
		return err
	}
	for name := range c {
		if !slices.Contains(securityClaims, name) && slices.ContainsFunc(securityClaims, func(known string) bool { return strings.EqualFold(known, name) }) {
			return fmt.Errorf("server: the claim %q is none", name)
		}
	}
	return nil
}

// verifyError says what is wrong with a token, without a word of it.
func verifyError(err error) error {
	if _, old := errors.AsType[*oidc.TokenExpiredError](err); old {
		return problem("forbidden", "the token is too old: is a clock wrong?")
	}
	return problem("forbidden", "the token is not one of the identity provider for this server")
}

// observedKeySet notices whether keys could not be had. To the verifier that is the same as a bad signature; to us it is not.
type observedKeySet struct {
	oidc.KeySet
	refresh  func() oidc.KeySet // the keys may be elsewhere since
	fetchErr error
}

// VerifySignature asks the key set.
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

// Authenticate takes bearer tokens that the provider made for our API. It needs no session, and knows none.
func (p *idp) Authenticate(r *http.Request) (Principal, error) {
	raw := bearerToken(r)
	if strings.Count(raw, ".") != 2 { // no JWT: the provider need not be asked
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

// orUnauthenticated tells a bad token from a provider that does not answer.
func orUnauthenticated(err error) error {
	if problem, ok := errors.AsType[*Problem](err); ok && problem.Status == http.StatusServiceUnavailable {
		return err
	}
	return ErrUnauthenticated
}
