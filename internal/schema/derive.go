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

// derive returns the schema of what encoding/json writes for a type. The function of the library
// supports neither the option ",string", nor maps with number keys, nor embedded fields that have a
// name or may be nil.
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

// orNull also allows null. A schema without a type already does.
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

// integer returns bounds that a float64 can represent, because numbers are compared as float64.
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

// table returns the schema of a map, whose keys are strings.
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
		return nil, fmt.Errorf("JSON cannot represent %s: its keys are not strings", t)
	}
	return s, nil
}

var textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()

// object returns the schema of a struct. It allows no members that the struct does not have.
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
		return nil, errors.New("the jsonschema tag, a description, is empty")
	case keyword.MatchString(description):
		return nil, fmt.Errorf("the jsonschema tag must be a description, not %q", description)
	}
	s.Description = description
	if tag, ok := f.Tag.Lookup("money"); ok {
		return s, addMoney(s, tag)
	}
	return s, nil
}

var moneyTag = regexp.MustCompile(`^(?:([A-Z]{3})|(/[^/,]+))(?:,([1-3]))?$`)

// addMoney adds what package money reads: "EUR" or "/currency" is the currency of an amount or the
// member that has it, and "EUR,2" says that the amount is in cents.
func addMoney(s *jsonschema.Schema, tag string) error {
	parts := moneyTag.FindStringSubmatch(tag)
	if parts == nil {
		return fmt.Errorf(`the money tag must be like "EUR", "/currency" or "EUR,2", not %q`, tag)
	}
	s.Format, s.Extra = "money", make(map[string]any)
	if parts[1] != "" {
		s.Extra["x-currency"] = parts[1]
	} else {
		s.Extra["x-currency-field"] = parts[2]
	}
	if parts[3] != "" {
		s.Extra["x-minor-units"] = json.Number(parts[3])
	}
	return nil
}

// keyword matches tags of other libraries, which put more than a description into them.
var keyword = regexp.MustCompile(`^[^ \t\n]*=`)

// Patterns of numbers in strings, as encoding/json writes and reads them.
const (
	uintPattern  = `^(0|[1-9][0-9]*)$`
	intPattern   = `^-?(0|[1-9][0-9]*)$`
	floatPattern = `^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`
)

// quoted returns the schema of a field with the option ",string": a string that contains JSON.
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
