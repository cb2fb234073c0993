package channeltest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/channel/channeltest"
	"github.com/fermata-go/fermata/channel/slack"
	"github.com/fermata-go/fermata/internal/slackfake"
)

// openSlack is a workspace with several channels. Concurrent messages go to different ones, because
// Slack accepts one message per second and channel.
func openSlack(t testing.TB) channeltest.Subject {
	fake, err := slackfake.Start(slackfake.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	var channels []string
	for i := range 10 {
		id := fake.AddChannel(slackfake.Channel{Name: fmt.Sprint("ops", i), Private: true})
		fake.Join(id, fake.BotUser())
		channels = append(channels, id)
	}
	c, err := slack.New(slack.Config{
		Account: "acme", BotToken: fake.BotToken(), SigningSecret: fake.SigningSecret(), APIURL: fake.APIURL(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	copies := func() (all []channeltest.Copy) {
		for _, id := range channels {
			for _, m := range fake.Messages(id) {
				all = append(all, slackCopy(t, m))
			}
		}
		return all
	}
	fail := func(f channeltest.Failure) {
		failure := slackfake.Failure{RetryAfter: f.RetryAfter, LoseResponse: f.Kind == channeltest.LoseResponse}
		switch f.Kind {
		case channeltest.Temporary:
			failure.Code = "fatal_error"
		case channeltest.Permanent:
			failure.Code = "is_archived"
		}
		fake.FailNext("chat.postMessage", failure)
	}
	return channeltest.Subject{
		Channel: c, To: channels[0], Unknown: "C404", Copies: copies, Fail: fail,
		Many: func(i int) string { return channels[i%len(channels)] },
	}
}

// slackCopy reads a message. Its actions are the labels of buttons and menus, without links.
func slackCopy(t testing.TB, m slackfake.Message) channeltest.Copy {
	c := channeltest.Copy{Text: m.Text + "\n" + texts(t, m.Blocks)}
	var blocks []struct {
		Elements []json.RawMessage
	}
	if err := json.Unmarshal(m.Blocks, &blocks); err != nil {
		t.Errorf("%v: %s", err, m.Blocks)
	}
	type label struct{ Text string }
	for _, b := range blocks {
		for _, raw := range b.Elements {
			var e struct {
				Type, URL string
				Text      json.RawMessage
				Options   []struct{ Text label }
			}
			if err := json.Unmarshal(raw, &e); err != nil {
				t.Errorf("%v: %s", err, raw)
			}
			var text label
			switch {
			case e.Type == "button" && e.URL == "" && json.Unmarshal(e.Text, &text) == nil:
				c.Actions = append(c.Actions, text.Text)
			case e.Type == "overflow":
				for _, o := range e.Options {
					c.Actions = append(c.Actions, o.Text.Text)
				}
			}
		}
	}
	c.Actions = slices.DeleteFunc(c.Actions, func(s string) bool { return s == "Open in inbox" })
	c.Ended = len(c.Actions) == 0 && (strings.Contains(c.Text, "rejected by") || strings.Contains(c.Text, "approved by") || strings.Contains(c.Text, "withdrawn"))
	return c
}
