package executor

import (
	"context"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/outbox"
)

// Channels is what people and channels do with deliveries and messages.
type Channels struct{ outbox *outbox.Sender }

// DeliveryFilter selects deliveries.
type DeliveryFilter = outbox.DeliveryFilter

// DeliveryView is the delivery of a notice to one address.
type DeliveryView = outbox.DeliveryView

// DeliveryState is the state of a delivery: queued, sent, seen, failed, dead or obsolete.
type DeliveryState = docs.DeliveryState

// ChannelLink says which person an account of a channel belongs to.
type ChannelLink = docs.ChannelLink

// LinkToken is what a one-time link is for.
type LinkToken = docs.LinkToken

// ErrLinkInvalid says that a one-time link is unknown, expired or used.
var ErrLinkInvalid = outbox.ErrLinkInvalid

// ErrLinkTaken says that the account of the channel is linked to another person.
var ErrLinkTaken = outbox.ErrLinkTaken

// ChannelHealth counts the deliveries of a channel.
type ChannelHealth = outbox.ChannelHealth

// Deliveries returns a page of deliveries, and the id to continue after; "" at the end.
func (c Channels) Deliveries(ctx context.Context, account string, filter DeliveryFilter) ([]DeliveryView, string, error) {
	return c.outbox.Deliveries(ctx, account, filter)
}

// SendAgain makes a delivery due now, also one that was given up. It returns store.ErrNotFound if
// there is none.
func (c Channels) SendAgain(ctx context.Context, account, id string) (DeliveryView, error) {
	return c.outbox.SendAgain(ctx, account, id)
}

// AcceptInbound stores a message that a person sent in a channel: see [channel.Desk].
func (c Channels) AcceptInbound(ctx context.Context, kind string, in channel.Inbound) error {
	return c.outbox.Accept(ctx, kind, in)
}

// ReceiveInbound processes stored messages with handle until ctx ends or the executor stops. A
// message for which handle returns an error is processed again.
func (c Channels) ReceiveInbound(ctx context.Context, handle func(ctx context.Context, kind string, in channel.Inbound) error) {
	c.outbox.ReceiveLoop(ctx, handle)
}

// NewLinkToken returns the token of a one-time link. It is valid for 15 minutes.
func (c Channels) NewLinkToken(ctx context.Context, sender channel.Sender) (string, error) {
	return c.outbox.NewLinkToken(ctx, sender)
}

// LinkToken returns what a one-time link is for, or ErrLinkInvalid.
func (c Channels) LinkToken(ctx context.Context, account, token string) (LinkToken, error) {
	return c.outbox.LinkToken(ctx, account, token)
}

// UseLinkToken links an account of a channel to a person for a week, and uses up the token.
func (c Channels) UseLinkToken(ctx context.Context, account, token string, person desk.From, roles []string) (ChannelLink, error) {
	return c.outbox.UseLinkToken(ctx, account, token, person, roles)
}

// ChannelLink returns the link of an account of a channel, or [channel.ErrNotLinked].
func (c Channels) ChannelLink(ctx context.Context, sender channel.Sender) (ChannelLink, error) {
	return c.outbox.Link(ctx, sender)
}

// ChannelLinks returns the links of a person, by their ids.
func (c Channels) ChannelLinks(ctx context.Context, account, principal string) (map[string]ChannelLink, error) {
	return c.outbox.Links(ctx, account, principal)
}

// DeliveryHealth counts the deliveries of each channel, in the order of the names.
func (c Channels) DeliveryHealth(ctx context.Context, account string) ([]ChannelHealth, error) {
	return c.outbox.Health(ctx, account)
}

// ChannelLinkID returns the id of a link.
func ChannelLinkID(link ChannelLink) string { return outbox.LinkID(link) }

// RevokeChannelLink ends the link of an account of a channel, if it belongs to the
// principal.
func (c Channels) RevokeChannelLink(ctx context.Context, sender channel.Sender, principal string, by desk.From) error {
	return c.outbox.RevokeLink(ctx, sender, principal, by)
}
