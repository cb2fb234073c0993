package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/channelerror"
	"github.com/fermata-go/fermata/internal/sanitize"
)

// actTest is the button of a test message. Its click takes the same way as the click of a decision.
const actTest = "test"

const (
	testMetadata = "fermata_test"
	// testPoll is the pause between two looks at a test message; Slack allows 50 in a minute.
	testPoll = 1500 * time.Millisecond
)

var _ channel.Tester = (*Channel)(nil)

// Test posts a message with a button. The server that receives the click replaces the message, and
// Answer looks at the message until then. It opens no socket: that would take the clicks of others
// away from the server.
func (c *Channel) Test(ctx context.Context, to string) (channel.TestResult, error) {
	refs, err := c.postTest(ctx, to)
	if err != nil {
		return channel.TestResult{}, errors.New(explainError(err))
	}
	result := channel.TestResult{Sent: "posted to " + to + " with the button Confirm receipt"}
	result.Answer = func(ctx context.Context) (string, error) { return c.waitForTest(ctx, refs) }
	return result, nil
}

// postTest posts the test message to each Slack channel of an address.
func (c *Channel) postTest(ctx context.Context, to string) (refs []copyRef, err error) {
	all, err := c.destinations(ctx, to)
	if err != nil {
		return nil, err
	}
	if _, err := c.identity(ctx); err != nil {
		return nil, err
	}
	m := channel.TestMessage(to, c.config.Now())
	r := rendered{text: m.Card.Title}
	r.add(slack.NewHeaderBlock(plainText(m.Card.Title, maxHeader)))
	r.add(slack.NewSectionBlock(plainText(m.Card.Sentence+" Click the button to test the way back to the server.", maxSection), nil, nil))
	button := slack.NewButtonBlockElement(actTest, shown{Request: m.Card.Request, Action: actTest}.value(), plainText("Confirm receipt", maxButton))
	r.add(slack.NewActionBlock(blockActions, button))
	for _, one := range all {
		ts, err := call(ctx, c, "chat.postMessage", one, func() (string, error) {
			_, ts, err := c.api.PostMessageContext(ctx, one, append(r.options(), testAnswer(""))...)
			return ts, err
		})
		if err != nil {
			return nil, err
		}
		refs = append(refs, copyRef{channel: one, ts: ts})
	}
	return refs, nil
}

// testAnswer is the metadata of a test message.
func testAnswer(text string) slack.MsgOption {
	return slack.MsgOptionMetadata(slack.SlackMetadata{EventType: testMetadata, EventPayload: map[string]any{"answer": text}})
}

// waitForTest returns the answer of the first copy that the server has replaced.
func (c *Channel) waitForTest(ctx context.Context, refs []copyRef) (string, error) {
	for {
		for _, ref := range refs {
			answer, err := c.answerOf(ctx, ref)
			if err != nil && ctx.Err() == nil && channelerror.IsPermanent(err) {
				return "", errors.New(explainError(err))
			}
			if answer != "" {
				return answer, nil
			}
		}
		timer := time.NewTimer(testPoll)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return "", ctx.Err()
		}
	}
}

// answerOf returns the answer to one copy, or "" before there is one.
func (c *Channel) answerOf(ctx context.Context, ref copyRef) (string, error) {
	query := slack.GetConversationHistoryParameters{ChannelID: ref.channel, Latest: ref.ts, Oldest: ref.ts, Inclusive: true, Limit: 1, IncludeAllMetadata: true}
	page, err := call(ctx, c, "conversations.history", "", func() (*slack.GetConversationHistoryResponse, error) {
		return c.api.GetConversationHistoryContext(ctx, &query)
	})
	switch {
	case err != nil:
		return "", err
	case len(page.Messages) == 0:
		return "", &channel.Error{Code: "message_not_found", Permanent: true, Err: errors.New("slack: the test message was deleted")}
	}
	answer, _ := page.Messages[0].Metadata.EventPayload["answer"].(string)
	return answer, nil
}

// receiveTest replaces the test message of a click. linked is the person of the Slack account, or
// "".
func (c *Channel) receiveTest(ctx context.Context, in *click, linked string) error {
	answer := fmt.Sprintf("the server received the click of %s at %s; ", cmp.Or(sanitize.Line(in.UserName), in.User), c.config.Now().UTC().Format("2006-01-02 15:04:05 UTC"))
	if linked == "" {
		answer += "this Slack account is not linked to a person yet"
	} else {
		answer += "the Slack account is linked to " + sanitize.Line(linked)
	}
	r := rendered{text: "Test message from Fermata: received"}
	r.add(slack.NewHeaderBlock(plainText(r.text, maxHeader)))
	r.add(slack.NewSectionBlock(plainText(strings.ToUpper(answer[:1])+answer[1:]+". There is nothing to decide.", maxSection), nil, nil))
	_, err := call(ctx, c, "chat.update", "", func() (string, error) {
		_, ts, _, err := c.api.UpdateMessageContext(ctx, in.Channel, in.Thread, append(r.options(), testAnswer(answer))...)
		return ts, err
	})
	if isCode(err, "message_not_found") {
		return nil
	}
	return err
}
