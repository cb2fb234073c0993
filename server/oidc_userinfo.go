package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"golang.org/x/oauth2"
)

// maxUserinfo is how much a provider may tell of somebody, in bytes.
const maxUserinfo = 1 << 20

// complete adds what the provider tells at its userinfo endpoint, if the ID token does not say what we need: by the standard (OpenID Connect Core 5.4) it need
// not. How somebody proved who they are (acr, amr) is said by the ID token alone.
func (p *idp) addUserinfo(ctx context.Context, at *providerMetadata, token *oauth2.Token, c claims) error {
	if at.userinfo == "" || !p.needsUserinfo(c) {
		return nil
	}
	told, err := p.fetchUserinfo(ctx, at.userinfo, token)
	if err != nil {
		return providerUnavailable(err)
	}
	if sub := told.text("sub"); sub == "" || sub != c.text("sub") {
		return problem("forbidden", "the identity provider tells about somebody else")
	}
	switch { // whether an address is verified is said by who says the address: or it would be another one
	case c["email"] != nil:
		delete(told, "email_verified")
	case told["email"] != nil:
		delete(c, "email_verified")
	}
	for _, claim := range []string{p.GroupsClaim, p.PrincipalClaim, p.AccountClaim, "name", "preferred_username", "email", "email_verified"} {
		if c.lookup(claim) == nil && told.lookup(claim) != nil { // by its path: what the ID token says further down is said, too
			c[claim] = told.lookup(claim)
		}
	}
	return nil
}

// lacks reports whether an ID token leaves out what nobody gets in without.
func (p *idp) needsUserinfo(c claims) bool {
	return c.lookup(p.GroupsClaim) == nil || c.lookup(p.PrincipalClaim) == nil || p.AccountClaim != "" && c.lookup(p.AccountClaim) == nil
}

// askUserinfo asks the provider about whoever a token is for. What it answers may hold secrets, so no error has it.
func (p *idp) fetchUserinfo(ctx context.Context, endpoint string, token *oauth2.Token) (told claims, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
	if err != nil {
		return nil, errors.New("server: the userinfo endpoint is no URL")
	}
	token.SetAuthHeader(r)
	r.Header.Set("Accept", "application/json")
	response, err := p.Client.Do(r)
	if network, ok := errors.AsType[*url.Error](err); ok {
		return nil, fmt.Errorf("server: userinfo: %w", network.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("server: userinfo: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("server: userinfo: the identity provider answers %d", response.StatusCode)
	}
	if json.NewDecoder(io.LimitReader(response.Body, maxUserinfo)).Decode(&told) != nil {
		return nil, errors.New("server: userinfo: the answer is no JSON")
	}
	return told, nil
}
