package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/fermata-go/fermata/internal/schema"
)

// The library printed "11/1 is greater than 10.000000" for 11, and an error about float64 for
// 1e400.
func TestReadableError_PrintsPlainNumbers(t *testing.T) {
	for _, c := range []struct{ schema, value, want string }{
		{`{"maximum":10}`, `11`, "validating root: maximum: it is greater than 10"},
		{`{"maximum":100}`, `100.5`, "validating root: maximum: it is greater than 100"},
		{`{"minimum":-2.5}`, `-3`, "validating root: minimum: it is less than -2.5"},
		{`{"exclusiveMinimum":0}`, `0`, "validating root: exclusiveMinimum: it is less than or equal to 0"},
		{`{"multipleOf":0.25}`, `0.3`, "validating root: multipleOf: it is not a multiple of 0.25"},
		{`{"type":"number"}`, `1e400`, "a number is too large to be compared"},
		{`{"maxLength":3}`, `"1/1 is less than 10.000000"`, `validating root: maxLength: "1/1 is less than 10.000000" contains 26 Unicode code points, more than 3`},
	} {
		s, err := schema.Parse(json.RawMessage(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(json.RawMessage(c.value)); err == nil || schema.ReadableError(err.Error()) != c.want {
			t.Errorf("%s of %s: %v, want %s", c.schema, c.value, schema.ReadableError(err.Error()), c.want)
		}
	}
}
