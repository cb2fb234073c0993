package webpush

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/outbound"
	"github.com/fermata-go/fermata/internal/post"
)

// Kind is the kind of the channel.
const Kind = "webpush"

const (
	// maxTTL is how long a push service keeps a message. Some keep none longer.
	maxTTL = 28 * 24 * time.Hour
	// minTTL lets a message arrive whose deadline is near.
	minTTL = time.Minute
	// endTTL is how long the outcome is kept for a browser that is not running.
	endTTL = 24 * time.Hour
)

// Config configures the channel.
type Config struct {
	// Key identifies this server to push services. All replicas have the same.
	Key Key
	// Subject is how a push service reaches the operator: a mailto: or https: URL.
	Subject string
	// Allow are hosts of push services that are not public; see [outbound.Config].
	Allow []string
	// Roots are the certificate authorities of push services. Defaults to those of the system.
	Roots *x509.CertPool
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

// Channel sends to browsers. Its addresses are those of [Subscription.Address].
type Channel struct {
	config Config
	client *outbound.Client
}

var (
	_ channel.InboxNotifier  = (*Channel)(nil)
	_ channel.AddressChecker = (*Channel)(nil)
	_ channel.AddressLabeler = (*Channel)(nil)
)

// New returns a channel.
func New(config Config) (*Channel, error) {
	if config.Key.private == nil {
		return nil, errors.New("webpush: the key is missing")
	}
	if err := checkSubject(config.Subject); err != nil {
		return nil, err
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	client, err := outbound.NewClient(outbound.Config{Allow: config.Allow, Roots: config.Roots})
	if err != nil {
		return nil, fmt.Errorf("webpush: %w", err)
	}
	return &Channel{config: config, client: client}, nil
}

// checkSubject returns an error unless a text is a mailto: or https: URL.
func checkSubject(subject string) error {
	if address, ok := strings.CutPrefix(subject, "mailto:"); ok {
		if a, err := mail.ParseAddress(address); err == nil && a.Address == address {
			return nil
		}
	} else if u, err := url.Parse(subject); err == nil && u.Scheme == "https" && u.Host != "" {
		return nil
	}
	return fmt.Errorf("webpush: the subject %q is not a mailto: or https: URL", subject)
}

// Kind returns [Kind].
func (c *Channel) Kind() string { return Kind }

// PersonalAddress returns "": browsers subscribe themselves, and no account is linked.
func (c *Channel) PersonalAddress(string) string { return "" }

// NotifiesInbox returns true.
func (c *Channel) NotifiesInbox() bool { return true }

// CheckAddress rejects all addresses: routes name people.
func (c *Channel) CheckAddress(string) error {
	return errors.New("browsers have no address: name a person or a group, whose browsers are notified")
}

// AddressLabel returns the host of the push service.
func (c *Channel) AddressLabel(to string) string {
	s, err := ParseAddress(to)
	if err != nil {
		return ""
	}
	return s.Service()
}

// PublicKey returns the key with which browsers subscribe.
func (c *Channel) PublicKey() string { return c.config.Key.Public() }

// Subscribe checks a new subscription of a browser and returns it with the key of this server.
func (c *Channel) Subscribe(s Subscription) (Subscription, error) {
	if _, err := c.client.ParseURL(s.Endpoint); err != nil {
		return s, fmt.Errorf("webpush: the endpoint is not allowed: %w", err)
	}
	s.Server = c.PublicKey()
	_, _, err := s.keys()
	return s, err
}

// The references of a delivery say what was sent.
const (
	sentRequest = "sent"
	sentOutcome = "outcome"
)

// Send shows a notification, and replaces it by the outcome. Votes and other changes of an open
// request are not sent: each message shows a notification again.
func (c *Channel) Send(ctx context.Context, m channel.Message) (string, error) {
	s, err := ParseAddress(m.To)
	if err != nil {
		return "", &channel.Error{Code: "invalid_address", Permanent: true, Err: err}
	}
	if s.Server != c.PublicKey() { // push services reject other keys
		return "", &channel.Error{Code: channel.CodeGone, Permanent: true, Err: errors.New("webpush: the key of the server has changed")}
	}
	if m.Ref == sentOutcome || m.Kind == desk.NoticeRerender && m.Card.Open() {
		return m.Ref, nil
	}
	ref := sentRequest
	if !m.Card.Open() {
		ref = sentOutcome
	}
	err = c.push(ctx, s, m, true)
	if statusOf(err) == http.StatusRequestEntityTooLarge {
		err = c.push(ctx, s, m, false)
	}
	return ref, classify(err)
}

// push sends one message.
func (c *Channel) push(ctx context.Context, s Subscription, m channel.Message, details bool) error {
	endpoint, err := c.client.ParseURL(s.Endpoint)
	if err != nil {
		return &channel.Error{Code: "url_not_allowed", Permanent: true, Err: err}
	}
	plain, err := newPayload(m, details)
	if err != nil {
		return &channel.Error{Code: "invalid_message", Permanent: true, Err: err}
	}
	body, err := encrypt(s, plain)
	if err != nil {
		return &channel.Error{Code: "invalid_message", Permanent: true, Err: err}
	}
	authorization, err := c.config.Key.authorization(endpoint, c.config.Subject, c.config.Now())
	if err != nil {
		return &channel.Error{Code: "invalid_configuration", Permanent: true, Err: err}
	}
	header := make(http.Header)
	header.Set("Authorization", authorization)
	header.Set("Content-Encoding", "aes128gcm")
	header.Set("Content-Type", "application/octet-stream")
	header.Set("TTL", strconv.Itoa(int(c.ttl(m.Card)/time.Second)))
	header.Set("Urgency", urgency(m))
	header.Set("Topic", topic(m))
	return post.Bytes(ctx, c.client, s.Endpoint, header, body)
}

// ttl is how long the push service keeps a message for a browser that is not running.
func (c *Channel) ttl(card channel.Card) time.Duration {
	if !card.Open() || card.Deadline.IsZero() {
		return endTTL
	}
	return min(max(card.Deadline.Sub(c.config.Now()), minTTL), maxTTL)
}

// statusOf returns the HTTP status of an error, or 0.
func statusOf(err error) int {
	if failed, ok := errors.AsType[*outbound.Error](err); ok {
		return failed.Status
	}
	return 0
}

// classify says which statuses end a subscription, and which may pass.
func classify(err error) error {
	switch statusOf(err) {
	case http.StatusNotFound, http.StatusGone:
		return &channel.Error{Code: channel.CodeGone, Permanent: true, Err: err}
	case http.StatusRequestEntityTooLarge:
		return &channel.Error{Code: "http_413", Err: err}
	}
	return err
}
