package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fermata-go/fermata/internal/strictjson"
)

func TestCheck(t *testing.T) {
	for _, good := range []string{`{}`, `null`, `"x"`, ` [1, 2.5e3, {"a":{"b":[]}}] `, `{"a":1,"b":{"a":2}}`, `{"a\"":1,"a":"}\\\""}`, many(20, "b"), "[ ]", "{ }", " true ", `{"a":[],"b":{},"c":-1.5E+3}`, strings.Repeat("[", 100) + strings.Repeat("]", 100)} {
		if err := strictjson.Check([]byte(good)); err != nil {
			t.Errorf("%.40s: %v", good, err)
		}
	}
	for _, bad := range []string{
		``, ` `, `{`, `{"a":1,}`, `{"a":1}{}`, `1 2`, `{"a":1,"a":2}`, `{"a":1,"A":2}`, `[{"x":{"k":1,"K":1}}]`, "\"\xff\"", `nul`, `{"a"}`, `[1,]`,
		`{"s":1,"ſ":2}`, `{"k":1,"\u212a":2}`, `{"a\"b":1,"A\"B":2}`, `{"\u0061":1,"a":2}`, many(20, "a7"), many(20, "A3"), many(20, "ſ0"),
		strings.Repeat("[", 101) + strings.Repeat("]", 101), strings.Repeat("[", 1_000_000),
	} {
		if err := strictjson.Check([]byte(bad)); err == nil {
			t.Errorf("%.40s was accepted", bad)
		}
	}
}

// An unpaired surrogate is not a character. encoding/json replaces each by U+FFFD, so different
// texts became the same state key and had the same digest.
func TestCheck_UnpairedSurrogateReturnsError(t *testing.T) {
	for _, good := range []string{`"\ud83d\ude00"`, `"\uD83D\uDE00\ud83d\ude00x"`, `"\\ud83d"`, `"\\\\ud83d"`, `"\ufffd\ud7ff\ue000"`, `{"\ud83d\ude00":"\u00e9\n"}`} {
		if err := strictjson.Check([]byte(good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{`"\ud83d"`, `"\ude00"`, `"\ude00\ud83d"`, `"\ud83dx"`, `"\ud83d\n"`, `"\ud83d\u0041"`, `"\ud83d\ud83d\ude00"`, `"\ud83d\\ude00"`, `"\\\ud83d"`, `{"\udfff":1}`, `[["\uDBFF"]]`} {
		if err := strictjson.Check([]byte(bad)); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

// many returns an object with n members and one more.
func many(n int, name string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"a%d":1,"s%d":1,`, i, i)
	}
	return "{" + b.String() + `"` + name + `":1}`
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

// slow implements the same check with Go's decoder.
func slow(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("invalid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := slowValue(dec, 0); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more data")
	}
	return nil
}

func slowValue(dec *json.Decoder, depth int) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if depth == strictjson.MaxDepth {
		return errors.New("too deep")
	}
	var names []string
	for dec.More() {
		if delim == '{' {
			token, err := dec.Token()
			if err != nil {
				return err
			}
			name := token.(string)
			if slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
				return errors.New("twice")
			}
			names = append(names, name)
		}
		if err := slowValue(dec, depth+1); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

func FuzzCheck_AgreesWithTheDecoder(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `[1,2,{"b":null}]`, `{"s":1,"ſ":2}`, `{"a":1,"a":2}`, many(10, "a1"), `{"a\u0022":[{}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if fast, slow := strictjson.Check(data), slow(data); (fast == nil) != (slow == nil) {
			t.Fatalf("%q: %v, and by way of the decoder %v", data, fast, slow)
		}
	})
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

// Values stored inside documents must leave depth for the enclosing document.
func TestCheckValue_LeavesDepthForTheEnclosingDocument(t *testing.T) {
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if err := strictjson.CheckValue(deep(strictjson.MaxValueDepth)); err != nil {
		t.Error(err)
	}
	if strictjson.CheckValue(deep(strictjson.MaxValueDepth+1)) == nil || strictjson.MaxValueDepth >= strictjson.MaxDepth {
		t.Error("the enclosing document is too deep")
	}
	if strictjson.CheckValue([]byte(`{"a":1,"A":2}`)) == nil {
		t.Error("an ambiguous value was accepted")
	}
}

func TestMembers_NamesAreStrictAndValuesAreNot(t *testing.T) {
	inside := `{"a":1,"A":[2],"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`
	members, err := strictjson.Members([]byte(` {"x":` + inside + `, "y":1e400}`))
	if err != nil || len(members) != 2 || string(members["x"]) != inside || string(members["y"]) != "1e400" {
		t.Errorf("%v, %v", members, err)
	}
	for _, bad := range []string{`{"x":1,"x":2}`, `{"x":1,"X":2}`, `{"x":1} {}`, `[]`, `{"x":`, ``} {
		if members, err := strictjson.Members([]byte(bad)); err == nil {
			t.Errorf("%s was taken for %v", bad, members)
		}
	}
}

// The name comparison must accept numbers of any size.
func TestDecode_AcceptsNumbersOfAnySize(t *testing.T) {
	var v struct {
		N json.RawMessage `json:"n"`
	}
	if err := strictjson.Decode([]byte(`{"n":1e400}`), &v); err != nil || string(v.N) != "1e400" {
		t.Errorf("%s, %v", v.N, err)
	}
}
