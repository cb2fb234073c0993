package schemaform

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// Error says what is wrong with the input of one field.
type Error struct {
	// Pointer is the JSON pointer of the field; "" for the whole value.
	Pointer string
	Message string
}

// Error returns the pointer and the message.
func (e *Error) Error() string {
	if e.Pointer == "" {
		return e.Message
	}
	return e.Pointer + ": " + e.Message
}

// Errors are the invalid fields of a form in the order of its fields. There is at least one.
type Errors []*Error

// Error returns all messages, separated by semicolons.
func (all Errors) Error() string {
	texts := make([]string, len(all))
	for i, e := range all {
		texts[i] = e.Error()
	}
	return strings.Join(texts, "; ")
}

// At returns the message for the field with a pointer, or "".
func (all Errors) At(pointer string) string {
	for _, e := range all {
		if e.Pointer == pointer {
			return e.Message
		}
	}
	return ""
}

// Check returns an error if a value does not match a schema. The message omits the path in the
// schema: people see the place in the form. A schema that this package cannot use accepts
// everything; the server validates the answer again.
func Check(text, value json.RawMessage) error {
	if err := strictjson.Check(value); err != nil {
		return err
	}
	if _, err := schema.Parse(text); err != nil {
		return nil
	}
	err := errors.Unwrap(schema.CheckData("value", text, value))
	if err == nil {
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
