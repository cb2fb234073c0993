package requests

import (
	"encoding/json"

	"github.com/fermata-go/fermata/internal/web/texts"
)

// choiceOption is an option of a question of the kind choice.
type choiceOption struct {
	ID     string `json:"id"`
	Label  string `json:"label"`
	Detail string `json:"detail"`
}

// choicesOf returns the options of a question, in order.
func choicesOf(data json.RawMessage) []choiceOption {
	var question struct {
		Options []choiceOption `json:"options"`
	}
	if json.Unmarshal(data, &question) != nil {
		return nil
	}
	for _, o := range question.Options {
		if o.ID == "" {
			return nil
		}
	}
	return question.Options
}

// kindChoice is the kind of questions with options in their data.
const kindChoice = "choice"

// answerFormSchema returns the schema of the form of an answer. The schema of a choice does not
// know the options of one question: its only required field gets them. The fields about an effect
// in doubt get words instead of their names.
func (m *Model) answerFormSchema(texts texts.Translation) json.RawMessage {
	if m.Doubt != nil {
		return m.doubtFormSchema(texts)
	}
	options := choicesOf(m.Data)
	var schema map[string]json.RawMessage
	var fields map[string]map[string]json.RawMessage
	var required []string
	if m.Kind != kindChoice || len(options) == 0 || json.Unmarshal(m.AnswerSchema, &schema) != nil ||
		json.Unmarshal(schema["properties"], &fields) != nil || json.Unmarshal(schema["required"], &required) != nil || len(required) != 1 {
		return m.AnswerSchema
	}
	field := fields[required[0]]
	if string(field["type"]) != `"string"` || field["enum"] != nil || field["oneOf"] != nil {
		return m.AnswerSchema
	}
	type option struct {
		Const string `json:"const"`
		Title string `json:"title,omitempty"`
	}
	var list []option
	for _, o := range options {
		title := o.Label
		if o.Detail != "" {
			title += " – " + o.Detail
		}
		list = append(list, option{o.ID, title})
	}
	var err error
	if field["oneOf"], err = json.Marshal(list); err != nil {
		return m.AnswerSchema
	}
	if schema["properties"], err = json.Marshal(fields); err != nil {
		return m.AnswerSchema
	}
	changed, err := json.Marshal(schema)
	if err != nil {
		return m.AnswerSchema
	}
	return changed
}

// doubtFormSchema returns the schema of the answer to the question whether an effect happened, with
// titles for its fields.
func (m *Model) doubtFormSchema(texts texts.Translation) json.RawMessage {
	var schema map[string]json.RawMessage
	var fields map[string]any
	if json.Unmarshal(m.AnswerSchema, &schema) != nil || json.Unmarshal(schema["properties"], &fields) != nil {
		return m.AnswerSchema
	}
	type option struct {
		Const bool   `json:"const"`
		Title string `json:"title"`
	}
	for name, field := range fields {
		switch name {
		case "happened":
			fields[name] = map[string]any{"title": texts.Text("doubt.happened"), "oneOf": []option{{true, texts.Text("doubt.yes")}, {false, texts.Text("doubt.no")}}}
		case "receipt", "reason":
			schema, ok := field.(map[string]any)
			if !ok { // any value
				schema = make(map[string]any)
			}
			schema["title"] = texts.Text("doubt." + name)
			fields[name] = schema
		}
	}
	var err error
	if schema["properties"], err = json.Marshal(fields); err != nil {
		return m.AnswerSchema
	}
	changed, err := json.Marshal(schema)
	if err != nil {
		return m.AnswerSchema
	}
	return changed
}
