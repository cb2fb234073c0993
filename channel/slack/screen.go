package slack

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

// screen is the message or modal of a click, as Slack sends it back: what the person saw.
type screen struct {
	Title  textObject    `json:"title"`
	Blocks []screenBlock `json:"blocks"`
}

type textObject struct {
	Text string `json:"text"`
}

// textElement is a text of a context block, or a part of a rich text.
type textElement struct {
	textObject
	Elements []textElement `json:"elements"`
}

func (e textElement) all() []string {
	texts := []string{e.Text}
	for _, part := range e.Elements {
		texts = append(texts, part.all()...)
	}
	return texts
}

type screenBlock struct {
	Type     string            `json:"type"`
	Text     textObject        `json:"text"`
	Fields   []textObject      `json:"fields"`
	Label    textObject        `json:"label"`
	Hint     textObject        `json:"hint"`
	Elements []json.RawMessage `json:"elements"`
	Element  struct {
		Initial string `json:"initial_value"`
		Option  struct {
			Text textObject `json:"text"`
		} `json:"initial_option"`
	} `json:"element"`
}

// The versions of the texts below. Count up if the same blocks give another text.
const (
	messageTemplate = "message@2"
	modalTemplate   = "modal@2"
)

// text returns the texts of the blocks, one per line, without buttons.
func (s screen) text() string {
	texts := []string{s.Title.Text}
	for _, b := range s.Blocks {
		texts = append(texts, b.Text.Text)
		for _, f := range b.Fields {
			texts = append(texts, f.Text)
		}
		texts = append(texts, b.Label.Text, b.Hint.Text, b.Element.Initial, b.Element.Option.Text.Text)
		if b.Type == "actions" {
			continue
		}
		for _, raw := range b.Elements {
			var element textElement
			if json.Unmarshal(raw, &element) == nil {
				texts = append(texts, element.all()...)
			}
		}
	}
	var lines []string
	for _, text := range texts {
		if strings.TrimSpace(text) != "" {
			lines = append(lines, strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(text))
		}
	}
	return strings.Join(lines, "\n")
}

// recordScreen records what the message or modal of a click showed, and returns its hash; "" if
// Slack did not send it.
func recordScreen(ctx context.Context, person *client.Client, in *click) (string, error) {
	if in.Screen == "" || in.Shown.Digest == "" {
		return "", nil
	}
	template := messageTemplate
	if in.Shown.Form {
		template = modalTemplate
	}
	r := api.NewRendering(in.Screen, Kind, template)
	_, err := person.Act(ctx, in.Shown.Request, client.ActionView, api.RequestAction{Shown: in.Shown.Digest, Rendering: &r})
	return r.Hash, err
}
