package webpush

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/ident"
)

// The limits of a notification. Browsers show less.
const (
	maxTitle = 400  // bytes
	maxBody  = 1200 // bytes
	maxFact  = 200  // bytes
)

// payload is what the service worker shows.
type payload struct {
	Title string `json:"title"`
	Body  string `json:"body,omitempty"`
	// Tag is the same for all notifications of a request: a later one replaces the earlier.
	Tag string `json:"tag"`
	// Path is the page that a click opens.
	Path string `json:"path"`
	// Quiet shows the notification without a sound.
	Quiet bool `json:"quiet,omitempty"`
}

// newPayload describes a request. Without details it has no facts.
func newPayload(m channel.Message, details bool) ([]byte, error) {
	c := m.Card
	p := payload{Title: c.Title, Tag: topic(m), Path: "/requests/" + url.PathEscape(c.Request)}
	var lines []string
	switch {
	case !c.Open():
		p.Quiet = m.Kind != desk.NoticeRequester
		p.Title = oneLine(c.Outcome) + ": " + c.Title
	case m.Kind == desk.NoticeRemind:
		p.Title = "Reminder: " + c.Title
	case m.Kind == desk.NoticePage:
		p.Title = "Urgent: " + c.Title
	}
	if details {
		lines = factLines(c)
	}
	p.Title = clip(oneLine(p.Title), maxTitle)
	p.Body = clip(strings.Join(lines, "\n"), maxBody)
	return p.encode()
}

// encode shortens the body until the message fits into a record: escaped characters are longer.
func (p payload) encode() ([]byte, error) {
	for {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(p); err != nil {
			return nil, err
		}
		text := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
		if len(text) <= maxPlain || p.Body == "" {
			return text, nil
		}
		p.Body = clip(p.Body, len(p.Body)/2)
	}
}

// factLines has one fact per line, so that a value cannot imitate another fact.
func factLines(c channel.Card) (lines []string) {
	if c.Action != "" {
		lines = append(lines, "action: "+oneLine(c.Action))
	}
	if c.Environment != "" {
		lines = append(lines, "environment: "+oneLine(c.Environment))
	}
	for _, f := range c.Facts {
		value := oneLine(f.Value)
		if f.Flagged {
			value += " (contains unusual characters, check it in the inbox)"
		}
		if f.Was != "" {
			value += " (was " + oneLine(f.Was) + ")"
		}
		lines = append(lines, clip(oneLine(f.Label)+": "+value, maxFact))
	}
	return lines
}

// topic identifies the request at the push service and in the browser. The push service keeps only
// the last message with the same topic. It has at most 32 characters of base64url.
func topic(m channel.Message) string {
	id := ident.Derive("t", m.Account, m.Card.Request)
	return id[:min(len(id), 32)]
}

// urgency tells the push service whether it may wait, such as for a phone that is charging.
func urgency(m channel.Message) string {
	switch {
	case !m.Card.Open():
		return "low"
	case m.Kind == desk.NoticePage, m.Card.Risk >= 2:
		return "high"
	}
	return "normal"
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// clip shortens a text to a number of bytes.
func clip(text string, most int) string {
	const dots = "…"
	if len(text) <= most {
		return text
	}
	cut := max(0, most-len(dots))
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	if cut == 0 {
		return ""
	}
	return text[:cut] + dots
}
