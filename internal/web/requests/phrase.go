package requests

import (
	"encoding/json"
	"html/template"
	"strings"

	"github.com/fermata-go/fermata/internal/actiontext"
	"github.com/fermata-go/fermata/internal/safehtml"
	"github.com/fermata-go/fermata/internal/web/texts"
)

// headline words the action of a request as a line of its own.
func headline(texts texts.Translation, d ViewData) template.HTML {
	return phraseHTML(actiontext.Capitalized(phraseOf(texts, d)))
}

// phraseOf words the action of a request inside a sentence: "refund 24.90 EUR on order 17".
func phraseOf(texts texts.Translation, d ViewData) []actiontext.Part {
	action := actiontext.Action{Name: d.Kind, Args: d.Data, Masked: d.Masked, Question: true}
	switch {
	case d.Approval != nil:
		action = actiontext.Action{Name: d.Approval.Action, Args: d.currentArgs(), Schema: d.Approval.ArgsSchema, Masked: d.Masked}
	case d.Doubt != nil:
		action = actiontext.Action{Name: d.Doubt.Action, Args: d.Doubt.Args, Masked: d.Masked}
	}
	action.Language = texts.Text("language.code")
	return actiontext.Of(action, func(word string) string { return texts.Text("phrase." + word) })
}

func phraseHTML(parts []actiontext.Part) template.HTML {
	var b strings.Builder
	for _, p := range parts {
		text := string(safehtml.Line(p.Text))
		if p.Value {
			text = "<b>" + text + "</b>"
		}
		b.WriteString(text)
	}
	return template.HTML(b.String()) // escaped above
}

// currentArgs returns the arguments that a plain approval approves.
func (d ViewData) currentArgs() json.RawMessage {
	if d.Activity != nil && d.Activity.Edit != nil {
		return d.Activity.Edit.Args
	}
	if d.Approval == nil {
		return nil
	}
	return d.Approval.Args
}
