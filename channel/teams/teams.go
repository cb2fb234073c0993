// Package teams posts requests to Microsoft Teams, through the webhook of a workflow. The adaptive
// card shows the request and links to the inbox. People decide in the inbox, because a workflow
// webhook cannot tell who clicked. The webhook returns no id of the message, so a posted card
// cannot be replaced: there is one card for a request, a short one for a reminder, and one for the
// outcome.
package teams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/outbound"
	"github.com/fermata-go/fermata/internal/post"
)

// The limits of a message: Teams rejects messages above 28 KB.
const (
	maxCard     = 26 << 10 // bytes of the card, which is in an envelope
	maxFacts    = 20
	maxEvidence = 5
	maxText     = 400 // characters of a text
)

// Config configures the channel.
type Config struct {
	// Webhooks are the URLs of workflows by the name in a target: ops for teams:ops. A URL is a
	// secret: who knows it can post.
	Webhooks map[string]string
	// Allow are hosts that may be called although they are not public; see
	// [outbound.Config].
	Allow []string
}

// Channel posts to Microsoft Teams. Its targets are teams:NAME.
type Channel struct {
	config Config
	client *outbound.Client
}

// New returns a channel.
func New(config Config) (*Channel, error) {
	if len(config.Webhooks) == 0 {
		return nil, errors.New("teams: no webhooks")
	}
	client, err := outbound.NewClient(outbound.Config{Allow: config.Allow})
	if err != nil {
		return nil, fmt.Errorf("teams: %w", err)
	}
	for name, to := range config.Webhooks {
		if _, err := client.ParseURL(to); err != nil {
			return nil, fmt.Errorf("teams: the URL of teams:%s is not allowed: %w", name, err)
		}
	}
	return &Channel{config: config, client: client}, nil
}

// Kind returns "teams".
func (c *Channel) Kind() string { return "teams" }

// CheckAddress reports whether a name has a webhook.
func (c *Channel) CheckAddress(to string) error {
	if c.config.Webhooks[to] == "" {
		return fmt.Errorf("teams:%s has no webhook", to)
	}
	return nil
}

// Send posts a card. An update is posted only when the request has ended: every other change would
// add a card to the channel.
func (c *Channel) Send(ctx context.Context, m channel.Message) (string, error) {
	to, ok := c.config.Webhooks[m.To]
	if !ok {
		return "", &channel.Error{Code: "unknown_target", Permanent: true, Err: fmt.Errorf("teams:%s has no webhook", m.To)}
	}
	if m.Ref == postedOutcome || m.Kind == desk.NoticeRerender && m.Card.Open() {
		return m.Ref, nil
	}
	ref := posted
	if !m.Card.Open() {
		ref = postedOutcome
	}
	content := fittingCard(m.Card)
	if m.Again {
		content, ref = reminderCard(m.Card), "" // the first card gets the outcome
	}
	message := envelope{Type: "message", Attachments: []attachment{{ContentType: "application/vnd.microsoft.card.adaptive", Content: content}}}
	return ref, post.JSON(ctx, c.client, to, nil, message)
}

var _ channel.Tester = (*Channel)(nil)

// Test posts a card that says that it is a test.
func (c *Channel) Test(ctx context.Context, to string) (channel.TestResult, error) {
	_, err := c.Send(ctx, channel.TestMessage(to, time.Now()))
	return channel.TestResult{Sent: "the workflow teams:" + to + " accepted the card"}, post.Explain(err)
}

// The references of a delivery say what was posted.
const (
	posted        = "posted"
	postedOutcome = "outcome"
)

type envelope struct {
	Type        string       `json:"type"`
	Attachments []attachment `json:"attachments"`
}

type attachment struct {
	ContentType string `json:"contentType"`
	Content     card   `json:"content"`
}

// card is an adaptive card of version 1.4, the newest that workflows accept everywhere.
type card struct {
	Schema  string    `json:"$schema"`
	Type    string    `json:"type"`
	Version string    `json:"version"`
	Body    []element `json:"body"`
	Actions []action  `json:"actions,omitempty"`
}

type element struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Weight   string `json:"weight,omitempty"`
	Size     string `json:"size,omitempty"`
	Wrap     bool   `json:"wrap,omitempty"`
	IsSubtle bool   `json:"isSubtle,omitempty"`
	Facts    []fact `json:"facts,omitempty"`
}

type fact struct {
	Title string `json:"title"`
	Value string `json:"value"`
}

type action struct {
	Type  string `json:"type"`
	Title string `json:"title"`
	URL   string `json:"url"`
}

// fittingCard shortens the texts of a card until Teams accepts it.
func fittingCard(c channel.Card) card {
	for limit := maxText; ; limit /= 2 {
		out := adaptiveCard(c, limit)
		if text, err := json.Marshal(out); err != nil || len(text) < maxCard || limit < 50 {
			return out
		}
	}
}

