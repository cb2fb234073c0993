package external

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/schema"
)

// Regression: validating an answer against a circular schema overflowed the stack, which crashes
// the process.
func TestCheckSafeSchema_RejectsEndlessSchemas(t *testing.T) {
	for name, text := range map[string]string{
		"itself":                `{"$ref":"#"}`,
		"through a definition":  `{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#"}]}}}`,
		"two definitions":       `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"in another spelling":   `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/%24defs/a"}}}`,
		"through an array":      `{"anyOf":[{"$ref":"#/anyOf/0"}]}`,
		"a tree":                `{"properties":{"child":{"$ref":"#"}}}`,
		"dynamic":               `{"$dynamicRef":"#x","$dynamicAnchor":"x"}`,
		"dynamic, to a place":   `{"$dynamicRef":"#/$defs/a","$defs":{"a":true}}`,
		"an anchor":             `{"$ref":"#x","$anchor":"x"}`,
		"elsewhere":             `{"$ref":"https://example.com/schema"}`,
		"another base":          `{"$defs":{"b":true,"a":{"$id":"https://example.com/a","$ref":"#/$defs/b","$defs":{"b":true}}}}`,
		"nowhere":               `{"$ref":"#/$defs/a"}`,
		"no element":            `{"anyOf":[true],"allOf":[{"$ref":"#/anyOf/1"}]}`,
		"not a pointer":         `{"$ref":"#/%zz"}`,
		"more than anybody has": doubling(30),
		"simply too many":       `{"enum":[` + strings.Repeat(`1,`, maxSchemaNodes) + `1]}`,
		"a pattern of repeats":  `{"pattern":"^` + strings.Repeat(`(a?){1000}`, 20) + `$"}`,
		"as a name, too":        `{"patternProperties":{"^` + strings.Repeat(`(a?){1000}`, 20) + `$":true}}`,
		"in another case":       `{"$Ref":"#/$defs/a","$defs":{"a":{"$Ref":"#/$defs/a"}}}`,
		"a base, likewise":      `{"$defs":{"b":true,"a":{"$ID":"https://example.com/a","$ref":"#/$defs/b","$defs":{"b":true}}}}`,
		"repeats, likewise":     `{"Pattern":"^` + strings.Repeat(`(a?){1000}`, 20) + `$"}`,
		"doubling, likewise":    strings.ReplaceAll(doubling(30), "allOf", "AllOf"),
		"no schema":             `"string"`,
		"a list":                `[]`,
		"null":                  `null`,
	} {
		if err := checkSafeSchema(json.RawMessage(text)); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}

// doubling is a small schema whose validation takes 2ⁿ steps.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":true}}`, n)
	return b.String()
}

func TestCheckSafeSchema_AcceptsGeneratedSchemas(t *testing.T) {
	for name, text := range map[string]string{
		"everything":     `true`,
		"nothing":        `false`,
		"pydantic":       `{"$defs":{"Item":{"properties":{"sku":{"type":"string"}},"required":["sku"],"type":"object"}},"properties":{"a":{"$ref":"#/$defs/Item"},"b":{"items":{"$ref":"#/$defs/Item"},"type":"array"}},"type":"object"}`,
		"draft 7":        `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"x/y":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/x~1y"}}}`,
		"members of it":  `{"properties":{"$ref":{"type":"string"},"$id":{"type":"string"},"id":{"type":"string"}},"examples":[{"id":"1"}]}`,
		"patterns":       `{"pattern":"^[a-z0-9._%+-]{1,64}@[a-z0-9.-]{1,255}$","patternProperties":{"^.{1,1000}$":{"pattern":"^\\d{4}-\\d{2}-\\d{2}$"}}}`,
		"a long enum":    `{"enum":[` + strings.Repeat(`"x",`, 1000) + `"y"]}`,
		"doubled, a bit": doubling(5),
	} {
		if err := checkSafeSchema(json.RawMessage(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzTame searches for an accepted schema that cannot be used: validation must end, or this
// process does.
func FuzzTame(f *testing.F) {
	for _, seed := range []string{
		`{"$ref":"#"}`, `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"type":"string"}}}`, doubling(3), `{"properties":{"a":{"$ref":"#/properties/b"},"b":{"const":1}}}`,
		`{"if":{"$ref":"#/then"},"then":{"minimum":1},"unevaluatedProperties":false}`, `{"$dynamicRef":"#a"}`, `{"items":{"prefixItems":[{"$ref":"#/$defs/~0"}]},"$defs":{"~":true}}`,
	} {
		f.Add(seed, `{"a":1}`)
	}
	f.Fuzz(func(t *testing.T, text, answer string) {
		if checkSchema("", json.RawMessage(text)) != nil || len(text) > 2000 || len(answer) > 2000 {
			return
		}
		_ = schema.CheckData("answer", json.RawMessage(text), json.RawMessage(answer))
	})
}

// FuzzDecode searches for an accepted input that exceeds its limits, or is decoded differently the
// second time.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"refund","data":{"order":17},"answerSchema":{"type":"object"},"callback":{"url":"https://example.com/"},"timeout":60}`,
		`{"kind":"x","data":1}`, `{"kind":"x","kind":"y","data":1}`, `{"Kind":"x","data":1}`, `{"kind":"x","data":null}`, `null`, `{"kind":"\u0000","data":1}`, `{"kind":"x","data":1,"callback":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		r, err := decodeRequest(input)
		if err != nil {
			return
		}
		if r.Kind == "" || len(r.Kind) > maxKind || !json.Valid(r.Data) || isNull(r.Data) || r.Timeout < 0 || r.Timeout > maxTimeout || r.Callback != nil && r.Callback.URL == "" {
			t.Fatalf("%+v", r)
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		same, err := decodeRequest(again)
		// encoding < as \u003c may make it too long
		if err != nil && len(again) <= maxInput && len(r.Data) < len(again) {
			t.Fatalf("%s: %v", again, err)
		}
		if err == nil && (same.Kind != r.Kind || same.Timeout != r.Timeout || (same.Callback == nil) != (r.Callback == nil)) {
			t.Fatalf("%+v, then %+v", r, same)
		}
	})
}
