package requests

import (
	"encoding/json"
)

// textAt returns the text at a path of member names; "" if there is none.
func textAt(data json.RawMessage, names ...string) (text string) {
	_ = json.Unmarshal(valueAt(data, names), &text) // "" if it is not a text
	return text
}

// listAt returns the texts in the list at a path of member names.
func listAt(data json.RawMessage, names ...string) (texts []string) {
	var items []json.RawMessage
	if json.Unmarshal(valueAt(data, names), &items) != nil {
		return nil
	}
	for _, item := range items {
		var text string
		if json.Unmarshal(item, &text) == nil {
			texts = append(texts, text)
		}
	}
	return texts
}

func valueAt(data json.RawMessage, names []string) json.RawMessage {
	for _, name := range names {
		var members map[string]json.RawMessage
		if json.Unmarshal(data, &members) != nil {
			return nil
		}
		data = members[name]
	}
	return data
}

// questionFields are the members of a question that hold its text, the best first.
var questionFields = []string{"question", "message", "title", "summary", "reason", "description", "text"}

// firstText returns the text of a question: a text, or the first member that usually holds one.
func firstText(data json.RawMessage) string {
	if text := textAt(data); text != "" {
		return text
	}
	for _, name := range questionFields {
		if text := textAt(data, name); text != "" {
			return text
		}
	}
	return ""
}
