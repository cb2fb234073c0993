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
	messageTemplate = "message@1"
	modalTemplate   = "modal@1"
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
		if b.Type != "context" {
			continue
		}
		for _, raw := range b.Elements {
			var element textObject
			if json.Unmarshal(raw, &element) == nil {
				texts = append(texts, element.Text)
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
	if in.Act == actDeny || in.Act == actEdit || in.Act == actRespond {
		template = modalTemplate
	}
	r := api.NewRendering(in.Screen, Kind, template)
	_, err := person.Act(ctx, in.Shown.Request, client.ActionView, api.RequestAction{Shown: in.Shown.Digest, Rendering: &r})
	return r.Hash, err
}
