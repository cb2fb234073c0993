package email

import (
	"bytes"
	_ "embed"
	htmltemplate "html/template"
	"strings"
	texttemplate "text/template"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
)

//go:embed message.txt
var textSource string

//go:embed message.html
var htmlSource string

var (
	textTemplate = texttemplate.Must(texttemplate.New("text").Funcs(texttemplate.FuncMap{"indent": indent, "continued": continued, "when": when}).Parse(textSource))
	htmlTemplate = htmltemplate.Must(htmltemplate.New("html").Funcs(htmltemplate.FuncMap{"when": when}).Parse(htmlSource))
)

const (
	maxSubject = 120
	maxValue   = 2000 // characters of a fact, an evidence or a quoted text
)

// content is what the templates show.
type content struct {
	channel.Card
	Subject string
	// Heading says why the message was sent.
	Heading string
	// RiskName is "" without a rating.
	RiskName string
	// Choices are the labels of the actions. SignIn says that a link does not decide.
	Choices string
	SignIn  bool
	// Page is the page that asks for a confirmation, Settings that of the person.
	Page, Settings string
}

func newContent(m channel.Message, page, base string) content {
	c := content{
		Card: m.Card, Page: page, Settings: strings.TrimSuffix(base, "/") + "/me", RiskName: riskName(m.Card.Risk),
		SignIn: m.Card.Open() && len(m.Card.Actions) > 0 && needsSignIn(m.Card.Risk, m.Card.MinAuth),
	}
	var labels []string
	for _, a := range m.Card.Actions {
		labels = append(labels, a.Label)
	}
	c.Choices = strings.Join(labels, " · ")
	c.Facts = make([]api.Fact, len(m.Card.Facts))
	for i, f := range m.Card.Facts {
		f.Value, f.Was = clip(f.Value, maxValue), clip(f.Was, maxValue)
		c.Facts[i] = f
	}
	c.Evidence = make([]api.Evidence, len(m.Card.Evidence))
	for i, e := range m.Card.Evidence {
		e.Text, e.Was = clip(e.Text, maxValue), clip(e.Was, maxValue)
		c.Evidence[i] = e
	}
	c.Said = make([]api.Quote, len(m.Card.Said))
	for i, q := range m.Card.Said {
		q.Text = clip(q.Text, maxValue)
		c.Said[i] = q
	}
	prefix := "Decision needed: "
	c.Heading = "Your decision is needed"
	switch {
	case m.Kind == channel.NoticeTest:
		prefix, c.Heading = "", "This is a test"
	case !m.Card.Open():
		prefix, c.Heading = oneLine(m.Card.Outcome)+": ", "This request is closed"
	case m.Kind == desk.NoticeRemind:
		prefix, c.Heading = "Reminder: ", "Your decision is still needed"
	}
	c.Subject = clip(oneLine(prefix+m.Card.Title), maxSubject)
	return c
}

func (c content) render() (text, html string, err error) {
	var a, b bytes.Buffer
	if err := textTemplate.Execute(&a, c); err != nil {
		return "", "", err
	}
	err = htmlTemplate.Execute(&b, c)
	return a.String(), b.String(), err
}

// riskName returns a rating in words; "" for none.
func riskName(risk int) string { return [...]string{"", "low", "medium", "high"}[min(max(risk, 0), 3)] }

// clip shortens a text to a number of characters.
func clip(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// indent marks each line of a text that someone else wrote.
func indent(text string) string {
	return "  | " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  | ")
}

// continued marks each further line of a value: otherwise it could look like a part of the message.
func continued(text string) string { return strings.ReplaceAll(text, "\n", "\n    | ") }

func when(t time.Time) string { return t.UTC().Format("Mon 2 Jan 2006 15:04 MST") }
