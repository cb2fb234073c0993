// Package webhooks keeps the subscriptions to events, and sends the events.
package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/encrypted"
	"github.com/fermata-go/fermata/internal/webhook"
)

// MaxSubscriptions is how many subscriptions an account may have.
const MaxSubscriptions = 50

// Errors of subscriptions.
var (
	ErrTooMany  = fmt.Errorf("%w: an account may have %d webhooks", errs.ErrInvalid, MaxSubscriptions)
	ErrDisabled = fmt.Errorf("%w: this server sends no webhooks", errs.ErrInvalid)
)

// View is a subscription as admins see it. It has no secrets.
type View struct {
	ID, URL   string
	Filter    webhook.Filter
	CreatedBy string
	Created   time.Time
	// Secrets is the number of secrets that sign, 1 or 2.
	Secrets int
	// LastSent is the time of the last successful message.
	LastSent time.Time
	// Failures counts the failed attempts since then; Code says why the last one failed, Since when
	// the first failed, Next when the next attempt is made.
	Failures    int
	Code        string
	Since, Next time.Time
	// Disabled says why no more events are sent; "" if they are.
	Disabled string
}

// subscription is the stored document.
type subscription struct {
	webhook.Subscription
	// Cursor is the position in the feed of events. Events before it are done.
	Cursor string `json:"cursor,omitempty"`
	// Claims counts the claims: a process that lost its claim does not move the cursor.
	Claims   int       `json:"claims,omitempty"`
	LastSent time.Time `json:"lastSent,omitzero"`
	Failures int       `json:"failures,omitempty"`
	Code     string    `json:"code,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Next     time.Time `json:"next,omitzero"`
	Disabled string    `json:"disabled,omitempty"`
	Removed  bool      `json:"removed,omitempty"`
}

func (s subscription) view(now time.Time) View {
	v := View{
		ID: s.ID, URL: s.URL, Filter: s.Filter, CreatedBy: s.CreatedBy, Created: s.Created, LastSent: s.LastSent, Failures: s.Failures, Code: s.Code, Since: s.Since, Disabled: s.Disabled,
	}
	if s.Failures > 0 && s.Disabled == "" {
		v.Next = s.Next
	}
	for _, secret := range s.Secrets {
		if secret.Until.IsZero() || now.Before(secret.Until) {
			v.Secrets++
		}
	}
	return v
}

// Config configures a [Service].
type Config struct {
	// Sender sends events. Without one there are no webhooks.
	Sender               *webhook.Sender
	Environment, BaseURL string
	Poll                 time.Duration
	Log                  *slog.Logger
	// Card returns the card of a request, or store.ErrNotFound.
	Card func(ctx context.Context, account, id string) (channel.Card, error)
}

// Service keeps subscriptions and sends events. It is safe for concurrent use.
type Service struct {
	config     Config
	store      *encrypted.Store
	docs       *docs.Docs
	background *background.Group

	mu   sync.Mutex
	busy map[string]bool // subscriptions that this process works on
}

// New returns a service.
func New(config Config, store *encrypted.Store, docs *docs.Docs, background *background.Group) *Service {
	return &Service{config: config, store: store, docs: docs, background: background, busy: make(map[string]bool)}
}

// List returns the subscriptions of an account, by id.
func (s *Service) List(ctx context.Context, account string) ([]View, error) {
	now, err := s.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	all := []View{}
	for document, err := range s.docs.Documents(ctx, account, docs.WebhookKind, store.DocumentFilter{Limit: 100}) {
		if err != nil {
			return nil, err
		}
		var one subscription
		if err := s.docs.DecodeBody(document, &one); err != nil {
			return nil, err
		}
		if !one.Removed {
			all = append(all, one.view(now))
		}
	}
	return all, nil
}

// read returns a subscription, or store.ErrNotFound.
func (s *Service) read(ctx context.Context, account, id string) (one subscription, document store.Document, err error) {
	if document, err = s.store.Document(ctx, account, docs.WebhookKind, id); err == nil {
		err = s.docs.DecodeBody(document, &one)
	}
	if err == nil && one.Removed {
		err = store.ErrNotFound
	}
	return one, document, err
}

// Get returns a subscription, or store.ErrNotFound.
func (s *Service) Get(ctx context.Context, account, id string) (View, error) {
	now, err := s.store.Now(ctx)
	if err != nil {
		return View{}, err
	}
	one, _, err := s.read(ctx, account, id)
	return one.view(now), err
}

// Create adds a subscription for future events, and returns its secret.
func (s *Service) Create(ctx context.Context, account string, by desk.From, to string, filter webhook.Filter) (View, string, error) {
	if s.config.Sender == nil {
		return View{}, "", ErrDisabled
	}
	if err := errors.Join(s.config.Sender.CheckURL(to), filter.Check()); err != nil {
		return View{}, "", fmt.Errorf("%w: %w", errs.ErrInvalid, err)
	}
	list, err := s.List(ctx, account)
	if err != nil {
		return View{}, "", err
	}
	if len(list) >= MaxSubscriptions {
		return View{}, "", ErrTooMany
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return View{}, "", err
	}
	one := subscription{Subscription: webhook.Subscription{ID: ident.Random("wh"), URL: to, Filter: filter, CreatedBy: by.Actor.ID, Created: now}}
	secret := one.Rotate(now)
	change, err := change(one, store.Document{}, now)
	if err == nil {
		err = s.write(ctx, account, change, by, audit.WebhookChanged{Webhook: one.ID, What: "created", Host: hostOf(to)})
	}
	return one.view(now), secret, err
}

// write writes a subscription with its audit record in one transaction.
func (s *Service) write(ctx context.Context, account string, change store.DocumentChange, by desk.From, record audit.WebhookChanged) error {
	line, err := audit.NewLine(account, auditrec.AuditActor(by), audit.Location{}, record)
	if err != nil {
		return err
	}
	return s.store.CommitWrites(ctx, account, store.Writes{Documents: []store.DocumentChange{change}, Audit: [][]byte{line}})
}

// hostOf returns the host of a URL; its path may be a secret.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// change returns the change that writes a subscription.
func change(one subscription, document store.Document, due time.Time) (store.DocumentChange, error) {
	if one.Disabled != "" || one.Removed {
		due = time.Time{}
	}
	body, err := json.Marshal(one)
	return store.DocumentChange{Kind: docs.WebhookKind, ID: one.ID, BaseRevision: document.Revision, Body: body, DueAt: due}, err
}

// edit changes a subscription and records what was changed. It may call with several times.
func (s *Service) edit(ctx context.Context, account, id string, by desk.From, what string, with func(one *subscription, now time.Time)) (view View, err error) {
	err = retry.WhileStale(ctx, func() error {
		now, err := s.store.Now(ctx)
		if err != nil {
			return err
		}
		one, document, err := s.read(ctx, account, id)
		if err != nil {
			return err
		}
		due := document.DueAt
		host := hostOf(one.URL)
		with(&one, now)
		if one.URL != "" {
			host = hostOf(one.URL)
		}
		if due.IsZero() {
			due = now // it was disabled
		}
		view = one.view(now)
		change, err := change(one, document, due)
		if err != nil {
			return err
		}
		return s.write(ctx, account, change, by, audit.WebhookChanged{Webhook: id, What: what, Host: host})
	})
	return view, err
}

// Change replaces the URL and the filter of a subscription. A disabled one is enabled again, and
// gets the events that it missed.
func (s *Service) Change(ctx context.Context, account, id string, by desk.From, to string, filter webhook.Filter) (View, error) {
	if _, _, err := s.read(ctx, account, id); err != nil {
		return View{}, err
	}
	if s.config.Sender == nil {
		return View{}, ErrDisabled
	}
	if err := errors.Join(s.config.Sender.CheckURL(to), filter.Check()); err != nil {
		return View{}, fmt.Errorf("%w: %w", errs.ErrInvalid, err)
	}
	return s.edit(ctx, account, id, by, "changed", func(one *subscription, _ time.Time) {
		one.URL, one.Filter = to, filter
		one.Failures, one.Code, one.Since, one.Next, one.Disabled = 0, "", time.Time{}, time.Time{}, ""
	})
}

// Rotate adds a new secret, and returns it. The old one signs too for [webhook.SecretOverlap].
func (s *Service) Rotate(ctx context.Context, account, id string, by desk.From) (view View, secret string, err error) {
	view, err = s.edit(ctx, account, id, by, "secret_rotated", func(one *subscription, now time.Time) { secret = one.Rotate(now) })
	return view, secret, err
}

// Remove ends a subscription. Its URL and secrets are deleted.
func (s *Service) Remove(ctx context.Context, account, id string, by desk.From) error {
	_, err := s.edit(ctx, account, id, by, "removed", func(one *subscription, _ time.Time) {
		*one = subscription{Subscription: webhook.Subscription{ID: one.ID}, Claims: one.Claims, Removed: true}
	})
	return err
}

// Test sends a test event once, also if the subscription is disabled. It returns the code of the
// error; "" if the receiver accepted it.
func (s *Service) Test(ctx context.Context, account, id string) (code string, err error) {
	one, _, err := s.read(ctx, account, id)
	if err != nil {
		return "", err
	}
	if s.config.Sender == nil {
		return "", ErrDisabled
	}
	e := webhook.NewEvent(ident.Random("test"), webhook.TypeTest, id, s.config.BaseURL, time.Now(), webhook.Data{Account: account, Environment: s.config.Environment})
	if err := s.config.Sender.Send(ctx, one.Subscription, e, time.Now()); err != nil {
		return desk.NoticeFailureCode(err), nil
	}
	return "", nil
}
