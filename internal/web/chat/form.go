package chat

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/schemaform"
	"github.com/fermata-go/fermata/internal/web/fields"
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
	case len(p.Choices) > 0 && (len(c.Question.Options) > 0 || c.Question.Kind != dialog.Clarification || c.Status != dialog.Asked):
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

// readAnswers returns the answers of a form, by question. It reads only what the browser sent,
// which has ids instead of positions: a repeated form is the same message, whatever is asked then.
// Questions without an answer stay open.
func readAnswers(sent url.Values) map[string]api.Reply {
	replies := make(map[string]api.Reply)
	for name := range sent {
		kind, at, _ := strings.Cut(name, "/")
		text := sent.Get(name)
		if kind == fields.TextPrefix {
			text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) // browsers send CRLF
		}
		if at == "" || text == "" || kind != fields.TextPrefix && kind != fields.SelectPrefix {
			continue
		}
		question, field, inForm := strings.Cut(at, "/")
		question, field = unescapePointer.Replace(question), unescapePointer.Replace(field)
		reply := replies[question]
		switch {
		case inForm:
			if reply.Fields == nil {
				reply.Fields = make(map[string]string)
			}
			reply.Fields[field] = text
		case kind == fields.SelectPrefix:
			reply.Choice = text
		default:
			reply.Text = text
		}
		replies[question] = reply
	}
	return replies
}

// unescapePointer decodes a part of a JSON pointer.
var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

// escapeAll abandons the tasks of the questions that a form showed.
func escapeAll(shown []string) map[string]api.Reply {
	replies := make(map[string]api.Reply)
	for _, s := range shown {
		id, _, _ := strings.Cut(s, ":")
		replies[id] = api.Reply{Choice: dialog.ChoiceEscape}
	}
	return replies
}

// fits reports whether the questions that a message answers are still those that its form showed.
func (d *chatData) fits(message api.SendMessage, shown []string) bool {
	current := func(id string) bool {
		return slices.ContainsFunc(d.Cards, func(c card) bool { return c.ID == id && slices.Contains(shown, c.Shown) }) ||
			slices.ContainsFunc(d.Bubbles, func(b bubble) bool {
				return b.Correct != nil && b.Correct.Question == id && slices.Contains(shown, b.Correct.Shown)
			})
	}
	for id := range message.Replies {
		if !current(id) {
			return false
		}
	}
	return message.Question == "" || current(message.Question)
}

// keepAnswers fills in the answers that were not sent: a text if its question is open, an option if
// the question is still the one that was shown. Other texts become the text of the message field.
func (d *chatData) keepAnswers(sent url.Values) {
	replies := readAnswers(sent)
	var rest []string
	for _, id := range slices.Sorted(maps.Keys(replies)) {
		var f *schemaform.Field
		current := false
		if at := slices.IndexFunc(d.Cards, func(c card) bool { return c.ID == id }); at >= 0 && d.Form != nil {
			f, current = d.Form.Field.Field(id), slices.Contains(sent["shown"], d.Cards[at].Shown)
		}
		reply := replies[id]
		if current && reply.Choice != "" {
			selectOption(f, reply.Choice)
		}
		if reply.Text != "" && !fillText(f, reply.Text) {
			rest = append(rest, reply.Text)
		}
		for _, name := range slices.Sorted(maps.Keys(reply.Fields)) {
			var member *schemaform.Field
			if f != nil {
				member = f.Field(name)
			}
			switch text := reply.Fields[name]; {
			case sent.Has(fields.SelectPrefix + "/" + id + "/" + name):
				if current {
					selectOption(member, text)
				}
			case !fillText(member, text):
				rest = append(rest, text)
			}
		}
	}
	d.Text = strings.Join(append(rest, sent["text"]...), "\n")
}

func fillText(f *schemaform.Field, text string) bool {
	if f == nil || f.Kind != schemaform.Text {
		return false
	}
	f.Text = text
	return true
}

func selectOption(f *schemaform.Field, id string) {
	if f == nil {
		return
	}
	if at := slices.IndexFunc(f.Options, func(o schemaform.Option) bool { return fields.StringOf(o.Value) == id }); at >= 0 {
		f.Selected = at
	}
}
