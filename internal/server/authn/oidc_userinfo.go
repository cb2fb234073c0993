package authn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"golang.org/x/oauth2"

	"github.com/fermata-go/fermata/internal/server/problems"
)

// maxUserinfo is the maximum size of a userinfo response in bytes.
const maxUserinfo = 1 << 20

// addUserinfo adds claims from the userinfo endpoint if the ID token lacks required ones, which the
// standard allows (OpenID Connect Core 5.4). The authentication claims (acr, amr) come from the ID
// token only.
func (p *idp) addUserinfo(ctx context.Context, at *providerMetadata, token *oauth2.Token, c claims) error {
	if at.userinfo == "" || !p.needsUserinfo(c) {
		return nil
	}
	told, err := p.fetchUserinfo(ctx, at.userinfo, token)
	if err != nil {
		return providerUnavailable(err)
	}
	if sub := told.text("sub"); sub == "" || sub != c.text("sub") {
		return problems.New("forbidden", "the userinfo response is about another person")
	}
	switch { // email_verified must come from the same source as the address
	case c["email"] != nil:
		delete(told, "email_verified")
	case told["email"] != nil:
		delete(c, "email_verified")
	}
	for _, claim := range []string{p.GroupsClaim, p.PrincipalClaim, p.AccountClaim, "name", "preferred_username", "email", "email_verified"} {
		// by path: a nested claim of the ID token has precedence
		if c.lookup(claim) == nil && told.lookup(claim) != nil {
			c[claim] = told.lookup(claim)
		}
	}
	return nil
}

// needsUserinfo reports whether an ID token lacks required claims.
func (p *idp) needsUserinfo(c claims) bool {
	return c.lookup(p.GroupsClaim) == nil || c.lookup(p.PrincipalClaim) == nil || p.AccountClaim != "" && c.lookup(p.AccountClaim) == nil
}

// fetchUserinfo requests the claims of the token's subject. The response may contain secrets, so
// errors do not include it.
func (p *idp) fetchUserinfo(ctx context.Context, endpoint string, token *oauth2.Token) (told claims, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
	if err != nil {
		return nil, errors.New("authn: the userinfo endpoint is not a valid URL")
	}
	token.SetAuthHeader(r)
	r.Header.Set("Accept", "application/json")
	response, err := p.Client.Do(r)
	if network, ok := errors.AsType[*url.Error](err); ok {
		return nil, fmt.Errorf("authn: userinfo: %w", network.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("authn: userinfo: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("authn: userinfo: identity provider returned %d", response.StatusCode)
	}
	if json.NewDecoder(io.LimitReader(response.Body, maxUserinfo)).Decode(&told) != nil {
		return nil, errors.New("authn: userinfo: invalid JSON")
	}
	return told, nil
}
