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

// skew is how far the clocks of the provider and ours may be apart.
const skew = time.Minute

// verify checks that a JWT is the provider's, made for an audience, and good now.
func (p *idp) verify(ctx context.Context, at *issuer, raw, audience string) (*oidc.IDToken, error) {
	keys := &watched{KeySet: at.keys, anew: func() oidc.KeySet { return p.anew(ctx, at).keys }}
	now := p.now()
	verifier := oidc.NewVerifier(p.Issuer, keys, &oidc.Config{
		ClientID: audience, SupportedSigningAlgs: asymmetric, Now: func() time.Time { return now.Add(-skew) },
	})
	token, err := verifier.Verify(ctx, raw)
	switch {
	case keys.down != nil:
		return nil, down(keys.down)
	case err != nil:
		return nil, notVerified(err)
	case token.IssuedAt.After(now.Add(skew)):
		return nil, tooEarly()
	}
	var claims struct {
		Party string      `json:"azp"`
		From  json.Number `json:"nbf"`
	}
	if err := errors.Join(token.Claims(&claims), unambiguous(token)); err != nil {
		return nil, notVerified(err)
	}
	if from, err := claims.From.Float64(); err == nil && from > float64(now.Add(skew).Unix()) { // the library is more generous
		return nil, tooEarly()
	}
	if audience == p.ClientID && (len(token.Audience) > 1 || claims.Party != "") && claims.Party != p.ClientID {
		return nil, problem("forbidden", "the token was made for somebody else")
	}
	return token, nil
}

// tooEarly says that a token will be good, and is not yet.
func tooEarly() *Problem {
	return problem("forbidden", "the token is of the future: is a clock wrong?")
}

// checked are the claims that decide whether a token counts.
var checked = []string{"iss", "sub", "aud", "azp", "exp", "iat", "nbf", "nonce", "at_hash"}

// unambiguous refuses a token with a claim that differs from one of these by upper and lower case alone. The library reads names in any case, so that with an "AUD" that somebody has the
// provider put into their tokens it would not look at the "aud" that is the provider's.
func unambiguous(token *oidc.IDToken) error {
	c, err := claimsOf(token)
	if err != nil {
		return err
	}
	for name := range c {
		if !slices.Contains(checked, name) && slices.ContainsFunc(checked, func(known string) bool { return strings.EqualFold(known, name) }) {
			return fmt.Errorf("server: the claim %q is none", name)
		}
	}
	return nil
}

// notVerified says what is wrong with a token, without a word of it.
func notVerified(err error) error {
	if _, old := errors.AsType[*oidc.TokenExpiredError](err); old {
		return problem("forbidden", "the token is too old: is a clock wrong?")
	}
	return problem("forbidden", "the token is not one of the identity provider for this server")
}

// watched notices whether keys could not be had. To the verifier that is the same as a bad signature; to us it is not.
type watched struct {
	oidc.KeySet
	anew func() oidc.KeySet // the keys may be elsewhere since
	down error
}

// VerifySignature asks the key set.
func (w *watched) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := w.KeySet.VerifySignature(ctx, jwt)
	if err != nil {
		if now := w.anew(); now != w.KeySet {
			payload, err = now.VerifySignature(ctx, jwt)
		}
	}
	if isFetchError(err) {
		w.down = err
	}
	return payload, err
}

// Authenticate takes bearer tokens that the provider made for our API. It needs no session, and knows none.
func (p *idp) Authenticate(r *http.Request) (Principal, error) {
	raw := bearer(r)
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
	who, err := p.principal(c, ByToken)
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
