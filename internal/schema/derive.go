package schema

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fermata-go/fermata/internal/roundtrip"
)

// derive makes the schema of a type: of what encoding/json writes of it. The library has such a function, too, and knows neither the option ",string" nor
// numbers as the keys of maps, nor what becomes of an embedded field that has a name or may be nil.
func (k *deriver) derive(t reflect.Type) (*jsonschema.Schema, error) {
	null := false
	for t.Kind() == reflect.Pointer {
		null, t = true, t.Elem()
	}
	s, err := k.derivePlain(t)
	if err == nil && null {
		orNull(s)
	}
	return s, err
}

// orNull lets null pass, too. A schema without a type does already.
func orNull(s *jsonschema.Schema) {
	if s.Type == "" {
		return
	}
	s.Type, s.Types = "", []string{"null", s.Type}
	if s.Enum != nil {
		s.Enum = append(slices.Clone(s.Enum), nil)
	}
}

func (k *deriver) derivePlain(t reflect.Type) (*jsonschema.Schema, error) {
	if known := k.schemas[t]; known != nil {
		return known.CloneSchemas(), nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}, nil
	case reflect.String:
		return &jsonschema.Schema{Type: "string"}, nil
	case reflect.Float32, reflect.Float64:
		return &jsonschema.Schema{Type: "number"}, nil
	case reflect.Interface:
		return &jsonschema.Schema{}, nil
	case reflect.Slice, reflect.Array:
		return k.list(t)
	case reflect.Map:
		return k.table(t)
	case reflect.Struct:
		return k.object(t)
	}
	if isInt(t) || isUint(t) {
		return integer(t), nil
	}
	return nil, fmt.Errorf("JSON has no %s", t)
}

func isInt(t reflect.Type) bool  { return t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64 }
func isUint(t reflect.Type) bool { return t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uintptr }

// integer has the bounds that a float64, which numbers are compared as, can tell.
func integer(t reflect.Type) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "integer"}
	bits := t.Bits()
	switch {
	case isUint(t):
		s.Minimum = new(0.0)
		if bits < 64 {
			s.Maximum = new(math.Ldexp(1, bits) - 1)
		}
	case bits < 64:
		s.Minimum, s.Maximum = new(-math.Ldexp(1, bits-1)), new(math.Ldexp(1, bits-1)-1)
	}
	return s
}

func (k *deriver) list(t reflect.Type) (*jsonschema.Schema, error) {
	items, err := k.derive(t.Elem())
	if err != nil {
		return nil, err
	}
	if t.Kind() == reflect.Array {
		return &jsonschema.Schema{Type: "array", Items: items, MinItems: new(t.Len()), MaxItems: new(t.Len())}, nil
	}
	return &jsonschema.Schema{Types: []string{"null", "array"}, Items: items}, nil
}

// table is the schema of a map, whose keys are written as texts.
func (k *deriver) table(t reflect.Type) (*jsonschema.Schema, error) {
	values, err := k.derive(t.Elem())
	if err != nil {
		return nil, err
	}
	s := &jsonschema.Schema{Types: []string{"null", "object"}, AdditionalProperties: values}
	switch key := t.Key(); {
	case key.Implements(textMarshaler):
	case key.Kind() == reflect.String:
		if known := k.schemas[key]; known != nil && known.Enum != nil {
			s.PropertyNames = &jsonschema.Schema{Enum: known.Enum}
		}
	case isInt(key):
		s.PropertyNames = &jsonschema.Schema{Pattern: intPattern}
	case isUint(key):
		s.PropertyNames = &jsonschema.Schema{Pattern: uintPattern}
	default:
		return nil, fmt.Errorf("JSON has no %s: its keys cannot be written as texts", t)
	}
	return s, nil
}

var textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()

// object is the schema of a struct. Nothing may be in it that the struct has no place for.
func (k *deriver) object(t reflect.Type) (*jsonschema.Schema, error) {
	s := &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	for _, f := range roundtrip.Fields(t) {
		member, err := k.member(f)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
		if s.Properties == nil {
			s.Properties = make(map[string]*jsonschema.Schema)
		}
		s.Properties[f.Member] = member
		s.PropertyOrder = append(s.PropertyOrder, f.Member)
		if !f.Optional {
			s.Required = append(s.Required, f.Member)
		}
	}
	return s, nil
}

func (k *deriver) member(f roundtrip.Field) (*jsonschema.Schema, error) {
	s, err := k.derive(f.Type)
	if err != nil {
		return nil, err
	}
	if f.Quoted {
		s = k.quoted(f.Type)
	}
	description, told := f.Tag.Lookup("jsonschema")
	switch {
	case told && description == "":
		return nil, errors.New("its tag jsonschema, which describes it, is empty")
	case keyword.MatchString(description):
		return nil, fmt.Errorf("its tag jsonschema is a description, and %q is not one", description)
	}
	s.Description = description
	return s, nil
}

// keyword is how other libraries have more in the tag than a description.
var keyword = regexp.MustCompile(`^[^ \t\n]*=`)

// What encoding/json writes into a text for a number, and what it reads from one.
const (
	uintPattern  = `^(0|[1-9][0-9]*)$`
	intPattern   = `^-?(0|[1-9][0-9]*)$`
	floatPattern = `^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`
)

// quoted is the schema of a field with the option ",string": a text, in which the JSON of the value is.
func (k *deriver) quoted(t reflect.Type) *jsonschema.Schema {
	null := t.Kind() == reflect.Pointer
	if null {
		t = t.Elem()
	}
	s := &jsonschema.Schema{Type: "string"}
	switch known := k.schemas[t]; {
	case known != nil && known.Enum != nil:
		for _, choice := range known.Enum {
			text, _ := json.Marshal(choice) // it is a string
			s.Enum = append(s.Enum, string(text))
		}
	case t.Kind() == reflect.Bool:
		s.Enum = []any{"true", "false"}
	case isInt(t):
		s.Pattern = intPattern
	case isUint(t):
		s.Pattern = uintPattern
	case t.Kind() == reflect.String && known == nil:
		s.Pattern = `^".*"$`
	default: // a float, or a json.Number
		s.Pattern = floatPattern
	}
	if null {
		orNull(s)
	}
	return s
}
