package schema

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

var typeNames = []string{"null", "boolean", "object", "array", "number", "string", "integer"}

// CheckTypes returns an error if a schema has an unknown type. No value matches such a place, and
// validation would report that only when the answer arrives.
func CheckTypes(text json.RawMessage) error {
	var parsed jsonschema.Schema
	if err := json.Unmarshal(text, &parsed); err != nil {
		return err
	}
	return checkTypes(&parsed)
}

func checkTypes(s *jsonschema.Schema) error {
	if s == nil {
		return nil
	}
	for _, name := range append(slices.Clone(s.Types), s.Type) {
		if name != "" && !slices.Contains(typeNames, name) {
			return errors.New("unknown type; the types are null, boolean, object, array, number, string and integer")
		}
	}
	// Every keyword with nested schemas is a field of one of three types.
	fields := reflect.ValueOf(s).Elem()
	for i := range fields.NumField() {
		if !fields.Type().Field(i).IsExported() {
			continue
		}
		var below []*jsonschema.Schema
		switch child := fields.Field(i).Interface().(type) {
		case *jsonschema.Schema:
			below = append(below, child)
		case []*jsonschema.Schema:
			below = child
		case map[string]*jsonschema.Schema:
			for _, each := range child {
				below = append(below, each)
			}
		}
		for _, each := range below {
			if err := checkTypes(each); err != nil {
				return err
			}
		}
	}
	return nil
}
