package requests

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/web/texts"
)

// evidence is an item of the section Evidence.
type evidence struct {
	Title, Source, Text string
	// Value is a JSON value, Before its earlier value.
	Value, Before json.RawMessage
	// URL is an https link; "" if there is none. Host is its host.
	URL, Host string
	// Digest identifies a text.
	Digest string
}

// readEvidence lists what an approval is based on: the state of the target, why an earlier approval
// is void, and what the program added.
func (m *Model) readEvidence(texts texts.Translation) {
	if m.Approval == nil {
		return
	}
	if m.Approval.Voided != "" {
		m.Evidence = append(m.Evidence, evidence{Title: texts.Text("evidence.voided"), Text: m.Approval.Voided})
	}
	if m.Approval.Target != nil {
		m.Evidence = append(m.Evidence, evidence{Title: texts.Text("evidence.target"), Source: texts.Text("evidence.target.source"), Value: m.Approval.Target, Before: m.Approval.PreviousTarget})
	}
	if m.Activity != nil && m.Activity.Edit != nil { // the rest describes the requested arguments
		return
	}
	for _, e := range m.Approval.Evidence {
		item := evidence{Title: e.Title, Source: e.Source, Text: e.Text}
		if e.Text != "" {
			item.Digest = strings.TrimPrefix(ident.TextHash(e.Text), "sha256:")
		}
		if u, err := url.Parse(e.URL); err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil {
			item.URL, item.Host = u.String(), u.Host
		}
		m.Evidence = append(m.Evidence, item)
	}
}

// Long reports whether the text is folded.
func (e evidence) Long() bool { return len(e.Text) > 600 }

// Size returns the number of characters of the text.
func (e evidence) Size() int { return len([]rune(e.Text)) }
