package outbox

import (
	"context"
	"encoding/json"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/people"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/store"
)

// maxInboxPeople is how many people a notice for the inbox reaches at most.
const maxInboxPeople = 1000

// notifiesInbox reports whether a channel gets notices for the inbox.
func (o *Sender) notifiesInbox(kind string) bool {
	c, ok := o.channels[kind].(channel.InboxNotifier)
	return ok && c.NotifiesInbox()
}

// addInbox adds the addresses that extend the inbox, such as browsers, of all people who can decide
// the request. People who are absent are left out: the request is in the inbox anyway.
func (x *expansion) addInbox(ctx context.Context) error {
	o := x.sender
	has := false
	for kind := range o.channels {
		has = has || o.notifiesInbox(kind)
	}
	if !has || x.request == nil || x.notice.Kind != desk.NoticeNotify && x.notice.Kind != desk.NoticeRemind {
		return nil
	}
	reached := 0
	for document, err := range o.docs.Documents(ctx, x.account, docs.PersonKind, store.DocumentFilter{Limit: 200}) {
		if err != nil {
			return err
		}
		var index docs.PersonIndex
		if err := json.Unmarshal(document.Index, &index); err != nil || !index.Inbox {
			continue // it has no such address
		}
		if x.whyNot(document.ID, false) != "" || x.sender.requests.MayDecide(*x.request, document.ID) != nil {
			continue
		}
		if err := x.addInboxOf(document); err != nil {
			return err
		}
		if reached++; reached == maxInboxPeople {
			break
		}
	}
	return nil
}

func (x *expansion) addInboxOf(document store.Document) error {
	var profile docs.Person
	if err := x.sender.docs.DecodeBody(document, &profile); err != nil {
		return err
	}
	if profile.Settings.AwayAt(x.now) {
		return nil
	}
	about := people.About{Notice: x.notice.Kind, Kind: x.request.Subject.Kind, Risk: x.request.Subject.Risk}
	for _, a := range profile.Addresses {
		if a.Sender == "" && x.sender.notifiesInbox(a.Channel) && profile.Settings.Uses(a.Channel, about) {
			x.add(address{Channel: a.Channel, To: a.To, Target: desk.TargetInbox, Person: document.ID, NotBefore: profile.Settings.NotBefore(x.now, about)})
		}
	}
	return nil
}
