package tui

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// formSchema is the part of a JSON Schema that a form needs. Other parts become a field for raw
// JSON; the schema itself and the server validate the result.
type formSchema struct {
	raw        json.RawMessage
	defs       json.RawMessage
	properties []rawMember
	required   []string
}

func parseSchema(text json.RawMessage) formSchema {
	s := formSchema{raw: text}
	members, ok := rawMembers(text)
	if !ok {
		return s
	}
	s.defs = get(members, "$defs")
	s.properties, _ = rawMembers(get(members, "properties"))
	if json.Unmarshal(get(members, "required"), &s.required) != nil {
		s.required = nil
	}
	return s
}

// property returns the schema of a member; nil if there is none.
func (s formSchema) property(name string) json.RawMessage { return get(s.properties, name) }

// check validates a value against the whole schema.
func (s formSchema) check(value json.RawMessage) error { return validate(s.raw, value) }

// checkMember validates the value of one member.
func (s formSchema) checkMember(name string, value json.RawMessage) error {
	if s.property(name) == nil {
		return nil
	}
	part := []rawMember{{"properties", writeObject([]rawMember{{name, s.property(name)}})}}
	if s.defs != nil {
		part = append(part, rawMember{"$defs", s.defs})
	}
	return validate(writeObject(part), writeObject([]rawMember{{name, value}}))
}

// validate returns what is wrong with a value, without the schema path: people see the place in the
// form. A schema that cannot be used here is left to the server.
func validate(text, value json.RawMessage) error {
	if err := strictjson.Check(value); err != nil {
		return err
	}
	usable, err := schema.Parse(text)
	if err != nil {
		return nil
	}
	if err = usable.Validate(value); err == nil {
		return nil
	}
	var parts []string
	for part := range strings.SplitSeq(err.Error(), ": ") {
		if !strings.HasPrefix(part, "validating ") {
			parts = append(parts, part)
		}
	}
	return errors.New(schema.ReadableError(strings.Join(parts, ": ")))
}

// fields returns the fields of a form: one for each property of an object, else one for the whole
// value.
func (s formSchema) fields() []*field {
	if len(s.properties) == 0 {
		return []*field{s.wholeField()}
	}
	var fields []*field
	for _, p := range s.properties {
		f := s.field(p.name, p.value)
		f.required = slices.Contains(s.required, p.name)
		fields = append(fields, f)
	}
	return fields
}

// wholeField returns the field for a value that is not an object with properties.
func (s formSchema) wholeField() *field {
	f := s.field("answer", s.raw)
	f.whole, f.required = true, true
	return f
}

// maxRefs is how many references a property may follow.
const maxRefs = 8

// propertySchema is the supported part of a property's schema.
type propertySchema struct {
	Ref         string            `json:"$ref"`
	Type        json.RawMessage   `json:"type"`
	Enum        []json.RawMessage `json:"enum"`
	Const       json.RawMessage   `json:"const"`
	Description string            `json:"description"`
	Title       string            `json:"title"`
}

func (s formSchema) propertySchema(raw json.RawMessage) propertySchema {
	var p propertySchema
	about := ""
	for range maxRefs {
		p = propertySchema{}
		if json.Unmarshal(raw, &p) != nil { // true, or something unexpected
			return propertySchema{}
		}
		about = firstNonEmpty(about, p.Description, p.Title)
		name, ok := strings.CutPrefix(p.Ref, "#/$defs/")
		if !ok {
			break
		}
		defs, _ := rawMembers(s.defs)
		raw = get(defs, name)
	}
	p.Description = about
	return p
}

func firstNonEmpty(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// types returns the allowed types without null.
func (p propertySchema) types() (types []string, nullable bool) {
	var one string
	if json.Unmarshal(p.Type, &one) == nil && one != "" {
		return []string{one}, false
	}
	var several []string
	if json.Unmarshal(p.Type, &several) != nil {
		return nil, false
	}
	for _, t := range several {
		if t == "null" {
			nullable = true
		} else {
			types = append(types, t)
		}
	}
	return types, nullable
}

func (s formSchema) field(name string, raw json.RawMessage) *field {
	p := s.propertySchema(raw)
	f := &field{name: name, description: p.Description, kind: rawField, selected: unset, schema: s}
	types, nullable := p.types()
	f.nullable = nullable
	switch {
	case p.Ref != "" && len(types) == 0 && p.Enum == nil: // external or circular
	case p.Const != nil:
		f.setOptions(p.Const)
	case p.Enum != nil:
		f.setOptions(p.Enum...)
	case len(types) != 1:
	case types[0] == "boolean":
		f.setOptions(json.RawMessage("true"), json.RawMessage("false"))
	case types[0] == "string":
		f.kind = textField
	case types[0] == "integer":
		f.kind = integerField
	case types[0] == "number":
		f.kind = numberField
	}
	return f
}
