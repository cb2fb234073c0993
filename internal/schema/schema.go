// Package schema derives JSON Schemas from Go types and validates JSON against them. Questions,
// answers and tool arguments use it, so that forms, models and the runtime apply the same rules.
package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fermata-go/fermata/internal/strictjson"
)

// Schema is a JSON Schema that is ready to use.
type Schema struct {
	// Text is the JSON of the schema.
	Text json.RawMessage
	// BeyondType is true if the schema restricts more than the Go type, such as the values of a
	// type with choices.
	BeyondType bool
	// Recursive is true for a type that contains itself. Its schema allows anything; decoding and
	// [CheckChoices] check the value.
	Recursive bool
	// Digest identifies the schema. It is empty for a Recursive type, whose schema allows anything.
	Digest string

	resolved *jsonschema.Resolved
	read     json.RawMessage // the normalized schema; only for a parsed schema
}

// choices is implemented by string types with a fixed set of values; it is fermata.Choices.
type choices interface{ Choices() []string }

// For derives the schema of a Go type. It returns an error if JSON cannot represent the type.
func For[T any]() (Schema, error) { return cachedSchema(schemaKey{reflect.TypeFor[T](), false}) }

// ForPart is [For] for a type whose members are all optional.
func ForPart[T any]() (Schema, error) { return cachedSchema(schemaKey{reflect.TypeFor[T](), true}) }

// schemaKey identifies a derived schema: a type, with or without optional members.
type schemaKey struct {
	of   reflect.Type
	part bool
}

var schemas sync.Map // schemaKey to Schema; values are immutable

// cachedSchema derives the schema of a type once.
func cachedSchema(w schemaKey) (Schema, error) {
	if s, ok := schemas.Load(w); ok {
		return s.(Schema), nil
	}
	var change func(*jsonschema.Schema)
	if w.part {
		change = allOptional
	}
	s, err := deriveText(w.of, change)
	if err == nil {
		schemas.Store(w, s)
	}
	return s, err
}

func deriveText(t reflect.Type, change func(*jsonschema.Schema)) (Schema, error) {
	special := deriver{schemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {}, // any JSON
		reflect.TypeFor[json.Number]():     {Type: "number"},
		reflect.TypeFor[time.Time]():       {Type: "string"},
		reflect.TypeFor[slog.Level]():      {Type: "string"},
	}}
	recursive := special.collect(t, nil)
	// anything: the library cannot derive a schema for a recursive type
	form := &jsonschema.Schema{}
	if !recursive {
		var err error
		if form, err = special.derive(t); err != nil {
			return Schema{}, fmt.Errorf("%s has no JSON Schema: %w", t, err)
		}
	}
	if t.Kind() == reflect.Map && form.Types != nil {
		form.Type, form.Types = "object", nil // a top-level map must not be null
	}
	if change != nil {
		change(form)
	}
	text, err := json.Marshal(form)
	if err != nil {
		return Schema{}, err
	}
	resolved, err := form.Resolve(nil)
	if err != nil {
		return Schema{}, err
	}
	s := Schema{Text: text, BeyondType: special.restricted, Recursive: recursive, resolved: resolved}
	if !recursive {
		sum := sha256.Sum256(text)
		s.Digest = hex.EncodeToString(sum[:6])
	}
	return s, nil
}

// MustFor is [For] for package variables. It panics with the purpose of the type.
func MustFor[T any](what string) Schema {
	s, err := For[T]()
	if err != nil {
		panic(fmt.Sprintf("fermata: %s: %v", what, err))
	}
	return s
}

// Parse parses a schema.
func Parse(text json.RawMessage) (Schema, error) {
	var parsed jsonschema.Schema
	if err := json.Unmarshal(text, &parsed); err != nil {
		return Schema{}, err
	}
	read, err := json.Marshal(parsed)
	if err != nil {
		return Schema{}, err
	}
	if err := checkLoops(read); err != nil {
		return Schema{}, err
	}
	resolved, err := parsed.Resolve(nil)
	if err != nil {
		return Schema{}, err
	}
	return Schema{Text: text, resolved: resolved, read: read}, nil
}

// Normalize returns a schema as the validator reads it, which treats "$Ref" as "$ref". Checks for
// loops must use this form and not the text.
func Normalize(text json.RawMessage) (json.RawMessage, error) {
	var parsed jsonschema.Schema
	if err := json.Unmarshal(text, &parsed); err != nil {
		return nil, err
	}
	return json.Marshal(parsed)
}

// Validate returns an error if data does not match the schema.
func (s Schema) Validate(data json.RawMessage) error {
	var instance any
	if err := json.Unmarshal(data, &instance); err != nil {
		// decoding into any can fail only for a number
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return errHuge
		}
		return err
	}
	return s.resolved.Validate(instance)
}

var errHuge = errors.New("a number is too large to be compared")

// bound matches the library's messages about numbers, such as "11/1 is greater than 10.000000".
var bound = regexp.MustCompile(`: \S+ (is (?:less|greater|not)[a-z ]* -?[0-9]+)(\.[0-9]*[1-9])?\.?0*$`)

// ReadableError rewrites bounds of numbers in an error to plain notation.
func ReadableError(text string) string { return bound.ReplaceAllString(text, ": it $1$2") }

// TextFor returns the JSON Schema of T for other programs; nil if T has none, and then only
// decoding checks it.
func TextFor[T any]() json.RawMessage {
	s, err := For[T]()
	if err != nil || s.Recursive {
		return nil
	}
	return s.Text
}

// CheckData validates data from outside against a schema that was part of the question. An empty
// schema accepts everything.
func CheckData(what string, text, data json.RawMessage) error {
	if err := strictjson.Check(data); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if text == nil {
		return nil
	}
	stored, err := Parse(text)
	if err != nil {
		return fmt.Errorf("the schema of the %s cannot be used: %w", what, err)
	}
	if err = checkCost(stored.read, data); err == nil {
		err = stored.Validate(data)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// CheckChoices searches a value for strings that are not among the choices of their type.
func CheckChoices(v reflect.Value) error {
	if v.Kind() == reflect.String && v.CanInterface() {
		if c, ok := v.Interface().(choices); ok && !slices.Contains(c.Choices(), v.String()) {
			return fmt.Errorf("%q is not one of %q", v.String(), c.Choices())
		}
		return nil
	}
	var err error
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			err = CheckChoices(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			err = errors.Join(err, CheckChoices(v.Index(i)))
		}
	case reflect.Map:
		for iter := v.MapRange(); iter.Next(); {
			err = errors.Join(err, CheckChoices(iter.Key()), CheckChoices(iter.Value()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous {
				err = errors.Join(err, CheckChoices(v.Field(i)))
			}
		}
	}
	return err
}