func adaptiveCard(c channel.Card, limit int) card {
	out := newCard()
	plain := func(text string) string { return plain(text, limit) }
	text := func(text string, subtle bool) {
		if text != "" {
			out.Body = append(out.Body, element{Type: "TextBlock", Text: plain(text), Wrap: true, IsSubtle: subtle})
		}
	}
	title := c.Title
	if !c.Open() {
		title = c.Outcome + ": " + title
	}
	out.Body = append(out.Body, element{Type: "TextBlock", Text: plain(title), Weight: "Bolder", Size: "Medium", Wrap: true})
	text(c.Sentence, false)
	var facts []fact
	for _, f := range c.Facts {
		value := f.Value
		if f.Flagged {
			value += " (contains unusual characters, check it in the inbox)"
		}
		if f.Was != "" {
			value += " (was " + f.Was + ")"
		}
		facts = append(facts, fact{Title: plain(f.Label), Value: plain(value)})
	}
	if len(facts) > maxFacts {
		left := len(facts) - maxFacts
		facts = append(facts[:maxFacts], fact{Title: "…", Value: fmt.Sprintf("%d more in the inbox", left)})
	}
	if len(facts) > 0 {
		out.Body = append(out.Body, element{Type: "FactSet", Facts: facts})
	}
	for _, e := range c.Evidence[:min(len(c.Evidence), maxEvidence)] {
		line := e.Title + ": " + e.Text
		if e.Source != "" {
			line = e.Title + ", from " + e.Source + ": " + e.Text
		}
		if e.Was != "" {
			line += " (before: " + e.Was + ")"
		}
		text(line, false)
	}
	if left := len(c.Evidence) - maxEvidence; left > 0 {
		text(fmt.Sprintf("%d more evidence in the inbox", left), true)
	}
	for _, quote := range c.Said {
		text(quote.By+" wrote, not verified: "+quote.Text, true)
	}
	if c.Open() {
		var rest []string
		if c.Risk > 0 {
			rest = append(rest, "risk: "+[...]string{"low", "medium", "high"}[min(c.Risk, 3)-1])
		}
		if c.Progress != "" {
			rest = append(rest, c.Progress)
		}
		if len(c.Rules) > 0 {
			rest = append(rest, "required by "+strings.Join(c.Rules, ", "))
		}
		if !c.Deadline.IsZero() {
			rest = append(rest, deadline(c))
		}
		text(strings.Join(rest, " · "), true)
	}
	out.addLink(c)
	return out
}

// reminderCard says that a request still waits. Its first card has the rest.
func reminderCard(c channel.Card) card {
	out := newCard()
	text := "Reminder: " + c.Title
	if !c.Deadline.IsZero() {
		text += ", " + deadline(c)
	}
	out.Body = []element{{Type: "TextBlock", Text: plain(text, maxText), Wrap: true}}
	out.addLink(c)
	return out
}

// deadline words the deadline and the time left.
func deadline(c channel.Card) string {
	text := "decide before " + c.Deadline.UTC().Format(time.RFC1123)
	left := c.Deadline.Sub(c.At).Round(time.Minute)
	switch {
	case left >= 48*time.Hour:
		text += fmt.Sprintf(" (%d days left)", int(left.Hours())/24)
	case left >= time.Hour:
		text += fmt.Sprintf(" (%d h %d min left)", int(left.Hours()), int(left.Minutes())%60)
	case left >= 0:
		text += fmt.Sprintf(" (%d min left)", int(left.Minutes()))
	}
	return text
}

// addLink adds the only button.
func (out *card) addLink(c channel.Card) {
	if c.Link == "" {
		return
	}
	title := "Open in the inbox"
	if c.Open() {
		title = "Sign in and decide"
	}
	out.Actions = []action{{Type: "Action.OpenUrl", Title: title, URL: c.Link}}
}

func newCard() card {
	return card{Schema: "http://adaptivecards.io/schemas/adaptive-card.json", Type: "AdaptiveCard", Version: "1.4"}
}

// markdown are the characters with a meaning in the text of an adaptive card. Links and emphasis
// work there, and nothing that an agent wrote may become a link.
var markdown = strings.NewReplacer(
	`\`, `\\`, "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "(", `\(`, ")", `\)`, "`", "\\`", "#", `\#`, "~", `\~`, "<", "&lt;", ">", "&gt;", "|", `\|`, "!", `\!`,
	"{{", "{ {", "://", ":\u200b//",
)

// plain returns a text that the card shows as it is.
func plain(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		text = string(runes[:limit]) + "…"
	}
	return markdown.Replace(text)
}
