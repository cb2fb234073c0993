package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/fermata-go/fermata/api"
)

const passkeysPath = "/me/passkeys"

// Passkeys returns the passkeys of the caller.
func (c *Client) Passkeys(ctx context.Context) (list api.Passkeys, err error) {
	return list, c.call(ctx, request{path: passkeysPath}, &list)
}

// PasskeyOptions returns what a browser needs to create a passkey.
func (c *Client) PasskeyOptions(ctx context.Context) (options api.PasskeyOptions, err error) {
	return options, c.call(ctx, request{method: http.MethodPost, path: passkeysPath + "/options"}, &options)
}

// AddPasskey adds the passkey that an authenticator has created.
func (c *Client) AddPasskey(ctx context.Context, created api.AddPasskey) (added api.Passkey, err error) {
	return added, c.call(ctx, request{method: http.MethodPost, path: passkeysPath, body: created}, &added)
}

// RenamePasskey gives a passkey of the caller another name.
func (c *Client) RenamePasskey(ctx context.Context, id, name string) (renamed api.Passkey, err error) {
	r := request{method: http.MethodPut, path: passkeysPath + "/" + url.PathEscape(id), body: api.RenamePasskey{Name: name}}
	return renamed, c.call(ctx, r, &renamed)
}

// RemovePasskey removes a passkey of the caller.
func (c *Client) RemovePasskey(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: passkeysPath + "/" + url.PathEscape(id)}, nil)
}
