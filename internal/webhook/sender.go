package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/outbound"
	"github.com/fermata-go/fermata/internal/post"
)

// Sender sends events. It is safe for concurrent use.
type Sender struct{ client *outbound.Client }

// New returns a sender. allow are hosts that may be called although they are not public: host
// names, addresses or prefixes.
func New(allow []string) (*Sender, error) {
	client, err := outbound.NewClient(outbound.Config{Allow: allow, Setting: "webhooks.allow"})
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	return &Sender{client: client}, nil
}

// CheckURL returns why a URL may not be called, or nil. The error never contains the URL, which may
// hold a secret.
func (s *Sender) CheckURL(to string) error {
	if _, err := s.client.ParseURL(to); err != nil {
		return fmt.Errorf("webhook: the URL is not allowed: %w", err)
	}
	return nil
}

// Send sends an event once. An error is a [channel.Error]; its code may be shown. The same event
// has the same webhook-id each time.
func (s *Sender) Send(ctx context.Context, to Subscription, e Event, now time.Time) error {
	keys := to.keys(now)
	if len(keys) == 0 {
		return &channel.Error{Code: "no_secret", Err: errors.New("webhook: the subscription has no valid secret")}
	}
	body, err := json.Marshal(e)
	if err != nil {
		return &channel.Error{Code: "invalid_message", Err: err}
	}
	header := make(http.Header)
	header.Set("Content-Type", "application/cloudevents+json")
	outbound.Sign(header, keys, ident.Derive("msg", to.ID, e.ID, e.Type), now, body)
	return post.Bytes(ctx, s.client, to.URL, header, body)
}

// IsGone reports whether the receiver said that it wants no more messages.
func IsGone(err error) bool {
	failed, ok := errors.AsType[*outbound.Error](err)
	return ok && failed.Status == http.StatusGone
}
