package schemaform_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/schemaform"
)

func raw(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// outline writes the tree of fields: pointer, kind, and * for a required field.
func outline(f *schemaform.Field) string {
	line := fmt.Sprintf("%s:%s", f.Pointer(), f.Kind)
	if f.Required {
		line += "*"
	}
	if f.Nullable {
		line += "?"
	}
	lines := []string{line}
	for _, child := range f.Fields {
		lines = append(lines, outline(child))
	}
	return strings.Join(lines, " ")
}

func TestNew_TreeOfFields(t *testing.T) {
	for _, test := range []struct{ name, schema, value, want string }{
		{"scalars", `{"properties":{"a":{"type":"string"},"b":{"type":"integer"},"c":{"type":"number"},"d":{"type":"boolean"},"e":{"enum":[1,2]},"f":{"const":"x"}},"required":["a"]}`, ``,
			":object* /a:text* /b:integer /c:number /d:yes or no /e:choice /f:choice"},
		{"whole value", `{"type":"integer"}`, ``, ":integer*"},
		{"no schema", ``, ``, ":JSON*"},
		{"true", `true`, ``, ":JSON*"},
		{"not JSON", `{`, ``, ":JSON*"},
		{"no schema, an object", ``, `{"a":1,"b":[2]}`, ":object* /a:JSON /b:JSON"},
		{"nested", `{"type":"object","properties":{"to":{"type":"object","properties":{"a/b":{"type":"string"}},"required":["a/b"]}}}`, ``,
			":object* /to:object /to/a~1b:text*"},
		{"list without items", `{"type":"array","items":{"type":"string"}}`, ``, ":list*"},
		{"list with items", `{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}}`, `[{"n":1},{}]`,
			":list* /0:object* /0/n:integer /1:object* /1/n:integer"},
		{"tuple", `{"type":"array","prefixItems":[{"type":"string"}]}`, ``, ":JSON*"},
		{"variants", `{"oneOf":[{"type":"string"},{"type":"object","properties":{"x":{"type":"number"}}}]}`, ``, ":variant* :text* :object* /x:number"},
		{"constants", `{"oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}`, ``, ":choice*"},
		{"or null", `{"anyOf":[{"type":"string"},{"type":"null"}]}`, ``, ":text*?"},
		{"several types", `{"type":["string","integer"]}`, ``, ":JSON*"},
		{"type or null", `{"type":["null","object"],"properties":{"x":{"type":"string"}}}`, ``, ":object*? /x:text"},
		{"reference", `{"$ref":"#/$defs/n","$defs":{"n":{"type":"integer"}}}`, ``, ":integer*"},
		{"old definitions", `{"properties":{"a":{"allOf":[{"$ref":"#/definitions/n"}]}},"definitions":{"n":{"type":"integer"}}}`, ``, ":object* /a:integer"},
		{"circle", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`, ``, ":JSON*"},
		{"recursive type", `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}}}`, ``, ":object* /next:JSON"},
		{"external", `{"$ref":"https://example.com/x"}`, ``, ":JSON*"},
		{"properties and alternatives", `{"properties":{"a":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`, ``, ":JSON*"},
		{"unknown member", `{"properties":{"a":{"type":"string"}}}`, `{"z":1,"a":"x"}`, ":object* /a:text /z:JSON"},
		{"value of another type", `{"properties":{"a":{"type":"string"},"b":{"enum":[1]}}}`, `{"a":7,"b":2}`, ":object* /a:JSON /b:JSON"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := outline(schemaform.New(raw(test.schema), raw(test.value))); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestNew_Annotations(t *testing.T) {
	f := schemaform.New(raw(`{"properties":{"n":{"$ref":"#/$defs/n","title":"Amount"}},"$defs":{"n":{"type":"integer","title":"N","description":"in cents","default":12345678901234567890,"minimum":0,"exclusiveMaximum":1e30}}}`), nil).Field("n")
	if f.Title != "Amount" || f.Description != "in cents" || string(f.Default) != "12345678901234567890" || f.Limits.Minimum != "0" || f.Limits.ExclusiveMaximum != "1e30" {
		t.Errorf("%+v", f)
	}
	options := schemaform.New(raw(`{"oneOf":[{"const":"a","title":"First"},{"const":null}]}`), nil).Options
	if len(options) != 2 || options[0].Title != "First" || string(options[1].Value) != "null" {
		t.Errorf("%+v", options)
	}
}

// A schema from an agent cannot make a form of any size.
func TestNew_BoundedFields(t *testing.T) {
	defs := `"d0":{"type":"string"}`
	for i := range 30 {
		defs += fmt.Sprintf(`,"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i+1, i, i)
	}
	f := schemaform.New(raw(`{"$ref":"#/$defs/d30","$defs":{`+defs+`}}`), nil)
	if n := strings.Count(outline(f), " "); n > 600 {
		t.Errorf("%d fields", n)
	}
	list := schemaform.New(raw(`{"type":"array","items":{"type":"integer"}}`), raw("["+strings.TrimSuffix(strings.Repeat("1,", 5000), ",")+"]"))
	if list.Kind != schemaform.JSON {
		t.Errorf("%d fields", len(list.Fields))
	}
}

// Every value that fits its schema comes back byte for byte if nothing was edited, and with all
// digits and members if one field was.
func TestValue_LosesNothing(t *testing.T) {
	schema := raw(`{"type":"object","properties":{"to":{"type":"string"},"n":{"type":"integer"},"x":{"type":"number"},"o":{"type":"object","properties":{"k":{"type":["null","string"]},"l":{"type":"array","items":{"type":"number"}}}},"v":{"oneOf":[{"type":"string"},{"type":"object","properties":{"t":{"const":"b"},"y":{"type":"integer"}},"required":["t"]}]}}}`)
	value := raw(`{"z": 1.0, "n":12345678901234567890123, "x":1.50e3, "o":{"l":[1.10, -0.0],"other":[null],"k":null}, "v":{"y":9007199254740993,"t":"b"}, "to":"ann"}`)
	f := schemaform.New(schema, value)
	if got, err := f.Value(); err != nil || string(got) != string(value) || f.Touched() {
		t.Fatalf("%s, %v", got, err)
	}
	f.Find("/to").Text = "eve"
	if got, err := f.Value(); err != nil || string(got) != `{"z":1.0,"n":12345678901234567890123,"x":1.50e3,"o":{"l":[1.10, -0.0],"other":[null],"k":null},"v":{"y":9007199254740993,"t":"b"},"to":"eve"}` {
		t.Errorf("%s, %v", got, err)
	}
	f.Find("/o/l/1").Text = "2.500"
	f.Find("/o/k").Null, f.Find("/o/k").Text = false, "key"
	f.Find("/v/y").Text = "18446744073709551616"
	if got, err := f.Value(); err != nil || string(got) != `{"z":1.0,"n":12345678901234567890123,"x":1.50e3,"o":{"l":[1.10,2.500],"other":[null],"k":"key"},"v":{"y":18446744073709551616,"t":"b"},"to":"eve"}` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestValue_NullAndMissing(t *testing.T) {
	schema := raw(`{"type":"object","properties":{"a":{"type":["null","string"]},"b":{"type":"string"},"c":{"type":["null","integer"]}},"required":["c"]}`)
	for _, test := range []struct {
		value string
		edit  func(f *schemaform.Field)
		want  string
	}{
		{``, func(*schemaform.Field) {}, `{"c":null}`},
		{``, func(f *schemaform.Field) { f.Field("a").Null = true }, `{"a":null,"c":null}`},
		{`{"a":null,"c":1}`, func(f *schemaform.Field) { f.Field("c").Text = "2" }, `{"a":null,"c":2}`},
		{`{"a":null,"c":1}`, func(f *schemaform.Field) { f.Field("a").Null = false }, `{"c":1}`},
		{`{"b":"x","c":1}`, func(f *schemaform.Field) { f.Field("b").Text = "" }, `{"c":1}`},
		{`{"b":"","c":1}`, func(f *schemaform.Field) { f.Field("c").Text = "3" }, `{"b":"","c":3}`},
	} {
		f := schemaform.New(schema, raw(test.value))
		test.edit(f)
		if got, err := f.Value(); err != nil || string(got) != test.want {
			t.Errorf("%s: %s, %v, want %s", test.value, got, err, test.want)
		}
	}
}

func TestValue_OptionalObjectIsLeftOut(t *testing.T) {
	schema := raw(`{"type":"object","properties":{"to":{"type":"object","properties":{"city":{"type":"string"},"zip":{"type":"string"}},"required":["city"]}}}`)
	f := schemaform.New(schema, nil)
	if got, err := f.Value(); err != nil || string(got) != `{}` {
		t.Errorf("%s, %v", got, err)
	}
	f.Find("/to/zip").Text = "8000"
	_, err := f.Value()
	if all, ok := errors.AsType[schemaform.Errors](err); !ok || all.At("/to/city") != "required" {
		t.Errorf("%v", err)
	}
}

func TestValue_ErrorsNameTheField(t *testing.T) {
	schema := raw(`{"type":"object","properties":{"n":{"type":"integer","maximum":10},"l":{"type":"array","items":{"$ref":"#/$defs/s"}},"j":{},"k":{"enum":["a"]}},"required":["k"],"minProperties":3,"$defs":{"s":{"type":"string","maxLength":2}}}`)
	f := schemaform.New(schema, nil)
	f.Field("n").Text = "11"
	f.Field("l").AddItem().Text = "ab"
	f.Field("l").AddItem().Text = "abc"
	f.Field("j").Text = "{"
	_, err := f.Value()
	all, _ := errors.AsType[schemaform.Errors](err)
	var pointers []string
	for _, e := range all {
		pointers = append(pointers, e.Pointer)
	}
	if !slices.Equal(pointers, []string{"/n", "/l/1", "/j", "/k"}) || !strings.Contains(err.Error(), "/l/1: maxLength") || all.At("/k") != "choose one" {
		t.Errorf("%v", err)
	}
	f = schemaform.New(schema, nil)
	f.Field("k").Selected = 0
	_, err = f.Value()
	if all, _ := errors.AsType[schemaform.Errors](err); len(all) != 1 || all[0].Pointer != "" || !strings.Contains(all[0].Message, "minProperties") {
		t.Errorf("%v", err)
	}
}

func TestValue_Variants(t *testing.T) {
	schema := raw(`{"oneOf":[{"type":"object","properties":{"by":{"const":"card"},"n":{"type":"integer"}},"required":["by","n"]},{"type":"object","properties":{"by":{"const":"cash"}},"required":["by"]}]}`)
	f := schemaform.New(schema, nil)
	if _, err := f.Value(); err == nil || err.Error() != "choose one" {
		t.Errorf("%v", err)
	}
	f.Selected = 1
	if got, err := f.Value(); err != nil || string(got) != `{"by":"cash"}` {
		t.Errorf("%s, %v", got, err)
	}
	f.Selected = 0
	if _, err := f.Value(); err == nil || err.Error() != "/n: required" {
		t.Errorf("%v", err)
	}
	f.Find("/n").Text = "4"
	if got, err := f.Value(); err != nil || string(got) != `{"by":"card","n":4}` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestList_AddAndRemove(t *testing.T) {
	f := schemaform.New(raw(`{"type":"array","items":{"type":"integer"},"maxItems":2}`), raw(`[1,2]`))
	f.AddItem().Text = "3"
	if _, err := f.Value(); err == nil || !strings.Contains(err.Error(), "maxItems") {
		t.Errorf("%v", err)
	}
	f.RemoveItem(0)
	if got, err := f.Value(); err != nil || string(got) != `[2,3]` {
		t.Errorf("%s, %v", got, err)
	}
	f.RemoveItem(0)
	f.RemoveItem(0)
	if got, err := f.Value(); err != nil || string(got) != `[]` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestSet_ReplacesTheInput(t *testing.T) {
	f := schemaform.New(raw(`{"properties":{"a":{"type":"string"},"b":{"type":"integer"}}}`), raw(`{"a":"x","b":1}`))
	f.Set(raw(`{"b":2,"c":true}`))
	if got, err := f.Value(); err != nil || string(got) != `{"b":2,"c":true}` || !f.Touched() {
		t.Errorf("%s, %v", got, err)
	}
}

func ExampleNew() {
	form := schemaform.New(json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer","maximum":100}},"required":["amount"]}`), nil)
	form.Find("/amount").Text = "120"
	_, err := form.Value()
	fmt.Println(err)
	form.Find("/amount").Text = "80"
	answer, _ := form.Value()
	fmt.Println(string(answer))
	// Output:
	// /amount: maximum: it is greater than 100
	// {"amount":80}
}

func TestComplete(t *testing.T) {
	for _, test := range []struct{ answer, at, values, want string }{
		{`{"verb":"approve"}`, "args", `{"amount":1.0}`, `{"verb":"approve","args":{"amount":1.0}}`},
		{`{"verb":"reject"}`, "", `{"reason":"late"}`, `{"verb":"reject","reason":"late"}`},
		{`{"action":"revise"}`, "", `{}`, `{"action":"revise"}`},
		{``, "", `"blue"`, `"blue"`},
		{`true`, "", ``, `true`},
		{`true`, "", `{"note":"x"}`, ``},
		{`{"action":"revise"}`, "", `"x"`, ``},
	} {
		got, err := schemaform.Complete(raw(test.answer), test.at, raw(test.values))
		if string(got) != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%+v: %s, %v", test, got, err)
		}
	}
}
