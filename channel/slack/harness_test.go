package slack_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/channel/slack"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/slackfake"
)

const account = "acme"

// workspace is a fake Slack with a private channel and a channel of this package.
type workspace struct {
	*slackfake.Slack
	channel    *slack.Channel
	config     slack.Config
	ops, alice string
}

func openWorkspace(t testing.TB, fake slackfake.Config, change func(*slack.Config)) *workspace {
	t.Helper()
	s, err := slackfake.Start(fake)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := &workspace{Slack: s, ops: s.AddChannel(slackfake.Channel{Name: "ops", Private: true}), alice: s.AddUser("alice")}
	s.Join(w.ops, s.BotUser(), w.alice)
	w.config = slack.Config{
		Account: account, BotToken: s.BotToken(), SigningSecret: s.SigningSecret(), APIURL: s.APIURL(),
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	if change != nil {
		change(&w.config)
	}
	w.reopen(t)
	return w
}

// reopen makes a new channel, as after a restart.
func (w *workspace) reopen(t testing.TB) {
	t.Helper()
	var err error
	if w.channel, err = slack.New(w.config); err != nil {
		t.Fatal(err)
	}
}

// send sends a message and fails the test if that fails.
func (w *workspace) send(t testing.TB, m channel.Message) string {
	t.Helper()
	ref, err := w.channel.Send(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// card is an open request with a fact and all actions.
func card(id string) channel.Card {
	now := time.Now()
	return channel.Card{
		Request: id, Revision: 3, Digest: "digest-" + id, Kind: "approval", Action: "refund",
		Presentation: api.Presentation{
			Title: "refund: amount 120.00", Sentence: "bot wants to run refund: amount 120.00", Facts: []api.Fact{{Label: "amount", Value: "120.00"}, {Label: "order", Value: "17"}},
			Actions: []api.Action{
				{Name: "approve", Label: "Approve", Style: "primary", Answer: json.RawMessage(`{"verb":"approve"}`)},
				{Name: "edit", Label: "Edit…", Answer: json.RawMessage(`{"verb":"approve"}`), Form: json.RawMessage(`{}`), At: "args"},
				{Name: "reject", Label: "Reject…", Style: "danger", Answer: json.RawMessage(`{"verb":"reject"}`), Form: json.RawMessage(`{}`)},
				{Name: "escalate", Label: "Escalate", Detail: "page oncall:dba"}, {Name: "ask", Label: "Ask the agent…", Form: json.RawMessage(`{}`)},
			},
		},
		Environment: "prod", Rules: []string{"refunds"},
		Deciders: []string{"2 × finops"}, Progress: "1 of 2", Deadline: now.Add(90 * time.Minute), At: now, State: desk.StateOpen,
		Link: "https://fermata.example/requests/" + id,
	}
}

func closed(c channel.Card) channel.Card {
	c.State, c.Actions, c.Outcome, c.DecidedAt, c.Revision = "answered", nil, "approved by ann", time.Now(), c.Revision+1
	return c
}

// labels returns the labels of the buttons and menu items of blocks.
func labels(t testing.TB, blocks json.RawMessage) (all []string) {
	t.Helper()
	type text struct{ Text any }
	type element struct {
		Type    string
		Text    any
		URL     string
		Options []text
	}
	var list []struct{ Elements []element }
	if len(blocks) > 0 {
		if err := json.Unmarshal(blocks, &list); err != nil {
			t.Fatal(err)
		}
	}
	label := func(value any) string {
		m, _ := value.(map[string]any)
		s, _ := m["text"].(string)
		return s
	}
	for _, b := range list {
		for _, e := range b.Elements {
			switch e.Type {
			case "button":
				all = append(all, label(e.Text))
			case "overflow":
				for _, o := range e.Options {
					all = append(all, label(o.Text))
				}
			}
		}
	}
	return all
}

// only returns the only message of a Slack channel that is not in a thread.
func (w *workspace) only(t testing.TB, id string) slackfake.Message {
	t.Helper()
	var all []slackfake.Message
	for _, m := range w.Messages(id) {
		if m.ThreadTS == "" {
			all = append(all, m)
		}
	}
	if len(all) != 1 {
		t.Fatalf("%d messages; want one", len(all))
	}
	return all[0]
}

func wantContains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in %s", part, text)
		}
	}
}

// markup returns the texts of all mrkdwn objects in blocks.
func markup(t testing.TB, blocks []byte) (all []string) {
	t.Helper()
	if len(blocks) == 0 {
		return nil
	}
	var value any
	if err := json.Unmarshal(blocks, &value); err != nil {
		t.Fatal(err)
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			if v["type"] == "mrkdwn" {
				text, _ := v["text"].(string)
				all = append(all, text)
			}
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(value)
	return all
}
