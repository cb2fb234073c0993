package tui

import (
	"encoding/json"
	"strings"
	"testing"
)

// A form is made from the answer schema: the field of each property, and the JSON of typed text.
func TestForm_FieldsByType(t *testing.T) {
	for _, test := range []struct{ name, schema, typed, want, complaint string }{
		{"text", `{"type":"string"}`, "hello", `"hello"`, ""},
		{"text with quotes", `{"type":"string"}`, `say "hi" <b> \n`, `"say \"hi\" <b> \\n"`, ""},
		{"text too long", `{"type":"string","maxLength":2}`, "hello", "", "maxLength"},
		{"integer", `{"type":"integer"}`, " 42 ", `42`, ""},
		{"integer beyond 2^53", `{"type":"integer"}`, "9007199254740993", `9007199254740993`, ""},
		{"integer beyond 64 bits", `{"type":"integer"}`, "-123456789012345678901234567890", `-123456789012345678901234567890`, ""},
		{"no integer", `{"type":"integer"}`, "1.5", "", "not an integer"},
		{"other digits", `{"type":"integer"}`, "١٢", "", "not an integer"},
		{"integer too small", `{"type":"integer","minimum":3}`, "2", "", "minimum: it is less than 3\n"},
		{"number too large", `{"type":"number","maximum":2.5}`, "2.75", "", "maximum: it is greater than 2.5\n"},
		{"number beyond everything", `{"type":"number"}`, "1e400", "", "a number is too large to be compared"},
		{"number", `{"type":"number"}`, "-1.50e3", `-1.50e3`, ""},
		{"no number", `{"type":"number"}`, "NaN", "", "not a number"},
		{"list", `{"type":"array","items":{"type":"integer"}}`, "[1, 2]", `[1, 2]`, ""},
		{"list of others", `{"type":"array","items":{"type":"integer"}}`, `["a"]`, "", "integer"},
		{"object", `{"type":"object"}`, `{"a":12345678901234567890}`, `{"a":12345678901234567890}`, ""},
		{"no JSON", `{"type":"object"}`, `{"a":`, "", "not valid JSON"},
		{"duplicate key", `{"type":"object"}`, `{"a":1,"a":2}`, "", "not valid JSON"},
		{"anything", `true`, `null`, `null`, ""},
		{"two types", `{"type":["string","integer"]}`, `17`, `17`, ""},
		{"or null", `{"type":["null","string"]}`, `x`, `"x"`, ""},
		{"reference in the schema", `{"$ref":"#/$defs/n"}`, `7`, `7`, ""},
		{"in a circle", `{"$ref":"#/$defs/loop"}`, `7`, `7`, ""}, // left to the server
		{"external reference", `{"$ref":"https://example.com/x"}`, `7`, `7`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			loop := ""
			if strings.Contains(test.schema, "loop") {
				loop = `,"loop":{"$ref":"#/$defs/loop"}`
			}
			r := review()
			r.AnswerSchema = json.RawMessage(`{"type":"object","properties":{"it":` + test.schema + `},"required":["it"],"$defs":{"n":{"type":"integer"}` + loop + `}}`)
			b := newHarness(t, 100, 30, r)
			b.keys("enter", "f")
			b.types(test.typed)
			b.keys("enter")
			if test.complaint != "" {
				b.sees("  ! ", test.complaint)
				return
			}
			b.keys("y")
			b.expectSent(r.ID, `{"it":`+test.want+`}`)
		})
	}
}

func TestForm_Choices(t *testing.T) {
	r := review()
	r.AnswerSchema = json.RawMessage(`{"type":"object","properties":{"size":{"enum":["s","m",3,null]},"gift":{"type":"boolean"},"card":{"type":"boolean"}},"required":["size","gift"]}`)
	b := newHarness(t, 80, 30, r)
	b.keys("enter", "f", "ctrl+s")
	if got := strings.Count(b.frame(), "! choose one"); got != 2 {
		t.Errorf("%d complaints:\n%s", got, b.frame())
	}
	b.keys("right", "right", "right", "tab", "right", "tab", "right", "right", "right")
	b.sees("( ) s  ( ) m  (•) 3  ( ) null", "(•) yes  ( ) no", "( ) yes  ( ) no")
	b.keys("ctrl+s", "y")
	b.expectSent(r.ID, `{"size":3,"gift":true}`)
}

