package schema

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/roundtrip"
)

// deriver collects the types within a type whose JSON differs from their Go form.
type deriver struct {
	schemas    map[reflect.Type]*jsonschema.Schema
	restricted bool // one of them lists its values
}

// collect finds these types within t, and reports whether t contains itself.
func (k *deriver) collect(t reflect.Type, path []reflect.Type) (recursive bool) {
	if slices.Contains(path, t) {
		return true
	}
	if c, ok := reflect.Zero(t).Interface().(choices); ok && t.Kind() == reflect.String {
		enum := &jsonschema.Schema{Type: "string"}
		for _, value := range c.Choices() {
			enum.Enum = append(enum.Enum, value)
		}
		k.schemas[t], k.restricted = enum, true
		return false
	}
	switch {
	case k.schemas[t] != nil:
		return false
	case isBytes(t):
		k.schemas[t] = &jsonschema.Schema{Types: []string{"null", "string"}, ContentEncoding: "base64"}
		return false
	}
	recursive = k.inside(t, append(path, t))
	if roundtrip.HasCustomJSON(t) && (recursive || !k.reflectsGoForm(t)) {
		k.schemas[t] = &jsonschema.Schema{} // any JSON; decoding reports errors
		if !t.Implements(marshaler) && !reflect.PointerTo(t).Implements(marshaler) {
			k.schemas[t].Type = "string"
		}
		return false
	}
	return recursive
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// isBytes reports whether encoding/json writes a type as base64.
func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && !roundtrip.HasCustomJSON(t.Elem()) && !roundtrip.HasCustomJSON(t)
}

func (k *deriver) inside(t reflect.Type, path []reflect.Type) (recursive bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return k.collect(t.Elem(), path)
	case reflect.Map:
		k.collect(t.Key(), path)
		return k.collect(t.Elem(), path)
	case reflect.Struct:
		for _, f := range roundtrip.Fields(t) {
			recursive = k.collect(f.Type, path) || recursive
		}
	}
	return recursive
}

// reflectsGoForm reports whether the custom JSON of a type matches its Go form, as for types that
// only validate on reading. It compares the zero value; null proves nothing.
func (k *deriver) reflectsGoForm(t reflect.Type) bool {
	form, err := k.derive(t)
	if err != nil {
		return false
	}
	resolved, err := form.Resolve(nil)
	if err != nil {
		return false
	}
	zero := zeroOf(t)
	return zero != nil && resolved.Validate(zero) == nil
}

// zeroOf returns the JSON of a type's zero value; nil if it has none or is null.
func zeroOf(t reflect.Type) (value any) {
	var err error
	defer recovery.Recover(&err)
	data, err := json.Marshal(reflect.New(t).Interface())
	if err != nil || json.Unmarshal(data, &value) != nil {
		return nil
	}
	return value
}

// allOptional makes every member optional and allows the zero value that a Go program writes for
// it.
func allOptional(root *jsonschema.Schema) {
	eachSchema(root, func(s *jsonschema.Schema) {
		s.Required = nil
		if s.Enum != nil && !slices.Contains(s.Enum, any("")) {
			s.Enum = append(s.Enum, "")
		}
	})
}

// TextWithout returns the JSON Schema of T without these members, which other programs do not send.
// It is nil if T has none.
func TextWithout[T any](names []string) json.RawMessage {
	s, err := deriveText(reflect.TypeFor[T](), func(root *jsonschema.Schema) {
		for _, name := range names {
			delete(root.Properties, name)
		}
		without := func(list []string) []string {
			return slices.DeleteFunc(list, func(name string) bool { return slices.Contains(names, name) })
		}
		root.Required, root.PropertyOrder = without(root.Required), without(root.PropertyOrder)
	})
	if err != nil {
		return nil
	}
	return s.Text
}

// eachSchema calls change for a schema that was derived, and for all in it.
func eachSchema(s *jsonschema.Schema, change func(*jsonschema.Schema)) {
	if s == nil {
		return
	}
	change(s)
	for _, property := range s.Properties {
		eachSchema(property, change)
	}
	eachSchema(s.Items, change)
	eachSchema(s.AdditionalProperties, change)
}
