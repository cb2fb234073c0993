package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// field is one argument of a tool.
type field struct {
	name  string
	value json.RawMessage
}

// fieldsOf returns the fields of a JSON object in their order. Any other value is one field without
// a name.
func fieldsOf(object json.RawMessage) []field {
	whole := []field{{value: object}}
	decoder := json.NewDecoder(bytes.NewReader(object))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return whole
	}
	var fields []field
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return whole
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return whole
		}
		fields = append(fields, field{fmt.Sprint(name), value})
	}
	return fields
}

// text returns the value without JSON quotes.
func (f field) text() string {
	var text string
	if json.Unmarshal(f.value, &text) == nil {
		return text
	}
	return string(f.value)
}

// rows shows arguments.
func (d *Dialogue) rows(label string, args json.RawMessage) {
	var all []string
	for _, f := range fieldsOf(args) {
		text := f.text()
		switch {
		case f.name == "":
		case strings.Contains(text, "\n"):
			text = f.name + ":\n  " + indented(text, "  ")
		default:
			text = f.name + ": " + text
		}
		all = append(all, text)
	}
	d.Row(label, strings.Join(all, "\n"))
}

// fieldSchema is the part of a JSON Schema that is needed to parse typed values.
type fieldSchema struct {
	Type       any                    `json:"type"`
	Properties map[string]fieldSchema `json:"properties"`
	Items      *fieldSchema           `json:"items"`
}

// hasType reports whether values may be of that type.
func (s fieldSchema) hasType(name string) bool {
	if list, ok := s.Type.([]any); ok {
		return slices.Contains(list, any(name))
	}
	return s.Type == name
}

// value parses the typed value of a field: text unchanged, a list of texts separated by commas,
// everything else as JSON.
func value(schema json.RawMessage, name, typed string) (json.RawMessage, error) {
	var whole fieldSchema
	if err := json.Unmarshal(schema, &whole); err != nil {
		return nil, fmt.Errorf("the schema of the arguments cannot be decoded: %w", err)
	}
	s, known := whole.Properties[name]
	switch {
	case !known:
		return nil, fmt.Errorf("there is no %q; the fields are %s", name, strings.Join(slices.Sorted(maps.Keys(whole.Properties)), ", "))
	case typed == "":
		return nil, fmt.Errorf("%s is empty", name)
	case s.hasType("string"):
		return json.Marshal(typed)
	case s.hasType("array") && s.Items != nil && s.Items.hasType("string") && !strings.HasPrefix(typed, "["):
		list := strings.Split(typed, ",")
		for i := range list {
			list[i] = strings.TrimSpace(list[i])
		}
		return json.Marshal(list)
	case !json.Valid([]byte(typed)):
		return nil, fmt.Errorf("%s: %q is not of type %v", name, typed, s.Type)
	}
	return json.RawMessage(typed), nil
}

// with returns the object with a field set, in its order.
func with(object json.RawMessage, name string, value json.RawMessage) (json.RawMessage, error) {
	fields := fieldsOf(object)
	if len(fields) == 1 && fields[0].name == "" {
		return nil, errors.New("this is not an object: answer with JSON")
	}
	set := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
	if set < 0 {
		set, fields = len(fields), append(fields, field{name: name})
	}
	fields[set].value = value
	members := make([]string, len(fields))
	for i, f := range fields {
		key, err := json.Marshal(f.name)
		if err != nil {
			return nil, err
		}
		members[i] = string(key) + ":" + string(f.value)
	}
	return json.RawMessage("{" + strings.Join(members, ",") + "}"), nil
}
