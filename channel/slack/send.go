package slack

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/fermata-go/fermata/channel"
)

// copyRef is one posted message. The reference of a delivery has one for each Slack channel,
// separated by commas: CHANNEL/TS. After a tilde there is a digit for each question to the agent: 1
// if its thread has the question, 2 if it also has the answer. A copy in a digest has an
// exclamation mark at the end.
type copyRef struct {
	channel, ts, notes string
	digest             bool
}

func (r copyRef) String() string {
	text := r.channel + "/" + r.ts
	if r.notes != "" {
		text += "~" + r.notes
	}
	if r.digest {
		text += "!"
	}
	return text
}

// parseRefs parses the reference of a delivery.
func parseRefs(ref string) (all []copyRef, err error) {
	for part := range strings.SplitSeq(ref, ",") {
		var r copyRef
		part, r.digest = strings.CutSuffix(part, "!")
		part, r.notes, _ = strings.Cut(part, "~")
		var ok bool
		if r.channel, r.ts, ok = strings.Cut(part, "/"); !ok || r.ts == "" {
			return nil, fmt.Errorf("slack: invalid reference %q", ref)
		}
		all = append(all, r)
	}
	return all, nil
}

func joinRefs(all []copyRef) string {
	parts := make([]string, len(all))
	for i, r := range all {
		parts[i] = r.String()
	}
	return strings.Join(parts, ",")
}

// Send posts a message to each Slack channel of the address, or replaces the messages of m.Ref.
func (c *Channel) Send(ctx context.Context, m channel.Message) (string, error) {
	if m.Ref != "" {
		return c.update(ctx, m)
	}
	to, err := c.destinations(ctx, m.To)
	if err != nil {
		return "", err
	}
	var refs []copyRef
	for _, one := range to {
		if m.Attempt > 1 && len(to) > 1 { // an earlier attempt may have reached some of them
			if ref, found, err := c.findIn(ctx, one, m.Delivery); err != nil {
				return "", err
			} else if found {
				refs = append(refs, ref)
				continue
			}
		}
		ref, err := c.post(ctx, one, m)
		if err != nil {
			return "", err
		}
		refs = append(refs, ref)
	}
	return joinRefs(refs), nil
}

// post posts one copy. If the channel is busy, the request is added to its digest.
func (c *Channel) post(ctx context.Context, to string, m channel.Message) (copyRef, error) {
	if m.Card.Open() && c.digest.busy(to, m.Delivery) {
		ts, err := c.digest.add(ctx, to, m.Card)
		return copyRef{channel: to, ts: ts, digest: true}, err
	}
	r := render(m.Card)
	ts, err := call(ctx, c, "chat.postMessage", to, func() (string, error) {
		_, ts, err := c.api.PostMessageContext(ctx, to, append(r.options(), metadata(m))...)
		return ts, err
	})
	if err != nil {
		return copyRef{}, err
	}
	ref := copyRef{channel: to, ts: ts}
	return ref, c.postNotes(ctx, &ref, m.Card)
}

// metadata is how a copy is found again if the response of its post was lost.
func metadata(m channel.Message) slack.MsgOption {
	return slack.MsgOptionMetadata(slack.SlackMetadata{
		EventType: metadataType, EventPayload: map[string]any{"delivery": m.Delivery, "request": m.Card.Request},
	})
}

// options returns the content of a message. Slack does not fetch addresses in it.
func (r rendered) options() []slack.MsgOption {
	return []slack.MsgOption{
		slack.MsgOptionText(r.text, true), slack.MsgOptionBlocks(r.blocks...), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
	}
}

