package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/fermata-go/fermata/api"
)

// The lists of credentials that [Client.Credentials] reads.
const (
	APIKeys     = "/keys"
	Sessions    = "/sessions"
	MySessions  = "/me/sessions"
	Invitations = "/invitations"
)

// Credentials lists the valid credentials of a list, such as APIKeys, newest first.
func (c *Client) Credentials(ctx context.Context, list string) (page api.Page[api.Credential], err error) {
	return page, c.call(ctx, request{path: list}, &page)
}

// EndCredential revokes a credential of a list.
func (c *Client) EndCredential(ctx context.Context, list, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: list + "/" + url.PathEscape(id)}, nil)
}

// Configuration returns the effective configuration of the server.
func (c *Client) Configuration(ctx context.Context) (page api.Page[api.Setting], err error) {
	return page, c.call(ctx, request{path: "/configuration"}, &page)
}
