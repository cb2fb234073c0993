// Package teams posts requests to Microsoft Teams, through the webhook of a workflow. The adaptive
// card shows the facts and links to the inbox. People decide in the inbox, because a workflow
// webhook cannot tell who clicked. A posted card cannot be replaced, so a second card tells the
// outcome.
package teams

import (
	"context"
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
	maxFacts = 20
	maxText  = 400 // characters of a text
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
	message := envelope{Type: "message", Attachments: []attachment{{ContentType: "application/vnd.microsoft.card.adaptive", Content: adaptiveCard(m.Card)}}}
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

func adaptiveCard(c channel.Card) card {
	out := card{Schema: "http://adaptivecards.io/schemas/adaptive-card.json", Type: "AdaptiveCard", Version: "1.4"}
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
	for _, quote := range c.Said {
		text(quote.By+" wrote: "+quote.Text, true)
	}
	if c.Open() {
		var rest []string
		if c.Progress != "" {
			rest = append(rest, c.Progress)
		}
		if len(c.Rules) > 0 {
			rest = append(rest, "required by "+strings.Join(c.Rules, ", "))
		}
		if !c.Deadline.IsZero() {
			rest = append(rest, "decide before "+c.Deadline.UTC().Format(time.RFC1123))
		}
		text(strings.Join(rest, " · "), true)
	}
	if c.Link != "" {
		out.Actions = []action{{Type: "Action.OpenUrl", Title: "Open in the inbox", URL: c.Link}}
	}
	return out
}

// markdown are the characters with a meaning in the text of an adaptive card. Links and emphasis
// work there, and nothing that an agent wrote may become a link.
var markdown = strings.NewReplacer(
	`\`, `\\`, "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "(", `\(`, ")", `\)`, "`", "\\`", "#", `\#`, "~", `\~`, "<", "&lt;", ">", "&gt;", "|", `\|`, "!", `\!`,
	"{{", "{ {", "://", ":\u200b//",
)

// plain returns a text that the card shows as it is.
func plain(text string) string {
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText]) + "…"
	}
	return markdown.Replace(text)
}
