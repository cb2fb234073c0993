// Package attest finds and writes the fields of an answer that say who gave it, when, and how they
// were authenticated.
package attest

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Role is what an attested field contains.
type Role string

// The roles of attested fields.
const (
	By   Role = "by"
	At   Role = "at"
	Auth Role = "auth"
	Rule Role = "rule"
)

// Fields are the attested fields of an answer: roles by JSON name.
type Fields map[string]Role

// tag is the struct tag that declares a role.
const tag = "attest"

// FieldsOf returns the fields of a struct type that have the tag; nil if there are none.
func FieldsOf(t reflect.Type) Fields {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var fields Fields
	for f := range t.Fields() {
		role := Role(f.Tag.Get(tag))
		if role == "" || !f.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		if fields == nil {
			fields = make(Fields)
		}
		fields[name] = role
	}
	return fields
}

// Members returns the members of a JSON object; nil if the value is something else.
func Members(value json.RawMessage) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil {
		return nil
	}
	return members
}

// Set replaces the attested fields of an answer: fields whose role has no content are removed. A
// value that is not an object is returned unchanged.
func (f Fields) Set(value json.RawMessage, content map[Role]any) (json.RawMessage, error) {
	members := Members(value)
	if len(f) == 0 || members == nil {
		return value, nil
	}
	for name, role := range f {
		delete(members, name)
		if c, ok := content[role]; ok {
			data, err := json.Marshal(c)
			if err != nil {
				return nil, err
			}
			members[name] = data
		}
	}
	return json.Marshal(members)
}
