package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/fermata-go/fermata/api"
)

const pushPath = "/me/push-subscriptions"

// PushKey returns the key with which browsers subscribe. The server answers 404 if it does not
// notify browsers.
func (c *Client) PushKey(ctx context.Context) (key api.PushKey, err error) {
	return key, c.call(ctx, request{path: "/me/push-key"}, &key)
}

// PushSubscriptions lists the browsers of the caller that are notified.
func (c *Client) PushSubscriptions(ctx context.Context) ([]api.PushSubscription, error) {
	var page api.Page[api.PushSubscription]
	err := c.call(ctx, request{path: pushPath}, &page)
	return page.Items, err
}

// AddPushSubscription notifies a browser from now on.
func (c *Client) AddPushSubscription(ctx context.Context, s api.AddPushSubscription) (added api.PushSubscription, err error) {
	return added, c.call(ctx, request{method: http.MethodPost, path: pushPath, body: s}, &added)
}

// RemovePushSubscription ends the notifications of a browser.
func (c *Client) RemovePushSubscription(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: pushPath + "/" + url.PathEscape(id)}, nil)
}
