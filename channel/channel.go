package channel

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
)

// Channel delivers requests to people in one place, such as Slack, e-mail or a pager. Its methods
// are called concurrently, for different deliveries.
type Channel interface {
	// Kind is the kind of its targets, such as slack for slack:C0EMEA. It has lower-case letters,
	// digits and hyphens. It does not change.
	Kind() string
	// Send posts a new copy of a message, or replaces the copy m.Ref. It returns the reference of
	// the copy: an empty one says that the channel cannot replace it. Send may be called again for
	// a message that it has sent, with a higher Attempt. An error should be an [*Error].
	Send(ctx context.Context, m Message) (ref string, err error)
}

// Finder is implemented by channels that can find a copy whose response was lost. Find is called
// before a new copy is sent for the second time. It looks for the copy of m.Delivery.
type Finder interface {
	Find(ctx context.Context, m Message) (ref string, found bool, err error)
}

// AddressChecker is implemented by channels that can tell whether an address is possible, for the
// check of routes. CheckAddress calls no peer.
type AddressChecker interface {
	CheckAddress(to string) error
}

// AddressLabeler is implemented by channels whose addresses contain secrets. AddressLabel returns
// what lists of deliveries show of an address.
type AddressLabeler interface {
	AddressLabel(to string) string
}

// Personal is implemented by channels that reach people one by one. PersonalAddress returns
// [Message.To] for the id of a linked account, see [Sender.ID]; "" if its addresses are added by
// people themselves.
type Personal interface {
	PersonalAddress(sender string) string
}

// InboxNotifier is implemented by personal channels that extend the inbox, such as browsers. If
// NotifiesInbox returns true, notices for the target inbox also reach the addresses of each person
// who can decide the request. Linked accounts are not among them.
type InboxNotifier interface {
	Personal
	NotifiesInbox() bool
}

// Message is what a channel sends to one address.
type Message struct {
	Account string
	// Delivery is the id of the delivery, the same for each attempt. It is an idempotency key.
	Delivery string
	// Attempt counts the attempts to send this state of the request, from 1.
	Attempt int
	// Kind is why the message is sent. [desk.NoticeRerender] replaces the copy Ref.
	Kind desk.NoticeKind
	// To is the address without the kind of the channel.
	To string
	// Ref is the copy to replace; "" posts a new one.
	Ref string
	// Again says that this is a reminder, and that the address has a copy of the request already:
	// that copy gets the outcome.
	Again bool
	// Incident identifies what is paged and resolved, Severity is set for pages.
	Incident, Severity string
	// Notice is the notice that caused the delivery, without its targets.
	Notice desk.Notice
	Card   Card
}

// Receiver is implemented by channels in which people can answer. Receive processes a message that
// was stored by [Desk.Accept]. It is called again after an error, and may be called again after it
// succeeded: Inbound.ID is the idempotency key, such as the resume id of a decision.
type Receiver interface {
	Receive(ctx context.Context, desk Desk, in Inbound) error
}

// Inbound is a message from a person, such as a click.
type Inbound struct {
	Account string `json:"-"`
	// ID is unique for the click within the account and channel. A second message with the same id
	// is ignored. It has at most 200 characters.
	ID string `json:"-"`
	// Body is the message in a format of the channel. It is stored encrypted.
	Body json.RawMessage `json:"body"`
	// At is when it was accepted, and Attempt counts the calls of Receive from 1. Last says that an
	// error is final: Receive is not called again. They are set by the executor.
	At      time.Time `json:"-"`
	Attempt int       `json:"-"`
	Last    bool      `json:"-"`
}

// Runner is implemented by channels with work of their own. Run is called once when the server is
// ready. It returns when ctx ends, or with an error that the server logs before it calls Run again
// after a pause.
type Runner interface {
	Run(ctx context.Context, desk Desk) error
}

// Handler is implemented by channels that serve HTTP requests. The server passes it the requests
// whose path starts with /channels/ and the kind, without any authentication: the handler checks
// signatures itself.
type Handler interface {
	Handler(desk Desk) http.Handler
}