func TestForm_OptionalIsLeftOut(t *testing.T) {
	b := newHarness(t, 80, 24, review())
	b.keys("enter", "f", "right", "ctrl+s", "y")
	b.expectSent("int_review", `{"action":"approve"}`)
}

func TestForm_NonObjectAnswer(t *testing.T) {
	for schema, keys := range map[string][]string{`{"type":"boolean"}`: {"right"}, ``: {"t", "r", "u", "e"}} {
		r := review()
		r.AnswerSchema = json.RawMessage(schema)
		b := newHarness(t, 80, 24, r)
		b.keys("enter", "f")
		b.keys(keys...)
		b.keys("enter", "y")
		b.expectSent(r.ID, `true`)
	}
}

// An error that concerns no single field is shown above the form.
func TestForm_WholeAnswerIsValidated(t *testing.T) {
	r := review()
	r.AnswerSchema = json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"minProperties":2}`)
	b := newHarness(t, 80, 24, r)
	b.keys("enter", "f", "x", "ctrl+s")
	b.sees("! ", "minProperties")
	b.keys("tab", "x", "ctrl+s", "y")
	b.expectSent(r.ID, `{"a":"x","b":"x"}`)
}

// Arguments that the schema does not know are kept, and can be edited as JSON.
func TestForm_EditsOfUnknownArguments(t *testing.T) {
	asked := approval("mail", "", `{"to":"ann","cc":["bob"],"n":1.0}`)
	asked.ArgsSchema = json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"}}}`)
	b := newHarness(t, 80, 30, request("int_1", "run", "inproc:g", "approval", asked, dropUsers().AnswerSchema, nil))
	b.keys("enter", "e", "ctrl+u")
	b.types("eve")
	b.keys("ctrl+s", "y")
	b.expectSent("int_1", `{"verb":"approve","args":{"to":"eve","cc":["bob"],"n":1.0}}`)
}

// The cursor is after the value: backspace deletes its end, typing appends.
func TestForm_CursorIsAfterTheValue(t *testing.T) {
	asked := approval("pay", "", `{"cents":120,"note":"a\nb"}`)
	asked.ArgsSchema = json.RawMessage(`{"type":"object","properties":{"cents":{"type":"integer"},"note":{"type":"string"}}}`)
	b := newHarness(t, 80, 30, request("int_1", "run", "inproc:g", "approval", asked, dropUsers().AnswerSchema, nil))
	b.keys("enter", "e", "backspace", "backspace", "backspace")
	b.types("80")
	b.keys("tab")
	b.types("c")
	b.keys("ctrl+s", "y")
	b.expectSent("int_1", `{"verb":"approve","args":{"cents":80,"note":"a\nbc"}}`)
}

func TestForm_FocusedFieldIsVisible(t *testing.T) {
	var properties []string
	for r := 'a'; r <= 'z'; r++ {
		properties = append(properties, `"field-`+string(r)+`":{"type":"string"}`)
	}
	r := review()
	r.AnswerSchema = json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`)
	b := newHarness(t, 40, 20, r)
	b.keys("enter", "f")
	for c := 'a'; c <= 'z'; c++ {
		b.sees("▸ field-" + string(c))
		b.keys("tab")
	}
	b.sees("▸ field-a")
	b.keys("shift+tab")
	b.sees("▸ field-z")
}

func TestEditor_Keys(t *testing.T) {
	for _, test := range []struct {
		keys []string
		want string
	}{
		{[]string{"backspace"}, "one two\nthre|"},
		{[]string{"home", "backspace"}, "one two|three"},
		{[]string{"up"}, "one t|wo\nthree"},
		{[]string{"home", "up", "right"}, "o|ne two\nthree"},
		{[]string{"ctrl+u"}, "one two\n|"},
		{[]string{"up", "home", "ctrl+k"}, "|\nthree"},
		{[]string{"left", "left", "x"}, "one two\nthrx|ee"},
		{[]string{"alt+enter", "x"}, "one two\nthree\nx|"},
	} {
		e := newEditor("one two\nthree")
		for _, name := range test.keys {
			key, ok := namedKeys[name]
			if !ok {
				e.insert(name)
				continue
			}
			if name == "up" {
				e.up()
				continue
			}
			e.key(key)
		}
		got := string(e.text[:e.at]) + "|" + string(e.text[e.at:])
		if got != test.want {
			t.Errorf("%q: %q, not %q", test.keys, got, test.want)
		}
	}
}
