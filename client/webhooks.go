package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/fermata-go/fermata/api"
)

// Webhooks lists the subscriptions to events.
func (c *Client) Webhooks(ctx context.Context) ([]api.Webhook, error) {
	var page api.Page[api.Webhook]
	err := c.call(ctx, request{method: http.MethodGet, path: "/webhooks"}, &page)
	return page.Items, err
}

// Webhook returns a subscription.
func (c *Client) Webhook(ctx context.Context, id string) (w api.Webhook, err error) {
	return w, c.call(ctx, request{method: http.MethodGet, path: webhookPath(id)}, &w)
}

// CreateWebhook subscribes a URL to events. The secret is shown once.
func (c *Client) CreateWebhook(ctx context.Context, w api.SaveWebhook) (made api.WebhookSecret, err error) {
	return made, c.call(ctx, request{method: http.MethodPost, path: "/webhooks", body: w}, &made)
}

// ChangeWebhook replaces the URL and the filter of a subscription, and enables it.
func (c *Client) ChangeWebhook(ctx context.Context, id string, w api.SaveWebhook) (changed api.Webhook, err error) {
	return changed, c.call(ctx, request{method: http.MethodPut, path: webhookPath(id), body: w}, &changed)
}

// RemoveWebhook deletes a subscription.
func (c *Client) RemoveWebhook(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: webhookPath(id)}, nil)
}

// RotateWebhook creates a new secret for a subscription. The old one signs too for a day.
func (c *Client) RotateWebhook(ctx context.Context, id string) (made api.WebhookSecret, err error) {
	return made, c.call(ctx, request{method: http.MethodPost, path: webhookPath(id) + "/rotate"}, &made)
}

// TestWebhook sends a test event.
func (c *Client) TestWebhook(ctx context.Context, id string) (result api.WebhookTest, err error) {
	return result, c.call(ctx, request{method: http.MethodPost, path: webhookPath(id) + "/test"}, &result)
}

func webhookPath(id string) string { return "/webhooks/" + url.PathEscape(id) }
