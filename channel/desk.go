package channel

import (
	"context"
	"net/http"

	"github.com/fermata-go/fermata/client"
)

// Desk lets a channel act for the people who use it. It is safe for concurrent use.
type Desk interface {
	// Accept stores a message from a person. When it returns nil, the message is durable and the
	// channel acknowledges it; [Receiver.Receive] gets it soon, in this or another process. A
	// message with the same id is stored once.
	Accept(ctx context.Context, kind string, in Inbound) error
	// Client returns a client of the JSON API that acts as the person who linked this account of
	// the channel, and who that is. Its authentication strength is slack_linked. It returns
	// [ErrNotLinked] if the account is not linked.
	Client(ctx context.Context, sender Sender) (c *client.Client, principal string, err error)
	// SignedIn returns the person who is signed in in the browser that sent a request to the
	// handler of the channel; "" if none is.
	SignedIn(r *http.Request) (account, principal string, err error)
	// LinkURL returns a link that can be used once, within 15 minutes. A person who opens it signs
	// in and links the account of the channel to themselves.
	LinkURL(ctx context.Context, sender Sender) (string, error)
	// RequestURL returns the address of a request in the web inbox.
	RequestURL(id string) string
}

// Sender is an account of a person in a channel.
type Sender struct {
	// Account is the tenant.
	Account string
	// Channel is the kind of the channel. ID identifies the person in it, such as TEAM/USER for a
	// Slack workspace and its user. It has at most 200 characters.
	Channel, ID string
	// Name is shown on the page that links the account.
	Name string
}
