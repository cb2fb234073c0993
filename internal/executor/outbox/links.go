package outbox

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/store"
)

const (
	linkTokenLifetime = 15 * time.Minute
	// the roles of the person are those at the time of linking, so links do not last long
	linkLifetime = 7 * 24 * time.Hour
)

// ErrLinkInvalid says that a one-time link is unknown, expired or used.
var ErrLinkInvalid = errors.New("executor: the link is unknown, expired or used")

// ErrLinkTaken says that the account of the channel is linked to another person, and must be
// unlinked first.
var ErrLinkTaken = errors.New("executor: the account of the channel is linked to another person")

// NewLinkToken returns the token of a one-time link for an account of a channel.
func (o *Sender) NewLinkToken(ctx context.Context, s channel.Sender) (string, error) {
	if s.Account == "" || s.Channel == "" || s.ID == "" || len(s.ID) > 200 {
		return "", errors.New("executor: a sender needs an account, a channel and an id of at most 200 characters")
	}
	now, err := o.store.Now(ctx)
	if err != nil {
		return "", err
	}
	token := rand.Text()
	body, err := json.Marshal(docs.LinkToken{Channel: s.Channel, Sender: s.ID, Name: s.Name, Until: now.Add(linkTokenLifetime)})
	if err != nil {
		return "", err
	}
	return token, o.docs.WriteDocument(ctx, s.Account, store.DocumentChange{Kind: docs.LinkTokenKind, ID: ident.Derive("lt", token), Body: body, Index: []byte(`{}`)})
}

// LinkToken returns what a one-time link is for, or ErrLinkInvalid.
func (o *Sender) LinkToken(ctx context.Context, account, token string) (docs.LinkToken, error) {
	t, _, _, err := o.linkToken(ctx, account, token)
	return t, err
}

func (o *Sender) linkToken(ctx context.Context, account, token string) (t docs.LinkToken, document store.Document, now time.Time, err error) {
	document, err = o.store.Document(ctx, account, docs.LinkTokenKind, ident.Derive("lt", token))
	if docs.IsNotFound(err) {
		return t, document, now, ErrLinkInvalid
	}
	if err == nil {
		err = o.docs.DecodeBody(document, &t)
	}
	if err == nil {
		now, err = o.store.Now(ctx)
	}
	if err == nil && (t.Used || !now.Before(t.Until)) {
		err = ErrLinkInvalid
	}
	return t, document, now, err
}

// UseLinkToken links an account of a channel to a person, and uses up the token. Both are written
// with the audit record in one transaction.
func (o *Sender) UseLinkToken(ctx context.Context, account, token string, person desk.From, roles []string) (docs.ChannelLink, error) {
	t, used, now, err := o.linkToken(ctx, account, token)
	if err != nil {
		return docs.ChannelLink{}, err
	}
	old, err := o.Link(ctx, channel.Sender{Account: account, Channel: t.Channel, ID: t.Sender})
	switch {
	case err == nil && old.Principal != person.Actor.ID:
		return docs.ChannelLink{}, ErrLinkTaken
	case err != nil && !errors.Is(err, channel.ErrNotLinked):
		return docs.ChannelLink{}, err
	}
	link := docs.ChannelLink{Channel: t.Channel, Sender: t.Sender, Name: t.Name, Principal: person.Actor.ID, Roles: roles, At: now, Until: now.Add(linkLifetime)}
	t.Used = true
	change := store.DocumentChange{Kind: docs.LinkTokenKind, ID: used.ID, BaseRevision: used.Revision, Index: used.Index}
	if change.Body, err = json.Marshal(t); err != nil {
		return docs.ChannelLink{}, err
	}
	next, err := o.linkChange(ctx, account, link)
	if err != nil {
		return docs.ChannelLink{}, err
	}
	address, err := o.linkedAddress(ctx, account, link)
	if err != nil {
		return docs.ChannelLink{}, err
	}
	line, err := audit.NewLine(account, auditrec.AuditActor(person), audit.Location{}, audit.ChannelLinked{
		Link: next.ID, Channel: link.Channel, Roles: roles, Until: audit.TimestampOf(link.Until),
	})
	if err != nil {
		return docs.ChannelLink{}, err
	}
	err = o.store.CommitWrites(ctx, account, store.Writes{Documents: append([]store.DocumentChange{change, next}, address...), Audit: [][]byte{line}})
	if errors.Is(err, store.ErrStale) {
		err = ErrLinkInvalid // it was used at the same time
	}
	return link, err
}

// LinkID returns the id of a link.
func LinkID(link docs.ChannelLink) string { return linkID(link.Channel, link.Sender) }

func linkID(kind, sender string) string { return kind + "/" + ident.Derive("l", sender) }

func (o *Sender) linkChange(ctx context.Context, account string, link docs.ChannelLink) (store.DocumentChange, error) {
	change := store.DocumentChange{Kind: docs.LinkKind, ID: linkID(link.Channel, link.Sender), Index: []byte(`{}`)}
	before, err := o.store.Document(ctx, account, change.Kind, change.ID)
	switch {
	case err == nil:
		change.BaseRevision = before.Revision
	case !docs.IsNotFound(err):
		return change, err
	}
	change.Body, err = json.Marshal(link)
	return change, err
}

// Link returns the link of an account of a channel, or channel.ErrNotLinked.
func (o *Sender) Link(ctx context.Context, s channel.Sender) (link docs.ChannelLink, err error) {
	document, err := o.store.Document(ctx, s.Account, docs.LinkKind, linkID(s.Channel, s.ID))
	if docs.IsNotFound(err) {
		return link, channel.ErrNotLinked
	}
	if err == nil {
		err = o.docs.DecodeBody(document, &link)
	}
	if err != nil {
		return link, err
	}
	now, err := o.store.Now(ctx)
	if err == nil && (link.Revoked || !now.Before(link.Until) || link.Sender != s.ID) {
		err = channel.ErrNotLinked
	}
	return link, err
}

// Links returns the links of a person, by their ids.
func (o *Sender) Links(ctx context.Context, account, principal string) (map[string]docs.ChannelLink, error) {
	now, err := o.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	all := make(map[string]docs.ChannelLink)
	for document, err := range o.docs.Documents(ctx, account, docs.LinkKind, store.DocumentFilter{Limit: 1000}) {
		if err != nil {
			return nil, err
		}
		var link docs.ChannelLink
		if err := o.docs.DecodeBody(document, &link); err != nil {
			return nil, err
		}
		if link.Principal == principal && !link.Revoked && now.Before(link.Until) {
			all[document.ID] = link
		}
	}
	return all, nil
}

// RevokeLink ends the link of an account of a channel, if it belongs to the principal. The
// link is written with the audit record in one transaction.
func (o *Sender) RevokeLink(ctx context.Context, s channel.Sender, principal string, by desk.From) error {
	link, err := o.Link(ctx, s)
	if err != nil {
		return err
	}
	if link.Principal != principal {
		return channel.ErrNotLinked
	}
	link.Revoked = true
	change, err := o.linkChange(ctx, s.Account, link)
	if err != nil {
		return err
	}
	line, err := audit.NewLine(s.Account, auditrec.AuditActor(by), audit.Location{}, audit.ChannelUnlinked{Link: change.ID, Channel: link.Channel, Principal: principal})
	if err != nil {
		return err
	}
	return o.store.CommitWrites(ctx, s.Account, store.Writes{Documents: []store.DocumentChange{change}, Audit: [][]byte{line}})
}
