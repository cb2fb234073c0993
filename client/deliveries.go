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

// DeliveryHealth counts the deliveries of each channel.
func (c *Client) DeliveryHealth(ctx context.Context) ([]api.ChannelHealth, error) {
	var page api.Page[api.ChannelHealth]
	err := c.call(ctx, request{method: http.MethodGet, path: "/deliveries/health"}, &page)
	return page.Items, err
}

// LinkOffer returns what the token of a one-time link is for. It links nothing.
func (c *Client) LinkOffer(ctx context.Context, token string) (offer api.LinkOffer, err error) {
	return offer, c.call(ctx, request{method: http.MethodGet, path: "/me/channel-links/offers/" + url.PathEscape(token)}, &offer)
}

// ChannelLinks lists the accounts of channels that are linked to the caller.
func (c *Client) ChannelLinks(ctx context.Context) ([]api.ChannelLink, error) {
	var page api.Page[api.ChannelLink]
	err := c.call(ctx, request{method: http.MethodGet, path: "/me/channel-links"}, &page)
	return page.Items, err
}

// UnlinkChannel ends the link of an account of a channel to the caller.
func (c *Client) UnlinkChannel(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/me/channel-links/" + url.PathEscape(id)}, nil)
}
