package requests

import (
	"encoding/json"

	"github.com/fermata-go/fermata/internal/presentation"
	"github.com/fermata-go/fermata/internal/web/texts"
)

// answerFormSchema returns the schema of the form of an answer. The fields about an effect in doubt
// get words instead of their names.
func (m *Model) answerFormSchema(texts texts.Translation) json.RawMessage {
	if m.Doubt != nil {
		return m.doubtFormSchema(texts)
	}
	return presentation.FormSchema(m.Kind, m.Data, m.AnswerSchema)
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
