package schema

import (
	"encoding/json"
	"testing"
)

func TestCheckTypes_UnknownTypeReturnsError(t *testing.T) {
	for text, good := range map[string]bool{
		`true`: true, `{}`: true, `{"type":"object"}`: true, `{"type":["string","null"]}`: true,
		`{"const":{"type":"invoice"}}`: true, `{"properties":{"type":{"type":"string"}}}`: true,
		`{"type":"objekt"}`: false, `{"type":["string","nul"]}`: false, `{"properties":{"a":{"type":"int"}}}`: false, `{"items":{"type":"text"}}`: false,
		`{"anyOf":[{"type":"string"},{"type":"float"}]}`: false, `{"$defs":{"a":{"type":"any"}},"$ref":"#/$defs/a"}`: false, `{"not":{"additionalProperties":{"type":"date"}}}`: false,
	} {
		if err := CheckTypes(json.RawMessage(text)); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}
