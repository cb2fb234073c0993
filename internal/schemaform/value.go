package schemaform

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/strictjson"
)

// Value returns the JSON of the input; nil if the field is left out. The error is an [Errors].
//
// An empty text leaves an optional field out. In a required field it is null if the schema allows
// it, and the empty string if there was a text before.
func (f *Field) Value() (json.RawMessage, error) {
	var all Errors
	value := f.read(&all)
	if len(all) > 0 {
		return nil, all
	}
	return value, nil
}

// Check returns an error if a value does not match the schema of the field.
func (f *Field) Check(value json.RawMessage) error { return f.check(value) }

func (f *Field) check(value json.RawMessage) error {
	if f.schema == nil {
		return strictjson.Check(value)
	}
	if f.parent == nil {
		return Check(f.schema, value)
	}
	// references need the definitions of the root next to the schema
	part := append(Members{{"properties", Members{{"value", f.schema}}.JSON()}}, f.form.defs...)
	return Check(part.JSON(), Members{{"value", value}}.JSON())
}

// read returns the value, and adds what is wrong.
func (f *Field) read(all *Errors) json.RawMessage {
	if f.original != nil && !f.Touched() {
		return f.original
	}
	before := len(*all)
	value, err := f.readInput(all)
	if err == nil && value != nil && len(*all) == before {
		err = f.check(value)
	}
	if err != nil {
		*all = append(*all, &Error{f.Pointer(), err.Error()})
	}
	if len(*all) > before {
		return nil
	}
	return value
}

func (f *Field) readInput(all *Errors) (json.RawMessage, error) {
	if f.Null {
		return json.RawMessage("null"), nil
	}
	if f.isEmpty() {
		return f.readEmpty()
	}
	switch f.Kind {
	case Boolean, Choice:
		return f.Options[f.Selected].Value, nil
	case OneOf:
		return f.Fields[f.Selected].read(all), nil
	case Object:
		return f.readObject(all), nil
	case List:
		items := make([]json.RawMessage, 0, len(f.Fields))
		for _, child := range f.Fields {
			items = append(items, child.read(all))
		}
		return writeArray(items), nil
	case Integer:
		return readNumber(f.Text, integers, "not an integer, such as 42 or -7")
	case Number:
		return readNumber(f.Text, numbers, "not a number, such as 42 or -0.5")
	case JSON:
		if err := strictjson.Check([]byte(f.Text)); err != nil {
			return nil, fmt.Errorf("not valid JSON: %w", err)
		}
		return json.RawMessage(strings.TrimSpace(f.Text)), nil
	default:
		return String(f.Text), nil
	}
}

// isEmpty reports whether there is no input. An object is not empty if it had a value, or if it is
// required: its members may be missing.
func (f *Field) isEmpty() bool {
	switch {
	case f.Null:
		return false
	case f.Kind == Boolean, f.Kind == Choice, f.Kind == OneOf:
		return f.Selected == Unset
	case f.Kind == List:
		return len(f.Fields) == 0 && f.original == nil && !f.Required
	case f.Kind == Object:
		filled := func(child *Field) bool { return child.Touched() && !child.isEmpty() }
		return !f.Required && f.original == nil && !slices.ContainsFunc(f.Fields, filled)
	}
	return f.Text == ""
}

func (f *Field) readEmpty() (json.RawMessage, error) {
	switch {
	case !f.Required:
		return nil, nil
	case f.Kind == Text && f.original != nil && string(f.original) != "null": // emptied on purpose
		return json.RawMessage(`""`), nil
	case f.Nullable:
		return json.RawMessage("null"), nil
	case f.Kind == Boolean, f.Kind == Choice, f.Kind == OneOf:
		return nil, errors.New("choose one")
	}
	return nil, errors.New("required")
}

// readObject writes the members in the order of the initial value, then the others.
func (f *Field) readObject(all *Errors) json.RawMessage {
	var values Members
	for _, child := range f.Fields {
		if value := child.read(all); value != nil {
			values = append(values, Member{child.Name, value})
		}
	}
	original, _ := ParseObject(f.original)
	place := func(m Member) int {
		if i := slices.IndexFunc(original, func(o Member) bool { return o.Name == m.Name }); i >= 0 {
			return i
		}
		return len(original)
	}
	slices.SortStableFunc(values, func(a, b Member) int { return place(a) - place(b) })
	return values.JSON()
}

var (
	integers = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	numbers  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
)

// readNumber accepts a number as typed, without losing digits.
func readNumber(text string, form *regexp.Regexp, complaint string) (json.RawMessage, error) {
	text = strings.TrimSpace(text)
	if !form.MatchString(text) {
		if strings.Contains(text, ",") {
			complaint += ": write 1234.5 with a point, and without separators of thousands"
		}
		return nil, errors.New(complaint)
	}
	return json.RawMessage(text), nil
}
