package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/fermata-go/fermata/api"
)

// DeliveryQuery selects deliveries. Empty fields select all.
type DeliveryQuery struct {
	Request, Channel, State, Cursor string
}

// Deliveries lists the deliveries of notices to people.
func (c *Client) Deliveries(ctx context.Context, q DeliveryQuery) (page api.Page[api.Delivery], err error) {
	values := make(url.Values)
	for name, value := range map[string]string{"request": q.Request, "channel": q.Channel, "state": q.State, "cursor": q.Cursor} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return page, c.call(ctx, request{method: http.MethodGet, path: "/deliveries", query: values}, &page)
}

// SendDelivery sends a delivery again.
func (c *Client) SendDelivery(ctx context.Context, id string) (delivery api.Delivery, err error) {
	return delivery, c.call(ctx, request{method: http.MethodPost, path: "/deliveries/" + url.PathEscape(id) + "/send"}, &delivery)
}

// LinkChannel links an account of a channel to the caller, with the token of a one-time link.
func (c *Client) LinkChannel(ctx context.Context, token string) (link api.ChannelLink, err error) {
	return link, c.call(ctx, request{method: http.MethodPost, path: "/me/channel-links", body: api.LinkChannel{Token: token}}, &link)
}
