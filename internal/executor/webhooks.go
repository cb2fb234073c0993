package executor

import (
	"context"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/webhooks"
	"github.com/fermata-go/fermata/internal/webhook"
)

// Webhooks are the subscriptions of accounts to events. Each change has an audit record. Events are
// sent by an executor with [Config.Webhooks].
type Webhooks struct{ webhooks *webhooks.Service }

// WebhookView is a subscription as admins see it. It has no secrets.
type WebhookView = webhooks.View

// ListWebhooks returns the subscriptions of an account, by id.
func (w Webhooks) ListWebhooks(ctx context.Context, account string) ([]WebhookView, error) {
	return w.webhooks.List(ctx, account)
}

// GetWebhook returns a subscription, or store.ErrNotFound.
func (w Webhooks) GetWebhook(ctx context.Context, account, id string) (WebhookView, error) {
	return w.webhooks.Get(ctx, account, id)
}

// CreateWebhook adds a subscription for future events, and returns its secret. It returns
// [ErrInvalid] if the URL or the filter is not allowed.
func (w Webhooks) CreateWebhook(ctx context.Context, account string, by desk.From, url string, filter webhook.Filter) (WebhookView, string, error) {
	return w.webhooks.Create(ctx, account, by, url, filter)
}

// ChangeWebhook replaces the URL and the filter of a subscription. A disabled one is enabled again,
// and gets the events that it missed.
func (w Webhooks) ChangeWebhook(ctx context.Context, account, id string, by desk.From, url string, filter webhook.Filter) (WebhookView, error) {
	return w.webhooks.Change(ctx, account, id, by, url, filter)
}

// RotateWebhook adds a new secret, and returns it. The old one signs too for
// [webhook.SecretOverlap].
func (w Webhooks) RotateWebhook(ctx context.Context, account, id string, by desk.From) (WebhookView, string, error) {
	return w.webhooks.Rotate(ctx, account, id, by)
}

// RemoveWebhook ends a subscription, and deletes its URL and secrets.
func (w Webhooks) RemoveWebhook(ctx context.Context, account, id string, by desk.From) error {
	return w.webhooks.Remove(ctx, account, id, by)
}

// TestWebhook sends a test event once. It returns the code of the error; "" if the receiver
// accepted it.
func (w Webhooks) TestWebhook(ctx context.Context, account, id string) (code string, err error) {
	return w.webhooks.Test(ctx, account, id)
}
