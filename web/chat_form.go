package web

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/schemaform"
)

// cardForm returns the open questions as one form, with a member for each question.
func cardForm(cards []card) *schemaform.Field {
	var members, values schemaform.Members
	var names []string
	for _, c := range cards {
		schema, value := cardSchema(c)
		names = append(names, c.ID)
		members = append(members, schemaform.Member{Name: c.ID, Value: schema})
		if value != nil {
			values = append(values, schemaform.Member{Name: c.ID, Value: value})
		}
	}
	required, _ := json.Marshal(names) // strings
	schema := schemaform.Members{{Name: "type", Value: schemaform.String("object")}, {Name: "properties", Value: members.JSON()}, {Name: "required", Value: required}}
	return schemaform.New(schema.JSON(), values.JSON())
}

// cardSchema returns the schema of the answer to one question, and what its form begins with.
func cardSchema(c card) (schema, value json.RawMessage) {
	p, title := c.Prompt, schemaform.Member{Name: "title", Value: schemaform.String(c.Text)}
	switch {
	case len(p.Fields) > 0:
		var properties, values schemaform.Members
		required := []string{}
		for _, f := range p.Fields {
			properties = append(properties, schemaform.Member{Name: f.Name, Value: fieldSchema(f)})
			if !f.Optional {
				required = append(required, f.Name)
			}
			if v := p.Values[f.Name]; v != "" {
				values = append(values, schemaform.Member{Name: f.Name, Value: schemaform.String(v)})
			}
		}
		names, _ := json.Marshal(required) // strings
		return schemaform.Members{
			{Name: "type", Value: schemaform.String("object")}, title,
			{Name: "properties", Value: properties.JSON()}, {Name: "required", Value: names},
		}.JSON(), values.JSON()
	case len(p.Choices) > 0:
		var options []json.RawMessage
		for _, choice := range p.Choices {
			options = append(options, schemaform.Members{{Name: "const", Value: schemaform.String(choice.ID)}, {Name: "title", Value: schemaform.String(choice.Label)}}.JSON())
		}
		list, _ := json.Marshal(options) // JSON
		return schemaform.Members{title, {Name: "oneOf", Value: list}}.JSON(), nil
	}
	return schemaform.Members{{Name: "type", Value: schemaform.String("string")}, title}.JSON(), nil
}

func fieldSchema(f dialog.Field) json.RawMessage {
	schema := schemaform.Members{{Name: "type", Value: schemaform.String("string")}, {Name: "title", Value: schemaform.String(f.Label)}}
	switch f.Type {
	case dialog.DateField:
		schema = append(schema, schemaform.Member{Name: "format", Value: schemaform.String("date")})
	case dialog.ChoiceField:
		choices, _ := json.Marshal(f.Choices) // strings
		schema = append(schema, schemaform.Member{Name: "enum", Value: choices})
	case dialog.TextField, dialog.NumberField: // the handler checks numbers, as it does in other channels
	}
	return schema.JSON()
}

// readCardForm returns the answers of a form. Questions without an answer stay open.
func readCardForm(cards []card, sent url.Values) map[string]api.Reply {
	form := cardForm(cards)
	fillForm(form, sent)
	replies := make(map[string]api.Reply)
	for _, c := range cards {
		f := form.Field(c.ID)
		if f == nil {
			continue
		}
		switch {
		case len(c.Prompt.Fields) > 0:
			fields := make(map[string]string)
			for _, field := range c.Prompt.Fields {
				if text := textOf(f.Field(field.Name)); text != "" {
					fields[field.Name] = text
				}
			}
			if len(fields) > 0 {
				replies[c.ID] = api.Reply{Fields: fields}
			}
		case len(c.Prompt.Choices) > 0:
			if choice := textOf(f); choice != "" {
				replies[c.ID] = api.Reply{Choice: choice}
			}
		default:
			if text := textOf(f); text != "" {
				replies[c.ID] = api.Reply{Text: text}
			}
		}
	}
	return replies
}

// escapeAll abandons the tasks of all questions.
func escapeAll(cards []card) map[string]api.Reply {
	replies := make(map[string]api.Reply)
	for _, c := range cards {
		replies[c.ID] = api.Reply{Choice: dialog.ChoiceEscape}
	}
	return replies
}

// textOf returns the text or the selected option of a field; "" if it is empty.
func textOf(f *schemaform.Field) string {
	if f == nil {
		return ""
	}
	if f.Kind == schemaform.Choice {
		var text string
		if f.Selected < 0 || f.Selected >= len(f.Options) || json.Unmarshal(f.Options[f.Selected].Value, &text) != nil {
			return ""
		}
		return text
	}
	return strings.TrimSpace(f.Text)
}
