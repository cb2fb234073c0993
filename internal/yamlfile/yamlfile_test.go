package yamlfile_test

import (
	"testing"

	"github.com/fermata-go/fermata/internal/yamlfile"
)

type document struct {
	Title string              `yaml:"title"`
	Lists map[string][]string `yaml:"lists"`
	Parts []struct {
		Name  string `yaml:"name"`
		Count int    `yaml:"count"`
	} `yaml:"parts"`
}

func TestDecode_ErrorsDoNotNameGoTypes(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"good":              {"title: a\nlists: {a: [b]}\nparts: [{name: x, count: 2}]\n", ""},
		"nothing":           {"", "the file is empty"},
		"a comment":         {"# later\n", "the file is empty"},
		"an unknown key":    {"title: a\ntilte: b\n", `line 2: unknown key "tilte"`},
		"one further down":  {"parts:\n- {nam: x}\n", `line 2: unknown key "nam"`},
		"a key twice":       {"lists: {a: [], a: []}\n", `line 1: duplicate key "a", first in line 1`},
		"no list":           {"lists:\n  a: b\n", `line 2: expected a list, not "b"`},
		"keys for a list":   {"parts: {a: b}\n", "line 1: expected a list, not keys with values"},
		"a list for a text": {"title: [a]\n", "line 1: a list is not allowed here"},
		"a list of all":     {"- a\n", "line 1: a list is not allowed here"},
		"no number":         {"parts: [{count: many}]\n", `line 1: "many" is not allowed here`},
		"all of it":         {"parts: 3\ntilte: b\n", "line 1: expected a list, not \"3\"\nline 2: unknown key \"tilte\""},
		"no YAML":           {"a: [\n", "line 1: did not find expected node content"},
		"two documents":     {"title: a\n---\ntitle: b\n", "the file has more than one document"},
	} {
		got := ""
		if err := yamlfile.Decode([]byte(c.text), new(document)); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestLine_FollowsKeysPositionsAndAliases(t *testing.T) {
	text := []byte("lists:\n  a: &a\n  - b\n  - [c,\n    d]\n  e: *a\n")
	for _, c := range []struct {
		path []any
		want int
	}{
		{[]any{"lists", "a", 0}, 3}, {[]any{"lists", "a", 1, 1}, 5}, {[]any{"lists", "e", 1, 0}, 4}, {[]any{"lists", "e", 2}, 0}, {[]any{"lists", 0}, 0}, {[]any{"lists", "a", 0, "x"}, 0},
	} {
		if got := yamlfile.Line(text, c.path...); got != c.want {
			t.Errorf("%v: line %d, want %d", c.path, got, c.want)
		}
	}
	if got := yamlfile.Line([]byte("a: ["), "a"); got != 0 {
		t.Errorf("no YAML: line %d", got)
	}
}
