package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/fermata-go/fermata/api"
)

// Invite invites a person to sign in, and returns a link that can be used once.
func (c *Client) Invite(ctx context.Context, invite api.Invite) (link api.Invitation, err error) {
	return link, c.call(ctx, request{method: http.MethodPost, path: "/invitations", body: invite}, &link)
}

// Members lists the people who sign in with a password or a passkey.
func (c *Client) Members(ctx context.Context) (page api.Page[api.Member], err error) {
	return page, c.call(ctx, request{path: "/members"}, &page)
}

// RemoveMember removes a member and ends their sessions.
func (c *Client) RemoveMember(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/members/" + url.PathEscape(id)}, nil)
}
