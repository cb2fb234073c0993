package fermata

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fermata-go/fermata/internal/strictjson"
)

// schema is a JSON Schema derived from a Go type.
type schema struct {
	text     json.RawMessage
	resolved *jsonschema.Resolved
	// beyondType is true if the schema says more than the Go type, as the values of a Choices type.
	beyondType bool
	// recursive is true for a type that contains itself. Its schema allows anything; decoding and checkChoices do the rest.
	recursive bool
}

// schemaFor panics for a type that JSON cannot hold: it is called while package variables are made.
func schemaFor[T any](what string) schema {
	t := reflect.TypeFor[T]()
	special := make(map[reflect.Type]*jsonschema.Schema)
	recursive := collectChoices(t, special, nil)
	choices := len(special)
	special[reflect.TypeFor[json.RawMessage]()] = &jsonschema.Schema{} // any JSON
	derived := &jsonschema.Schema{}                                    // anything: a schema cannot be derived for a type that contains itself
	if !recursive {
		var err error
		if derived, err = jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: special}); err != nil {
			panic(fmt.Sprintf("fermata: %s: %s has no JSON Schema: %v", what, t, err))
		}
	}
	resolved, err := derived.Resolve(nil)
	if err != nil {
		panic(fmt.Sprintf("fermata: %s: %v", what, err))
	}
	text, err := json.Marshal(derived)
	if err != nil {
		panic(fmt.Sprintf("fermata: %s: %v", what, err))
	}
	return schema{text: text, resolved: resolved, beyondType: choices > 0, recursive: recursive}
}

func (s schema) validate(data json.RawMessage) error {
	var instance any
	if err := json.Unmarshal(data, &instance); err != nil {
		return err
	}
	return s.resolved.Validate(instance)
}

// schemaText is the JSON Schema of T for people and programs elsewhere; nil if T has none, and then only decoding checks it.
func schemaText[T any]() json.RawMessage {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
	}})
	if err != nil {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return text
}

// fitsSchema checks data that came from outside against a schema that was part of the question; no schema fits all.
func fitsSchema(what string, text, data json.RawMessage) error {
	if err := strictjson.Check(data); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if text == nil {
		return nil
	}
	var stored jsonschema.Schema
	if err := json.Unmarshal(text, &stored); err != nil {
		return fmt.Errorf("the schema of the %s cannot be read: %w", what, err)
	}
	resolved, err := stored.Resolve(nil)
	if err != nil {
		return fmt.Errorf("the schema of the %s cannot be used: %w", what, err)
	}
	if err := (schema{resolved: resolved}).validate(data); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// collectChoices finds the types within t that list their values, and whether t contains itself.
func collectChoices(t reflect.Type, found map[reflect.Type]*jsonschema.Schema, path []reflect.Type) (recursive bool) {
	for _, outer := range path {
		if outer == t {
			return true
		}
	}
	if choices, ok := reflect.Zero(t).Interface().(Choices); ok && t.Kind() == reflect.String {
		enum := &jsonschema.Schema{Type: "string"}
		for _, value := range choices.Choices() {
			enum.Enum = append(enum.Enum, value)
		}
		found[t] = enum
		return false
	}
	path = append(path, t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return collectChoices(t.Elem(), found, path)
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				recursive = collectChoices(t.Field(i).Type, found, path) || recursive
			}
		}
	}
	return recursive
}

// checkChoices looks through a value for strings that are none of their type's choices.
func checkChoices(v reflect.Value) error {
	if v.Kind() == reflect.String && v.CanInterface() {
		if choices, ok := v.Interface().(Choices); ok && !slices.Contains(choices.Choices(), v.String()) {
			return fmt.Errorf("%q is none of %q", v.String(), choices.Choices())
		}
		return nil
	}
	var err error
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			err = checkChoices(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			err = errors.Join(err, checkChoices(v.Index(i)))
		}
	case reflect.Map:
		for iter := v.MapRange(); iter.Next(); {
			err = errors.Join(err, checkChoices(iter.Value()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				err = errors.Join(err, checkChoices(v.Field(i)))
			}
		}
	}
	return err
}
