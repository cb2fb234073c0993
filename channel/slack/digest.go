package slack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/fermata-go/fermata/channel"
)

// digestType is the type of the metadata of a digest. Its payload has the open requests.
const digestType = "fermata_digest"

// digests collects requests of busy Slack channels in one message each. The list of open requests
// is in the metadata of the message, so that every process can change it.
type digests struct {
	c  *Channel
	mu sync.Mutex
	// recent has the open copies of each Slack channel by delivery, with the time of the post
	recent map[string]map[string]time.Time
	// editing serializes changes of the digests
	editing sync.Mutex
}

func newDigests(c *Channel) *digests {
	return &digests{c: c, recent: make(map[string]map[string]time.Time)}
}

// busy reports whether a Slack channel got too many open requests recently. Otherwise it counts one
// more.
func (d *digests) busy(to, delivery string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	since := d.c.config.Now().Add(-d.c.config.DigestWindow)
	open := d.recent[to]
	if open == nil {
		open = make(map[string]time.Time)
		d.recent[to] = open
	}
	for id, at := range open {
		if at.Before(since) {
			delete(open, id)
		}
	}
	if _, again := open[delivery]; !again && len(open) >= d.c.config.DigestAbove {
		return true
	}
	open[delivery] = d.c.config.Now()
	return false
}

// closed says that a copy is not open any more.
func (d *digests) closed(to, delivery string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.recent[to], delivery)
}

// item is a request in a digest.
type item struct{ request, title, link string }

// maxDigestItems is the number of requests in one digest. Then a new one begins.
const maxDigestItems = 20

// add adds a request to the digest of a Slack channel, and returns its message.
func (d *digests) add(ctx context.Context, to string, card channel.Card) (ts string, err error) {
	d.editing.Lock()
	defer d.editing.Unlock()
	since := fmt.Sprintf("%d.000000", d.c.config.Now().Add(-d.c.config.DigestWindow).Unix())
	var items []item
	err = d.c.history(ctx, to, func(m slack.Message) bool {
		if m.Metadata.EventType == digestType && m.Timestamp >= since {
			if found := itemsOf(m); len(found) < maxDigestItems {
				ts, items = m.Timestamp, found
				return false
			}
		}
		return m.Timestamp >= since
	})
	if err != nil {
		return "", err
	}
	items = setItem(items, card)
	if ts != "" {
		return ts, d.write(ctx, to, ts, items)
	}
	r := renderDigest(items)
	return call(ctx, d.c, "chat.postMessage", to, func() (string, error) {
		_, ts, err := d.c.api.PostMessageContext(ctx, to, append(r.options(), digestMetadata(items))...)
		return ts, err
	})
}

// change updates or removes a request in its digest.
func (d *digests) change(ctx context.Context, ref *copyRef, card channel.Card) error {
	d.editing.Lock()
	defer d.editing.Unlock()
	page, err := call(ctx, d.c, "conversations.history", "", func() (*slack.GetConversationHistoryResponse, error) {
		return d.c.api.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{
			ChannelID: ref.channel, Latest: ref.ts, Oldest: ref.ts, Inclusive: true, Limit: 1, IncludeAllMetadata: true,
		})
	})
	if err != nil {
		return err
	}
	if len(page.Messages) == 0 {
		return nil // a person deleted it
	}
	return d.write(ctx, ref.channel, ref.ts, setItem(itemsOf(page.Messages[0]), card))
}

func (d *digests) write(ctx context.Context, to, ts string, items []item) error {
	r := renderDigest(items)
	_, err := call(ctx, d.c, "chat.update", "", func() (string, error) {
		_, ts, _, err := d.c.api.UpdateMessageContext(ctx, to, ts, append(r.options(), digestMetadata(items))...)
		return ts, err
	})
	return err
}

// setItem adds an open request, or removes one that is not open.
func setItem(items []item, card channel.Card) []item {
	items = slices.DeleteFunc(items, func(i item) bool { return i.request == card.Request })
	if card.Open() {
		items = append(items, item{card.Request, clip(card.Title, maxHeader), card.Link})
	}
	return items
}

// itemsOf reads the requests of a digest, oldest first.
func itemsOf(m slack.Message) (items []item) {
	list, _ := m.Metadata.EventPayload["requests"].([]any)
	for _, entry := range list {
		text, _ := entry.(string)
		parts := strings.SplitN(text, "\n", 3)
		if len(parts) == 3 {
			items = append(items, item{parts[0], parts[2], parts[1]})
		}
	}
	return items
}

func digestMetadata(items []item) slack.MsgOption {
	list := make([]any, len(items))
	for i, one := range items {
		list[i] = one.request + "\n" + one.link + "\n" + one.title
	}
	return slack.MsgOptionMetadata(slack.SlackMetadata{EventType: digestType, EventPayload: map[string]any{"requests": list}})
}

// renderDigest lists requests with a link to each. It has no buttons that decide.
func renderDigest(items []item) (r rendered) {
	switch len(items) {
	case 0:
		r.text = "No further request is open."
	case 1:
		r.text = "1 further request is open."
	default:
		r.text = fmt.Sprintf("%d further requests are open.", len(items))
	}
	r.add(slack.NewHeaderBlock(plainText(r.text, maxHeader)))
	for _, one := range items {
		section := slack.NewSectionBlock(plainText(one.title, maxSection), nil, nil)
		if one.link != "" {
			section.Accessory = slack.NewAccessory(linkButton(one.link, "Open"))
		}
		r.add(section)
	}
	return r
}
