package yamldoc_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/timespan"
	"github.com/fermata-go/fermata/internal/yamldoc"
)

func TestNearest(t *testing.T) {
	known := []string{"groups", "deadline", "on_timeout", "route", "min_auth"}
	for word, want := range map[string]string{
		"group": "groups", "gruops": "groups", "dedline": "deadline", "onTimeout": "on_timeout", "Route": "route", "min-auth": "min_auth",
		"xyzzy": "", "": "", "approval": "",
	} {
		if got := yamldoc.Nearest(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestSuggest_ListsAllWhereNothingIsNear(t *testing.T) {
	if got := yamldoc.Suggest("xyzzy", []string{"b", "aaaa"}); got != "; known: aaaa, b" {
		t.Error(got)
	}
}

// Scalars stay as written. Rules do not use YAML's implicit booleans and numbers.
func TestNode_TextIsVerbatim(t *testing.T) {
	r := yamldoc.Reader{Report: func(line int, field, text string) { t.Errorf("%d: %s: %s", line, field, text) }}
	top := r.Document([]byte("a: on\nb: 1.10\nc: 0x10\nd: 2026-11-14\ne: |\n  two\n  lines\n")).Map("a", "b", "c", "d", "e")
	for name, want := range map[string]string{"a": "on", "b": "1.10", "c": "0x10", "d": "2026-11-14", "e": "two\nlines\n"} {
		if got := top[name].Text(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if top["d"].TextLine() != 4 || top["e"].Line() != 5 || top["e"].TextLine() != 6 {
		t.Error("wrong line numbers")
	}
}

type document struct {
	Title string              `yaml:"title"`
	Lists map[string][]string `yaml:"lists"`
	Parts []struct {
		Name  string            `yaml:"name"`
		Count int               `yaml:"count"`
		On    bool              `yaml:"on"`
		After timespan.Duration `yaml:"after"`
		Data  any               `yaml:"data"`
	} `yaml:"parts"`
}

func TestDecode_SetsFieldsByTheirTags(t *testing.T) {
	var got document
	err := yamldoc.Decode("f", []byte("title: 1.10\nlists: {a: [b]}\nparts: [{name: x, count: -2, on: true, after: 2d, data: {a: [1]}}]\n"), &got)
	if err != nil {
		t.Fatal(err)
	}
	part := got.Parts[0]
	if got.Title != "1.10" || got.Lists["a"][0] != "b" || part.Name != "x" || part.Count != -2 || !part.On || part.After.String() != "2d" {
		t.Errorf("%+v", got)
	}
	if data, _ := part.Data.(map[string]any); !reflect.DeepEqual(data["a"], []any{1}) {
		t.Errorf("%#v", part.Data)
	}
}

func TestDecode_ErrorsHaveFileLineAndField(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":            {"", "f:1: the file is empty"},
		"a comment":          {"# later\n", "f:1: the file is empty"},
		"an unknown key":     {"title: a\ntilte: b\n", `f:2: tilte: unknown key; did you mean "title"?`},
		"like no other":      {"xyzzyxyzzy: b\n", "f:1: xyzzyxyzzy: unknown key; known: lists, parts, title"},
		"one further down":   {"parts:\n- {nam: x}\n", `f:2: parts[0].nam: unknown key; did you mean "name"?`},
		"a key twice":        {"lists: {a: [], a: []}\n", "f:1: lists.a: is repeated, first in line 1"},
		"no value":           {"title:\n", "f:1: title: the value is missing"},
		"no list":            {"lists:\n  a: b\n", "f:2: lists.a: expected a list, for example [a, b]"},
		"keys for a list":    {"parts: {a: b}\n", "f:1: parts: expected a list, for example [a, b]"},
		"a list for a text":  {"title: [a]\n", "f:1: title: expected a single value"},
		"a list of all":      {"- a\n", "f:1: expected a mapping of keys"},
		"no number":          {"parts: [{count: many}]\n", `f:1: parts[0].count: "many" is not an integer`},
		"another yes":        {"parts: [{on: yes}]\n", `f:1: parts[0].on: "yes" is not one of true, false`},
		"no duration":        {"parts: [{after: soon}]\n", `f:1: parts[0].after: invalid duration "soon"; use for example 90m, 24h or 30d`},
		"an alias":           {"lists: {a: &a [b], c: *a}\n", "f:1: lists.c: aliases are not supported: write the value"},
		"all of it, in line": {"parts: 3\ntilte: b\n", "f:1: parts: expected a list, for example [a, b]\nf:2: tilte: unknown key; did you mean \"title\"?"},
		"no YAML":            {"a: [\n", "f:1: invalid YAML: did not find expected node content"},
		"two documents":      {"title: a\n---\ntitle: b\n", "f:2: a second document begins here; only one is allowed"},
		"too large":          {strings.Repeat("#", 4<<20+1), "f:1: the file has 4194305 bytes; the maximum is 4194304"},
	} {
		got := ""
		if err := yamldoc.Decode("f", []byte(c.text), new(document)); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestNode_AtFollowsKeysAndPositions(t *testing.T) {
	const text = "lists:\n  a:\n  - b\n  - [c,\n    d]\n"
	for _, c := range []struct {
		path []any
		want string
	}{
		{[]any{"lists", "a", 0}, "f:3: lists.a[0]: here"}, {[]any{"lists", "a", 1, 1}, "f:5: lists.a[1][1]: here"},
		// where a path ends early, its last value
		{[]any{"lists", "a", 2}, "f:3: lists.a: here"}, {[]any{"lists", 0}, "f:2: lists: here"}, {[]any{"lists", "a", 0, "x"}, "f:3: lists.a[0]: here"},
	} {
		err := yamldoc.Read("f", []byte(text), func(document yamldoc.Node) { document.At(c.path...).Reportf("here") })
		if err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, want %s", c.path, err, c.want)
		}
	}
}

func TestNode_PeekReportsNothing(t *testing.T) {
	err := yamldoc.Read("f", []byte("- {id: a}\n- {id: [a]}\n- {}\n- a\n- {id: }\n"), func(document yamldoc.Node) {
		for i, want := range []string{"a", "", "", "", ""} {
			if got := document.At(i).Peek("id"); got != want {
				t.Errorf("%d: %q, want %q", i, got, want)
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// In a named item of a list, messages name the item and not its position.
func TestMessage_FieldIsRelativeToANamedItem(t *testing.T) {
	for _, c := range []struct{ item, field, want string }{
		{"", "rules[0].when", "rules[0].when: wrong"}, {"drop", "rules[0].ask.groups[1]", "ask.groups[1]: wrong"}, {"drop", "rules[0]", "wrong"}, {"", "", "wrong"}, {"drop", "version", "version: wrong"},
	} {
		if got := yamldoc.Message(c.item, c.field, "wrong"); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