// update replaces all copies of a delivery.
func (c *Channel) update(ctx context.Context, m channel.Message) (string, error) {
	refs, err := parseRefs(m.Ref)
	if err != nil {
		return "", &channel.Error{Code: "invalid_reference", Permanent: true, Err: err}
	}
	var failed error
	for i := range refs {
		if err := c.updateCopy(ctx, &refs[i], m); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	if failed != nil {
		return "", failed
	}
	return joinRefs(refs), nil
}

func (c *Channel) updateCopy(ctx context.Context, ref *copyRef, m channel.Message) error {
	if ref.digest {
		return c.digest.change(ctx, ref, m.Card)
	}
	if !m.Card.Open() {
		c.digest.closed(ref.channel, m.Delivery)
	}
	r := render(m.Card)
	_, err := call(ctx, c, "chat.update", "", func() (string, error) {
		_, ts, _, err := c.api.UpdateMessageContext(ctx, ref.channel, ref.ts, r.options()...)
		return ts, err
	})
	if isCode(err, "message_not_found") { // a person deleted it
		if !m.Card.Open() {
			return nil
		}
		*ref, err = c.post(ctx, ref.channel, m)
		return err
	}
	if err != nil {
		return err
	}
	return c.postNotes(ctx, ref, m.Card)
}

// postNotes posts questions to the agent and its answers in the thread of a copy.
func (c *Channel) postNotes(ctx context.Context, ref *copyRef, card channel.Card) error {
	var notes rendered
	var state strings.Builder
	for i, n := range card.Notes {
		posted := byte('0')
		if i < len(ref.notes) {
			posted = ref.notes[i]
		}
		if posted < '1' {
			notes.addNote(n.By+" asks the agent:", n.Text)
			posted = '1'
		}
		if posted < '2' && n.Answer != nil {
			notes.addNote(n.Answer.By+" answers:", n.Answer.Text)
			posted = '2'
		}
		state.WriteByte(posted)
	}
	if len(notes.blocks) == 0 {
		return nil
	}
	_, err := call(ctx, c, "chat.postMessage", ref.channel, func() (string, error) {
		_, ts, err := c.api.PostMessageContext(ctx, ref.channel, append(notes.options(), slack.MsgOptionTS(ref.ts))...)
		return ts, err
	})
	if err == nil {
		ref.notes = state.String()
	}
	return err
}

func (r *rendered) addNote(label, text string) {
	r.addPreformatted(label, text)
	r.text = clip(label+" "+text, maxNotify)
}

// findPages bounds the search for a lost copy: a page has 200 messages.
const (
	findPages    = 5
	findPageSize = 200
	findAge      = 24 * time.Hour
)

// Find looks for the copies of a delivery in the history of its Slack channels, by their metadata.
func (c *Channel) Find(ctx context.Context, m channel.Message) (string, bool, error) {
	to, err := c.destinations(ctx, m.To)
	if err != nil {
		return "", false, err
	}
	var refs []copyRef
	for _, one := range to {
		ref, found, err := c.findIn(ctx, one, m.Delivery)
		if err != nil || !found {
			return "", false, err
		}
		refs = append(refs, ref)
	}
	return joinRefs(refs), true, nil
}

func (c *Channel) findIn(ctx context.Context, id, delivery string) (ref copyRef, found bool, err error) {
	err = c.history(ctx, id, func(m slack.Message) bool {
		if m.Metadata.EventType == metadataType && m.Metadata.EventPayload["delivery"] == delivery {
			ref, found = copyRef{channel: id, ts: m.Timestamp}, true
		}
		return !found
	})
	return ref, found, err
}

// history passes the messages of the bot in a Slack channel, newest first, while more returns true.
func (c *Channel) history(ctx context.Context, id string, more func(slack.Message) bool) error {
	self, err := c.identity(ctx)
	if err != nil {
		return err
	}
	query := slack.GetConversationHistoryParameters{
		ChannelID: id, IncludeAllMetadata: true, Limit: findPageSize, Oldest: strconv.FormatInt(c.config.Now().Add(-findAge).Unix(), 10),
	}
	for range findPages {
		page, err := call(ctx, c, "conversations.history", "", func() (*slack.GetConversationHistoryResponse, error) {
			return c.api.GetConversationHistoryContext(ctx, &query)
		})
		if err != nil {
			return err
		}
		for _, m := range page.Messages {
			// other apps may write any metadata
			if m.User == self.UserID && !more(m) {
				return nil
			}
		}
		if query.Cursor = page.ResponseMetaData.NextCursor; query.Cursor == "" {
			return nil
		}
	}
	return nil
}
