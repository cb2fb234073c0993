package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/people"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/store"
)

// maxAddresses is how many addresses a person may have.
const maxAddresses = 20

// ErrTooManyAddresses says that a person has as many addresses as allowed.
var ErrTooManyAddresses = fmt.Errorf("executor: a person has at most %d addresses", maxAddresses)

// Person returns the settings and addresses of a person. One who never changed them has the
// defaults.
func (o *Sender) Person(ctx context.Context, account, person string) (docs.Person, error) {
	profile, err := o.person(ctx, account, person)
	if err != nil {
		return profile, err
	}
	var failure error
	profile.Addresses = slices.DeleteFunc(profile.Addresses, func(a docs.PersonAddress) bool {
		linked, err := o.isLinked(ctx, account, person, a)
		failure = errors.Join(failure, err)
		return !linked
	})
	return profile, failure
}

// PersonalKinds returns the kinds of channels that reach people one by one.
func (o *Sender) PersonalKinds() (kinds []string) {
	for kind, c := range o.channels {
		if _, ok := c.(channel.Personal); ok {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

func (o *Sender) person(ctx context.Context, account, person string) (profile docs.Person, err error) {
	profile, _, err = o.readPerson(ctx, account, person)
	return profile, err
}

func (o *Sender) readPerson(ctx context.Context, account, person string) (profile docs.Person, revision int64, err error) {
	document, err := o.store.Document(ctx, account, docs.PersonKind, person)
	if docs.IsNotFound(err) {
		return profile, 0, nil
	}
	if err == nil {
		err = o.docs.DecodeBody(document, &profile)
	}
	return profile, document.Revision, err
}

func personChange(person string, profile docs.Person, revision int64) (store.DocumentChange, error) {
	body, failedBody := json.Marshal(profile)
	index, failedIndex := json.Marshal(docs.PersonIndex{Inbox: slices.ContainsFunc(profile.Addresses, func(a docs.PersonAddress) bool { return a.Sender == "" })})
	return store.DocumentChange{Kind: docs.PersonKind, ID: person, BaseRevision: revision, Body: body, Index: index}, errors.Join(failedBody, failedIndex)
}

// changePerson applies a change to a person, with its audit line. Without a line nothing has
// changed.
func (o *Sender) changePerson(ctx context.Context, account, person string, actor audit.Actor, change func(*docs.Person) (audit.Body, error)) (profile docs.Person, err error) {
	err = retry.WhileStale(ctx, func() error {
		var revision int64
		if profile, revision, err = o.readPerson(ctx, account, person); err != nil {
			return err
		}
		line, err := change(&profile)
		if err != nil || line == nil {
			return err
		}
		now, err := o.store.Now(ctx)
		if err != nil {
			return err
		}
		c := txn.New(store.Run{Account: account}, docs.RunMeta{}, now)
		written, err := personChange(person, profile, revision)
		if err = errors.Join(err, c.AddAudit(actor, audit.Location{}, line)); err != nil {
			return err
		}
		c.Documents = append(c.Documents, written)
		return o.store.CommitWrites(ctx, account, c.Writes)
	})
	return profile, err
}

// SetSettings replaces the settings of the person who sends them.
func (o *Sender) SetSettings(ctx context.Context, account string, from desk.From, settings people.Settings) (docs.Person, error) {
	return o.changePerson(ctx, account, from.Actor.ID, auditrec.AuditActor(from), func(p *docs.Person) (audit.Body, error) {
		p.Settings = settings
		line := audit.NotificationsChanged{What: "settings", Quiet: settings.Quiet != nil}
		if away := settings.Away; away != nil {
			line.AwayFrom, line.AwayUntil, line.Delegate = audit.TimestampOf(away.From), audit.TimestampOf(away.Until), away.Delegate
		}
		return line, nil
	})
}

// AddAddress adds an address of the person who sends it, or replaces the one with the same channel
// and destination.
func (o *Sender) AddAddress(ctx context.Context, account string, from desk.From, kind, to, name string) (added docs.PersonAddress, err error) {
	now, err := o.store.Now(ctx)
	if err != nil {
		return added, err
	}
	added = docs.PersonAddress{ID: ident.Derive("addr", kind, to), Channel: kind, To: to, Name: name, At: now}
	_, err = o.changePerson(ctx, account, from.Actor.ID, auditrec.AuditActor(from), func(p *docs.Person) (audit.Body, error) {
		p.Addresses = withoutAddress(p.Addresses, added.ID)
		if len(p.Addresses) >= maxAddresses {
			return nil, ErrTooManyAddresses
		}
		p.Addresses = append(p.Addresses, added)
		return audit.NotificationsChanged{What: "address_added", Channel: kind}, nil
	})
	return added, err
}

// RemoveAddress removes an address that is not a linked account. It returns store.ErrNotFound if
// the person has none with the id.
func (o *Sender) RemoveAddress(ctx context.Context, account string, from desk.From, id string) error {
	_, err := o.changePerson(ctx, account, from.Actor.ID, auditrec.AuditActor(from), func(p *docs.Person) (audit.Body, error) {
		at := slices.IndexFunc(p.Addresses, func(a docs.PersonAddress) bool { return a.ID == id && a.Sender == "" })
		if at < 0 {
			return nil, store.ErrNotFound
		}
		line := audit.NotificationsChanged{What: "address_removed", Channel: p.Addresses[at].Channel}
		p.Addresses = slices.Delete(p.Addresses, at, at+1)
		return line, nil
	})
	return err
}

// RemoveAddresses removes all addresses of a person that are not linked accounts.
func (o *Sender) RemoveAddresses(ctx context.Context, account string, from desk.From, person string) error {
	for more := true; more; {
		more = false
		_, err := o.changePerson(ctx, account, person, auditrec.AuditActor(from), func(p *docs.Person) (audit.Body, error) {
			at := slices.IndexFunc(p.Addresses, func(a docs.PersonAddress) bool { return a.Sender == "" })
			if at < 0 {
				return nil, nil
			}
			more = true
			line := audit.NotificationsChanged{What: "address_removed", Channel: p.Addresses[at].Channel, Person: person}
			p.Addresses = slices.Delete(p.Addresses, at, at+1)
			return line, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// forgetAddress removes an address that does not exist any more.
func (o *Sender) forgetAddress(ctx context.Context, account, person, kind, to string) error {
	_, err := o.changePerson(ctx, account, person, auditrec.SystemActor, func(p *docs.Person) (audit.Body, error) {
		left := slices.DeleteFunc(slices.Clone(p.Addresses), func(a docs.PersonAddress) bool { return a.Channel == kind && a.To == to && a.Sender == "" })
		if len(left) == len(p.Addresses) {
			return nil, nil
		}
		p.Addresses = left
		return audit.NotificationsChanged{What: "address_removed", Channel: kind, Person: person}, nil
	})
	return err
}

func withoutAddress(all []docs.PersonAddress, id string) []docs.PersonAddress {
	return slices.DeleteFunc(slices.Clone(all), func(a docs.PersonAddress) bool { return a.ID == id })
}

// linkedAddress returns the change that adds the address of a linked account to its person. Older
// addresses make room for it.
func (o *Sender) linkedAddress(ctx context.Context, account string, link docs.ChannelLink) ([]store.DocumentChange, error) {
	personal, ok := o.channels[link.Channel].(channel.Personal)
	if !ok {
		return nil, nil
	}
	to := personal.PersonalAddress(link.Sender)
	if to == "" {
		return nil, nil
	}
	profile, revision, err := o.readPerson(ctx, account, link.Principal)
	if err != nil {
		return nil, err
	}
	added := docs.PersonAddress{ID: ident.Derive("addr", link.Channel, to), Channel: link.Channel, Sender: link.Sender, To: to, Name: link.Name, At: link.At}
	profile.Addresses = append(withoutAddress(profile.Addresses, added.ID), added)
	profile.Addresses = profile.Addresses[max(0, len(profile.Addresses)-maxAddresses):]
	change, err := personChange(link.Principal, profile, revision)
	return []store.DocumentChange{change}, err
}

// readDelivery decodes a delivery.
func (o *Sender) readDelivery(document store.Document) (index docs.DeliveryIndex, body docs.Delivery, err error) {
	err = errors.Join(json.Unmarshal(document.Index, &index), o.docs.DecodeBody(document, &body))
	return index, body, err
}
