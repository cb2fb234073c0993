package executor

import (
	"context"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/people"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/outbox"
)

// Person has the notification settings and the addresses of a person.
type Person = docs.Person

// PersonAddress is an address of a person.
type PersonAddress = docs.PersonAddress

// ErrTooManyAddresses says that a person has as many addresses as allowed.
var ErrTooManyAddresses = outbox.ErrTooManyAddresses

// Person returns how a person is notified. A person who never changed it has the defaults.
func (c Channels) Person(ctx context.Context, account, person string) (Person, error) {
	return c.outbox.Person(ctx, account, person)
}

// PersonalKinds returns the kinds of channels that reach people one by one, such as slack.
func (c Channels) PersonalKinds() []string { return c.outbox.PersonalKinds() }

// SetNotifications replaces the settings of the person who sends them. The error is that of
// [people.Settings.Check], or of the store.
func (c Channels) SetNotifications(ctx context.Context, account string, from desk.From, settings people.Settings) (Person, error) {
	if err := settings.Check(from.Actor.ID); err != nil {
		return Person{}, err
	}
	return c.outbox.SetSettings(ctx, account, from, settings)
}

// AddAddress adds an address to the person who sends it, such as a browser with Web Push, or
// replaces the one with the same destination. Linked accounts are added when they are linked.
func (c Channels) AddAddress(ctx context.Context, account string, from desk.From, kind, to, name string) (PersonAddress, error) {
	return c.outbox.AddAddress(ctx, account, from, kind, to, name)
}

// RemoveAddresses removes all such addresses of a removed member.
func (c Channels) RemoveAddresses(ctx context.Context, account string, from desk.From, person string) error {
	return c.outbox.RemoveAddresses(ctx, account, from, person)
}

// RemoveAddress removes such an address. It returns store.ErrNotFound if there is none with the id.
func (c Channels) RemoveAddress(ctx context.Context, account string, from desk.From, id string) error {
	return c.outbox.RemoveAddress(ctx, account, from, id)
}
