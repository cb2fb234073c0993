package strictjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/strictjson"
)

func TestCheck(t *testing.T) {
	for _, good := range []string{`{}`, `null`, `"x"`, ` [1, 2.5e3, {"a":{"b":[]}}] `, `{"a":1,"b":{"a":2}}`, strings.Repeat("[", 100) + strings.Repeat("]", 100)} {
		if err := strictjson.Check([]byte(good)); err != nil {
			t.Errorf("%.40s: %v", good, err)
		}
	}
	for _, bad := range []string{
		``, ` `, `{`, `{"a":1,}`, `{"a":1}{}`, `1 2`, `{"a":1,"a":2}`, `{"a":1,"A":2}`, `[{"x":{"k":1,"K":1}}]`, "\"\xff\"", `nul`, `{"a"}`, `[1,]`,
		strings.Repeat("[", 101) + strings.Repeat("]", 101), strings.Repeat("[", 1_000_000),
	} {
		if err := strictjson.Check([]byte(bad)); err == nil {
			t.Errorf("%.40s was accepted", bad)
		}
	}
}

func TestDecode_NamesAreExact(t *testing.T) {
	type inner struct {
		Deep string `json:"deep"`
	}
	type doc struct {
		Verdict string  `json:"verdict"`
		List    []inner `json:"list,omitempty"`
		Any     any     `json:"any,omitempty"`
	}
	for _, good := range []string{`{"verdict":"yes"}`, `{"list":[{"deep":"x"}],"verdict":"no","any":{"X":1}}`} {
		if err := strictjson.Decode([]byte(good), new(doc)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{`{"Verdict":"yes"}`, `{"VERDICT":"yes"}`, `{"verdict":"yes","list":[{"Deep":"x"}]}`, `{"verdict":"yes","more":1}`, `{"verdict":1}`, `[]`} {
		if err := strictjson.Decode([]byte(bad), new(doc)); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestCanonical_OneSpelling(t *testing.T) {
	for _, same := range []string{`{"b":1,"a":[1.0,"<é>"]}`, `{ "a" : [1.0, "\u003c\u00e9>"], "b": 1 }`} {
		got, err := strictjson.Canonical([]byte(same))
		if err != nil || string(got) != `{"a":[1.0,"<é>"],"b":1}` {
			t.Errorf("%s: got %s, %v", same, got, err)
		}
	}
	a, _ := strictjson.Canonical([]byte(`9007199254740993`))
	b, _ := strictjson.Canonical([]byte(`9007199254740992`))
	if string(a) == string(b) {
		t.Error("two numbers became one")
	}
}

func FuzzCheck_AcceptsOnlyWhatGoReadsToo(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `[1,2,{"b":null}]`, `"\ud800"`, `{"a":1,"a":2}`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := strictjson.Check(data); err == nil && !json.Valid(data) {
			t.Fatalf("%q was accepted and is not JSON", data)
		}
	})
}
