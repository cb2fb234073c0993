package client

import (
	"context"
	"net/http"

	"github.com/fermata-go/fermata/api"
)

const notificationsPath = "/me/notifications"

// Notifications returns how the caller is notified.
func (c *Client) Notifications(ctx context.Context) (n api.Notifications, err error) {
	return n, c.call(ctx, request{path: notificationsPath}, &n)
}

// SetNotifications replaces how the caller is notified.
func (c *Client) SetNotifications(ctx context.Context, settings api.SaveNotifications) (n api.Notifications, err error) {
	return n, c.call(ctx, request{method: http.MethodPut, path: notificationsPath, body: settings}, &n)
}
