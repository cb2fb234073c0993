package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/schema"
)

func list(item string, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

// names returns an object schema with n members of any type.
func names(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"n%d":true,`, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// The schema comes from the requester, and the check of an answer cannot be stopped. A schema of
// 200 bytes with an answer of 60 000 bytes took minutes, so a few of them could block a server.
func TestCheckData_RejectsExpensiveChecks(t *testing.T) {
	const most = 60_000 // maximum bytes of an answer
	zeros := list("0", most/2)
	for name, test := range map[string]struct{ schema, data string }{
		"any of many":             {`{"items":{"anyOf":` + list(`{"const":1}`, 2000) + `}}`, zeros},
		"not any of many":         {`{"items":{"allOf":` + list(`{"not":{"const":1}}`, 1000) + `}}`, zeros},
		"one of many, further in": {`{"oneOf":` + list(`{"items":{"const":1}}`, 1000) + `}`, zeros},
		"by reference":            {`{"$defs":{"d":{"anyOf":` + list(`{"const":1}`, 1000) + `}},"items":{"$ref":"#/$defs/d"}}`, zeros},
		"many values to choose":   {`{"items":{"enum":` + list(`"x"`, 5000) + `}}`, zeros},
		"a pattern of repeats":    {`{"pattern":"^` + strings.Repeat(`(a?){1000}`, 20) + `$"}`, `"` + strings.Repeat("a", most) + `"`},
		"many patterns":           {`{"items":{"allOf":` + list(`{"pattern":"^a*$"}`, 1000) + `}}`, list(`"`+strings.Repeat("a", 1000)+`"`, 60)},
		"a pattern for each name": {`{"patternProperties":{"^` + strings.Repeat(`(a?){1000}`, 20) + `$":true}}`, `{"` + strings.Repeat("a", most) + `":1}`},
		"each unlike the others":  {`{"allOf":` + list(`{"uniqueItems":true}`, 1600) + `}`, zeros},
		"each unlike, further in": {`{"items":{"allOf":` + list(`{"uniqueItems":true}`, 1600) + `}}`, "[" + zeros + "]"},
		"a name needs many":       {`{"items":{"dependentRequired":{"a":` + list(`"a"`, 4900) + `}}}`, list(`{"a":1}`, 7400)},
		"and so in draft 7":       {`{"$schema":"http://json-schema.org/draft-07/schema#","items":{"dependencies":{"a":` + list(`"a"`, 4900) + `}}}`, list(`{"a":1}`, 7400)},
		"many names":              {`{"items":{"properties":{` + names(2400) + `}}}`, list(`{"a":1}`, 7400)},
		"a long no, many times":   {`{"allOf":` + list(`{"not":{"const":1}}`, 1000) + `}`, zeros},
		"of no such type, often":  {`{"allOf":` + list(`{"not":{"type":"string"}}`, 1000) + `}`, zeros},
		"contained in many":       {`{"allOf":` + list(`{"contains":{"const":1},"minContains":0}`, 1000) + `}`, zeros},
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range []string{test.schema, otherCase(test.schema)} {
				err := schema.CheckData("answer", json.RawMessage(text), json.RawMessage(test.data))
				if err == nil || !strings.Contains(err.Error(), "would take too long") {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

func TestCheckData_AcceptsLargeAnswersToUsualSchemas(t *testing.T) {
	row := `{"id":"a1","country":"c199","tags":["x","y"],"note":"none"}`
	rows := `{"type":"array","uniqueItems":false,"items":{"type":"object","required":["id","country"],"additionalProperties":false,"properties":{
		"id":{"type":"string","pattern":"^[a-z0-9-]{1,64}$"},"country":{"oneOf":` + strings.ReplaceAll(list(`{"const":"c","title":"C"}`, 199), `"c"`, `"cx"`) + `},
		"tags":{"type":"array","items":{"enum":["x","y","z"]}},"note":{"$ref":"#/$defs/note"}}},"$defs":{"note":{"type":["string","null"],"maxLength":2000}}}`
	rows = strings.Replace(rows, `"cx"`, `"c199"`, 1)
	for name, test := range map[string]struct{ schema, data string }{
		"a table":            {rows, list(row, 900)},
		"a long text":        {`{"type":"string","pattern":"^[^<>]*$"}`, `"` + strings.Repeat("a", 60_000) + `"`},
		"many numbers":       {`{"type":"array","items":{"type":"number","minimum":0}}`, list("0", 30_000)},
		"an object of words": {`{"type":"object","additionalProperties":{"type":"string"}}`, `{"a":"b"}`},
		"anything":           {`true`, list("0", 30_000)},
		"nothing said":       {`{}`, list("0", 30_000)},
	} {
		if err := schema.CheckData("answer", json.RawMessage(test.schema), json.RawMessage(test.data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
